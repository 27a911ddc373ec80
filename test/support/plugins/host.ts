/** The plugin runtime with real parts around it: gateway, HTTP servers, database, tasks, hooks, programs and network. Callers, hosts and certificates are doubles. For tests of the runtime itself; plugins are tested in `@portico/testing`. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Manifest } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import { networkPort } from '../../../core/src/composition/plugins/plugin-ports.ts';
import { probeUpstream } from '../../../core/src/engine/probe.ts';
import { taskEntities, taskMigrations } from '../../../core/src/features/tasks/entities.ts';
import { Tasks } from '../../../core/src/features/tasks/tasks.ts';
import type { Caller } from '../../../core/src/platform/call.ts';
import type { Clock } from '../../../core/src/platform/clock.ts';
import { type Database, openDatabase } from '../../../core/src/platform/database/database.ts';
import { fail } from '../../../core/src/platform/errors.ts';
import { type CoreHooks, createCoreHooks } from '../../../core/src/platform/hooks.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { pluginHostEntities, pluginHostMigrations } from '../../../core/src/plugins/runtime/entities.ts';
import type {
    Capabilities,
    Generation,
    GenerationOptions,
    PluginHost
} from '../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginHost } from '../../../core/src/plugins/runtime/generation/host.ts';
import type { PluginHostPorts } from '../../../core/src/plugins/runtime/ports.ts';
import { createGateway, type Gateway } from '../../../core/src/server/gateway/gateway.ts';
import { requireAccess, requireFresh } from '../../../core/src/server/http/access.ts';
import type { AuditEntry } from '../../../core/src/server/http/ports.ts';
import { json, type Route } from '../../../core/src/server/http/route.ts';
import { createHttpServer } from '../../../core/src/server/http/server.ts';
import { TestAccessLog } from '../../../sdk/testing/src/doubles/access-log.ts';
import { TestMandates } from '../../../sdk/testing/src/doubles/mandates.ts';
import { caller, createTestPorts, type TestPorts } from '../core/http-ports.ts';
import { ServicesRig } from '../machine/services.ts';

export interface PluginRig {
    readonly host: PluginHost;
    readonly gateway: Gateway;
    readonly hooks: CoreHooks;
    readonly tasks: Tasks;
    readonly db: Database;
    readonly http: TestPorts;
    readonly url: string;
    readonly root: string;
    readonly notified: {
        readonly event: string;
        readonly title: string;
        readonly data?: unknown;
        readonly channels?: readonly number[];
    }[];
    /** Visits to hosts, as plugins read them. */
    readonly accessLog: TestAccessLog;
    /** Adds a user that `Bearer <name>` stands for. */
    user(name: string, permissions: readonly string[], more?: Partial<Caller>): Caller;
    /** Ends the user's session. */
    revoke(name: string): void;
    /** Prepares, starts and mounts a plugin. */
    run(definition: PluginDefinition, options?: RunOptions): Promise<Generation>;
    prepare(definition: PluginDefinition, options?: RunOptions): Promise<Generation>;
    ask(
        as: string | null,
        method: string,
        path: string,
        body?: unknown,
        headers?: Readonly<Record<string, string>>
    ): Promise<Asked>;
    close(): Promise<void>;
}

export interface Asked {
    readonly status: number;
    readonly headers: Headers;
    readonly text: string;
    readonly code: number;
    readonly message: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
    readonly data: any;
}

export interface RunOptions extends Partial<
    Pick<GenerationOptions, 'settings' | 'timing' | 'dataDir' | 'grants' | 'runtime' | 'accepted'>
> {
    readonly name?: string;
    readonly version?: string;
    readonly package?: string;
    readonly capabilities?: Capabilities;
    readonly manifest?: Partial<Manifest>;
}

export interface RigOptions {
    readonly clock?: Clock;
    readonly routes?: readonly Route[];
    readonly ports?: Partial<PluginHostPorts>;
}

/** What a rehearsal finds in this rig. */
const rehearsal = {
    booted: true,
    message: null,
    readyMs: 1,
    hosts: 2,
    users: 3,
    plugins: 4,
    auditChain: true
};

export async function createPluginRig({
    clock = { now: () => Date.now() },
    routes = [],
    ports: more = {}
}: RigOptions = {}): Promise<PluginRig> {
    const root = mkdtempSync(join(tmpdir(), 'portico-plugins-'));
    const http = createTestPorts();
    const users = new Map<string, Caller>();
    const gone = new Set<string>();
    const authenticator = {
        ...http.authenticator,
        bearer(token: string) {
            const found = users.get(token);
            if (found === undefined || gone.has(token)) {
                throw fail.TOKEN_INVALID();
            }
            return found;
        },
        admit(who: Caller, route: Route) {
            requireAccess(who, route);
            requireFresh(who, route);
        }
    };
    const testPorts: TestPorts = { ...http, authenticator };
    const db = await openDatabase({
        file: join(root, 'core.db'),
        entities: [...taskEntities, ...pluginHostEntities],
        migrations: [...taskMigrations, ...pluginHostMigrations]
    });
    const hooks = createCoreHooks(http.log);
    const tasks = await Tasks.open({ db, log: http.log, clock });
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        ports: testPorts,
        routes: [
            json({
                id: 'things.list',
                method: 'GET',
                path: '/api/things',
                access: 'things:read',
                summary: 'List things',
                handler: ({ actor }) => [{ for: actor.username, via: actor.plugin }]
            }),
            json({
                id: 'things.wipe',
                method: 'DELETE',
                path: '/api/things',
                access: 'things:write',
                summary: 'Wipe things',
                stepUp: true,
                handler: () => null
            }),
            json({
                id: 'auth.me',
                method: 'GET',
                path: '/api/auth/me',
                access: 'authenticated',
                summary: 'Me',
                handler: () => ({ secret: true })
            }),
            ...routes
        ]
    });
    const gateway = await createGateway({ core, log: http.log, drainMs: 2_000 });
    const { port } = await gateway.listen('127.0.0.1', 0);
    const notified: PluginRig['notified'] = [];
    const keyring = createKeyring(root);
    const services = new ServicesRig(root);
    const mandates = new TestMandates(() => clock.now());
    const accessLog = new TestAccessLog(() => new Date(clock.now()));
    const host = createPluginHost({
        gateway,
        http: testPorts,
        hooks: hooks.host,
        db,
        tasks,
        keyring,
        clock,
        log: http.log,
        notify: ({ severity: _severity, text: _text, ...rest }) => void notified.push(rest),
        renew(who) {
            if (who.kind === 'mandate') {
                return mandates.renew(who);
            }
            if (gone.has(who.username ?? '')) {
                throw fail.TOKEN_REVOKED();
            }
            return users.get(who.username ?? '') ?? who;
        },
        hosts: {
            all: () => [],
            create: () => Promise.reject(fail.NOT_READY()),
            update: () => Promise.reject(fail.NOT_READY()),
            remove: () => Promise.reject(fail.NOT_READY()),
            upstreams: async () => [],
            probe: probeUpstream,
            account: async () => ({ user: 'caddy', group: 'caddy' }),
            revision: () => 0
        },
        certificates: {
            all: async () => [],
            upload: () => Promise.reject(fail.NOT_READY()),
            remove: () => Promise.reject(fail.NOT_READY())
        },
        accessLog,
        network: networkPort(http.log),
        services: services.services,
        fragments: { put: async () => null, drop: async () => [] },
        mandates,
        panel: {
            folders: () => ['/var/lib/portico'],
            url: () => null,
            hasPlugin: async (name) => name === 'math',
            listeners: async () => [{ role: 'panel', protocol: 'tcp', address: '127.0.0.1', port: 39921 }],
            rehearse: async () => rehearsal
        },
        isDangerous: (permission) => permission.endsWith(':unsafe'),
        forbidden: () => [join(root, 'forbidden')],
        ...more
    });
    const generations: Generation[] = [];
    const prepare: PluginRig['prepare'] = async (definition, options = {}) => {
        const name = options.name ?? 'probe';
        const capabilities = options.capabilities ?? {};
        const dataDir = options.dataDir ?? join(root, 'data', name);
        mkdirSync(dataDir, { recursive: true });
        const generation = await host.prepare({
            plugin: {
                package: options.package ?? `@acme/${name}`,
                version: options.version ?? '1.0.0',
                title: name,
                node: null,
                manifest: {
                    name,
                    sdk: '^1.0.0',
                    capabilities,
                    requires: Object.fromEntries(definition.requires.map((each) => [each, '*'])),
                    optional: Object.fromEntries(definition.optional.map((each) => [each, '*'])),
                    ...options.manifest
                } as Manifest
            },
            folder: root,
            definition,
            dataDir,
            settings: options.settings ?? {},
            grants: options.grants ?? (() => capabilities),
            ...(options.timing === undefined ? {} : { timing: options.timing }),
            ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
            ...(options.accepted === undefined ? {} : { accepted: options.accepted })
        });
        generations.push(generation);
        return generation;
    };
    const url = `http://127.0.0.1:${port}`;
    const rig: PluginRig = {
        host,
        gateway,
        hooks,
        tasks,
        db,
        http: testPorts,
        url,
        root,
        notified,
        accessLog,
        user(name, permissions, options = {}) {
            const who = caller(name, permissions, options);
            users.set(name, who);
            return who;
        },
        revoke: (name) => {
            gone.add(name);
            http.end(name);
        },
        prepare,
        async run(definition, options) {
            const generation = await prepare(definition, options);
            await generation.start();
            await generation.mount();
            return generation;
        },
        async ask(as, method, path, body, headers = {}) {
            const answer = await fetch(`${url}${path}`, {
                method,
                headers: {
                    ...(as === null ? {} : { authorization: `Bearer ${as}` }),
                    ...(body === undefined || typeof body === 'string'
                        ? {}
                        : { 'content-type': 'application/json' }),
                    ...headers
                },
                ...(body === undefined
                    ? {}
                    : { body: typeof body === 'string' ? body : JSON.stringify(body) })
            });
            const text = await answer.text();
            const parsed = (
                answer.headers.get('content-type')?.startsWith('application/json') === true
                    ? JSON.parse(text)
                    : {}
            ) as { code?: number; message?: string; data?: unknown };
            return {
                status: answer.status,
                headers: answer.headers,
                text,
                code: parsed.code ?? -1,
                message: parsed.message ?? '',
                data: parsed.data
            };
        },
        async close() {
            for (const generation of generations.reverse()) {
                await generation.close('the test ends');
            }
            await gateway.close();
            await services.end();
            await services.services.close();
            await tasks.close();
            await db.close();
            rmSync(root, { recursive: true, force: true });
        }
    };
    rig.user('admin', [
        'things:read',
        'things:write',
        ...['probe', 'math', 'other'].flatMap((area) =>
            ['read', 'write', 'use'].map((verb) => `${area}:${verb}`)
        )
    ]);
    rig.user('viewer', ['probe:read']);
    return rig;
}

/** The audit entries. */
export const entriesOf = (rig: PluginRig): readonly AuditEntry[] => rig.http.recorded;
