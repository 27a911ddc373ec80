/** A plugin in as many versions as a test needs. It keeps rows, has a stream and a WebSocket, has a request wait until it is told to go on, and can fail at every step. */
import { pluginPackage } from '../registry/packages.ts';
import type { NpmRegistry } from '../servers/npm-registry.ts';

/** The step that fails. */
export type Fault = 'import' | 'migration' | 'setup' | 'health' | 'start' | 'settings';

export interface VersionOptions {
    readonly name?: string;
    readonly fault?: Fault;
    /** How many of its three migrations it has; default 1. */
    readonly migrations?: number;
    /** The text that it answers; default: its version. */
    readonly word?: string;
    readonly more?: Readonly<Record<string, unknown>>;
    readonly manifest?: Readonly<Record<string, unknown>>;
}

/** The code of one version. */
export function versionedCode(
    word: string,
    { fault, migrations = 1 }: Pick<VersionOptions, 'fault' | 'migrations'> = {}
): string {
    const steps = [
        'create table item (id integer primary key, text text not null)',
        'alter table item add column size integer not null default 0',
        'create table other (id integer primary key)'
    ]
        .slice(0, migrations)
        .map((sql, index) => ({ name: `000${index + 1}`, up: [sql] }));
    return `import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePlugin, joi } from '@portico/sdk';

const fault = ${JSON.stringify(fault ?? null)};
const word = ${JSON.stringify(word)};
if (fault === 'import') throw new Error('broken at import');
const steps = ${JSON.stringify(steps)};
if (fault === 'migration') steps.push({ name: '0009', up: ['create table half (id integer)', 'this is no SQL'] });

export default definePlugin({
    settings: joi.object({ greeting: fault === 'settings' ? joi.string().required() : joi.string() }),
    migrations: steps,
    setup(ctx) {
        const waiting = new Set();
        if (fault === 'setup') throw new Error('broken in setup');
        ctx.health('rows', async () => (fault === 'health' ? { state: 'failed', evidence: 'nothing is well' } : { state: 'ok' }));
        ctx.onStart(() => {
            if (fault === 'start') throw new Error('broken in start');
        });
        ctx.route({ method: 'GET', path: '/word', access: 'read', handler: () => ({ word, greeting: ctx.settings.greeting ?? null }) });
        ctx.route({ method: 'GET', path: '/knows/{name}', access: 'read', validate: { params: joi.object({ name: joi.string() }) }, handler: async ({ params }) => ({ known: await ctx.panel.hasPlugin(params.name) }) });
        ctx.route({ method: 'POST', path: '/hosts', access: 'write', validate: { payload: joi.object({ domain: joi.string().required() }) }, handler: async ({ payload }) => {
            await ctx.hosts.create({ domain: payload.domain, upstream: '127.0.0.1:9' });
            return { word };
        } });
        ctx.route({ method: 'GET', path: '/rows', access: 'read', handler: async () => ({ word, rows: (await ctx.db.read((em) => em.execute('select text from item order by id'))).map(({ text }) => text) }) });
        ctx.route({ method: 'POST', path: '/rows', access: 'write', validate: { payload: joi.object({ text: joi.string().required() }) }, handler: async ({ payload }) => {
            await ctx.db.write((em) => em.execute('insert into item (text) values (?)', [payload.text]));
            return { word };
        } });
        ctx.route({ method: 'PUT', path: '/note', access: 'write', validate: { payload: joi.object({ text: joi.string().required() }) }, handler: ({ payload }) => {
            writeFileSync(join(ctx.dataDir, 'note'), payload.text);
            return { word };
        } });
        ctx.route({ method: 'GET', path: '/note', access: 'read', handler: () => ({ word, note: readFileSync(join(ctx.dataDir, 'note'), 'utf8') }) });
        ctx.route({ method: 'GET', path: '/slow', access: 'read', timeoutSeconds: 300, handler: async () => {
            await new Promise((resolve) => waiting.add(resolve));
            return { word };
        } });
        ctx.route({ method: 'GET', path: '/waiting', access: 'read', handler: () => ({ count: waiting.size }) });
        ctx.route({ method: 'POST', path: '/go', access: 'write', handler: () => {
            waiting.forEach((go) => go());
            waiting.clear();
            return { word };
        } });
        ctx.stream({ path: '/events', access: 'read', async *handler({ signal }) {
            for (let n = 0; !signal.aborted; n += 1) {
                yield { id: String(n), data: { word, n } };
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
        } });
        ctx.socket({ path: '/talk', access: 'read', async handler(socket) {
            for await (const message of socket) await socket.send(word + ':' + message);
        } });
        return { word: async () => ({ word }) };
    }
});
`;
}

/** The package.json and the files of one version. */
export function versionedPackage(
    version: string,
    { name = 'rows', word = version, more = {}, manifest = {}, ...options }: VersionOptions = {}
): [ReturnType<typeof pluginPackage>, Readonly<Record<string, string>>] {
    return [
        pluginPackage(name, version, { ...more, portico: { name, sdk: '^1.0.0', ...manifest } }),
        { 'index.js': versionedCode(word, options) }
    ];
}

/** Publishes one version to a registry. */
export const publishVersion = (
    npm: NpmRegistry,
    version: string,
    options: VersionOptions = {}
): Promise<void> => npm.publish(...versionedPackage(version, options));
