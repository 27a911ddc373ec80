/** The panel of `portico plugin dev`, and the reloads in it. */
import { watch } from 'node:fs';
import { cp, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import type { Found } from '@portico/registry';
import { Mutex } from '@portico/sdk';

import { engineHome } from '../../../engine/files/home.ts';
import { createPanel, type Panel } from '../../../panel.ts';
import type { Config } from '../../../platform/config.ts';
import { createLog } from '../../../platform/log.ts';
import { Complaint } from '../../command/command-error.ts';
import type { Output } from '../../command/output.ts';
import { tokenCreate } from '../../token/create.ts';
import { Stage } from './staged-copies.ts';

export interface DevelopOptions {
    readonly config: Config;
    readonly output: Output;
    /** Of the plugin. */
    readonly folder: string;
    readonly port: number;
    /** The data folder is the author's own, and stays. */
    readonly keep: boolean;
}

/** Editors write a file in several steps. */
const settleMs = 150;

/** Runs until a signal ends it. @returns the exit code */
export async function develop({ config, output, folder, port, keep }: DevelopOptions): Promise<number> {
    const plugin = await realpath(resolve(folder)).catch(() => {
        throw new Complaint(`There is no folder ${resolve(folder)}`);
    });
    const root = await mkdtemp(join(tmpdir(), 'portico-dev-'));
    // Heard from the beginning: a panel that is just starting must not be left behind.
    const ended = new Promise<void>((done) =>
        ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach((signal) => process.on(signal, () => done()))
    );
    try {
        const stage = new Stage(plugin, join(root, 'stage'));
        const place = await stage.copy();
        await stage.show(place);
        const [httpPort, httpsPort] = [await freePort(), await freePort()];
        const own: Config = {
            ...config,
            host: '127.0.0.1',
            port,
            pluginDirs: [stage.shown],
            ...(keep ? {} : { dataDir: join(root, 'data') }),
            engineHttpPort: config.engineHttpPort ?? httpPort,
            engineHttpsPort: config.engineHttpsPort ?? httpsPort,
            adminPassword: config.adminPassword ?? crypto.randomUUID()
        };
        const log = createLog({ level: 'warn', write: (line) => process.stderr.write(line) });
        const panel = await createPanel({ config: own, log, show: () => undefined, checkReturns: true });
        process.on('uncaughtException', (error) => {
            if (!panel.blame(error)) {
                process.stderr.write(`${error.stack ?? error.message}\n`);
                process.exit(1);
            }
        });
        try {
            const address = await panel.start();
            await panel.settled();
            const workshop = new Workshop(panel, stage, place, own, output);
            await workshop.greet(address.port);
            await reloadUntil(ended, plugin, stage, () => workshop.reload());
            return 0;
        } finally {
            await panel.stop({ engine: !keep });
            if (!keep) {
                // Under root the engine lives outside the data folder.
                const { persistent, runtime } = engineHome(own.dataDir, own.engineUser);
                await Promise.all(
                    [persistent, runtime].map((place) => rm(place, { recursive: true, force: true }))
                );
            }
        }
    } finally {
        await rm(root, { recursive: true, force: true });
    }
}

/** What is done to the one plugin. */
class Workshop {
    readonly #panel: Panel;
    readonly #stage: Stage;
    readonly #config: Config;
    readonly #output: Output;
    #shown: string;

    constructor(panel: Panel, stage: Stage, shown: string, config: Config, output: Output) {
        this.#panel = panel;
        this.#stage = stage;
        this.#shown = shown;
        this.#config = config;
        this.#output = output;
    }

    /** Says where the plugin is, and gives a token. */
    async greet(port: number): Promise<void> {
        const found = await this.#found(this.#shown);
        const name = nameOf(found);
        const { permissions = {} } = 'plugin' in found.result ? found.result.plugin.manifest : {};
        this.#say(name);
        const asked = ['plugins:read', ...new Set(['read', 'write', ...Object.keys(permissions)])]
            .map((each) => (each.includes(':') ? each : `${name}:${each}`))
            .join(',');
        const values: Readonly<Record<string, string>> = {
            user: 'admin',
            name: `dev ${new Date().toISOString()}`,
            permissions: asked,
            expires: '12h'
        };
        let token = '';
        await tokenCreate
            .run({
                config: this.#config,
                positionals: [],
                flag: () => false,
                text: (option) => values[option],
                required: (option) => values[option] ?? '',
                output: {
                    json: false,
                    say: () => undefined,
                    result: (_document, text) => void (token = text ?? '')
                }
            })
            .catch((error: unknown) => this.#output.say(`There is no token: ${(error as Error).message}`));
        const url = `http://127.0.0.1:${port}/api/plugins/${name}`;
        this.#output.result({ url, token }, `URL=${url}\nTOKEN=${token}`);
        this.#output.say(
            `Try: curl -H "Authorization: Bearer $TOKEN" $URL/…\nEvery save reloads it. Ctrl+C ends the panel${this.#config.dataDir.startsWith(tmpdir()) ? ' and removes its data' : ''}.`
        );
    }

    /** Puts what is saved now in the place of what runs; whatever is wrong with it leaves that as it is. */
    async reload(): Promise<void> {
        const { plugins } = this.#panel;
        const next = await this.#stage.copy();
        const found = await this.#found(next);
        const before = await this.#found(this.#shown);
        const name = nameOf(before);
        const fault =
            'fault' in found.result
                ? found.result.fault
                : nameOf(found) === name
                  ? null
                  : {
                        code: 'NAME_CHANGED',
                        message: `Its name is ${nameOf(found)} now: start portico plugin dev again`
                    };
        const loaded = fault === null ? await plugins.load(name, found) : { failure: fault };
        const refused =
            'failure' in loaded ? loaded.failure : await this.#probe(name, found, loaded.definition);
        if (refused !== null) {
            await this.#stage.drop(next);
            return this.#output.say(
                `Not reloaded, what ran before goes on: ${refused.code}: ${refused.message}`
            );
        }
        const data = join(this.#config.dataDir, 'plugin-data', name);
        const kept = join(next, 'data');
        await this.#put(name, next, () => cp(data, kept, { recursive: true }).catch(() => undefined));
        if (plugins.runtime(name)?.state === 'running') {
            await this.#stage.drop(this.#shown);
            this.#shown = next;
            return this.#say(name);
        }
        const failure = plugins.runtime(name)?.failure;
        this.#output.say(
            `Not reloaded, what ran before is started again: ${failure?.code ?? plugins.runtime(name)?.state}: ${failure?.message ?? 'it asks for more than it was granted; start portico plugin dev again'}`
        );
        await this.#put(name, this.#shown, async () => {
            await rm(data, { recursive: true, force: true });
            await cp(kept, data, { recursive: true }).catch(() => undefined);
        });
        await this.#stage.drop(next);
        this.#say(name);
    }

    /** Ends what runs, and starts a copy in its place, by the panel's own lifecycle. */
    async #put(name: string, place: string, between: () => Promise<void>): Promise<void> {
        const { plugins } = this.#panel;
        await plugins.withPlugin(name, async () => {
            const runtime = plugins.runtime(name);
            if (runtime !== null) {
                await plugins.stop(runtime, 'it was saved');
            }
            await between();
            await this.#stage.show(place);
            await plugins.refreshInventory();
            for (const record of plugins.records.of(name)) {
                // Somebody tries things out here: that counts for no quarantine.
                await plugins.records.note(name, record.package, { failures: [], quarantinedAt: null });
            }
        });
        await plugins.reconcile(name, { retry: true });
    }

    /** Sets it up on an empty folder, beside what runs. */
    async #probe(
        name: string,
        found: Found,
        definition: Parameters<Panel['plugins']['prepareGeneration']>[1]
    ): Promise<{ readonly code: string; readonly message: string } | null> {
        const dataDir = await mkdtemp(join(tmpdir(), 'portico-probe-'));
        const record = this.#panel.plugins.records.of(name).at(-1);
        try {
            await mkdir(dataDir, { recursive: true });
            const generation = await this.#panel.plugins.prepareGeneration(found, definition, {
                dataDir,
                settings: record?.settings ?? {},
                grants: () =>
                    'plugin' in found.result ? (found.result.plugin.manifest.capabilities ?? {}) : {}
            });
            await generation.close('it was only tried');
            return null;
        } catch (error) {
            const { code = 'UNKNOWN', message } = error as Error & { readonly code?: string };
            return { code, message };
        } finally {
            await rm(dataDir, { recursive: true, force: true });
        }
    }

    async #found(place: string): Promise<Found> {
        const [found] = (
            await this.#panel.plugins.registry.discover([{ origin: 'folder', path: place }])
        ).found.filter(({ folder }) => folder.startsWith(place));
        if (found === undefined) {
            throw new Complaint('There is no package.json that can be read');
        }
        return found;
    }

    #say(name: string): void {
        const runtime = this.#panel.plugins.runtime(name);
        const { state = 'unknown', failure = null } = runtime ?? {};
        this.#output.say(
            failure === null
                ? `${name} ${runtime?.generation?.version ?? ''} is ${state}: ${runtime?.generation?.document.routes.map(({ methods, path }) => `${methods.join('|')} ${path}`).join(', ') ?? ''}`
                : `${name} is ${state}: ${failure.code}: ${failure.message}`
        );
    }
}

function nameOf({ result }: Found): string {
    if ('fault' in result) {
        throw new Complaint(`${result.fault.code}: ${result.fault.message}`);
    }
    return result.plugin.manifest.name;
}

/** Calls `saved` after each save, one at a time, until somebody ends the command. */
async function reloadUntil(
    ended: Promise<void>,
    plugin: string,
    stage: Stage,
    saved: () => Promise<void>
): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const runs = new Mutex();
    const watcher = watch(plugin, { recursive: true }, (_event, path) => {
        if (path !== null && !stage.isPassedOver(path)) {
            clearTimeout(timer);
            timer = setTimeout(() => {
                runs.run(saved).catch(
                    (error: unknown) => void process.stderr.write(`${(error as Error).message}\n`)
                );
            }, settleMs);
        }
    });
    await ended;
    clearTimeout(timer);
    watcher.close();
    await runs.idle();
}

async function freePort(): Promise<number> {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    return port;
}
