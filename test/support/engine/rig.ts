/** The engine service on a real database, with simple stores of hosts, settings and certificates. */
import { defineEntity } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

import { CaddyDriver } from '../../../core/src/engine/caddy/caddy.ts';
import type { EngineTiming } from '../../../core/src/engine/caddy/timing.ts';
import type {
    CertificatePem,
    Change,
    Draft,
    HostRow,
    HostStore,
    Outcome,
    Plan
} from '../../../core/src/engine/change.ts';
import { ProxyEngine } from '../../../core/src/engine/engine.ts';
import { engineEntities, engineMigrations } from '../../../core/src/engine/entities.ts';
import type { EngineFolders } from '../../../core/src/engine/files/home.ts';
import type { EngineDriver } from '../../../core/src/engine/port.ts';
import type { EngineOptions, EngineService } from '../../../core/src/engine/service.ts';
import type { EngineSettings, Site, SiteCertificate } from '../../../core/src/engine/site.ts';
import { handClock, openStore, type Store } from '../core/store.ts';
import { freePort } from '../ports.ts';
import { createFaultyEngine, type FaultyEngine } from './faulty.ts';
import { createRealEngine } from './real.ts';
import { testSite } from './site.ts';

const HostEntity = defineEntity({
    name: 'TestHost',
    tableName: 'test_host',
    properties: (p) => ({ id: p.integer().primary(), row: p.text(), applied: p.boolean() })
});

class CreateHosts extends Migration {
    override up(): void {
        this.addSql(
            'create table test_host (id integer primary key not null, row text not null, applied integer not null)'
        );
    }
}

export const rigTables = {
    entities: [...engineEntities, HostEntity],
    migrations: [...engineMigrations, { name: '9999-test-hosts', class: CreateHosts }]
};

/** The rig's settings and certificates, which a test may change. */
export interface RigState {
    settings: EngineSettings;
    fixed: Partial<EngineSettings>;
    autoReload: boolean;
    driftRepair: boolean;
    readonly certificates: Map<number, SiteCertificate & { readonly pem: CertificatePem }>;
    readonly written: EngineSettings[];
}

export interface Rig {
    readonly engine: EngineService;
    readonly store: Store;
    readonly folders: EngineFolders;
    readonly state: RigState;
    readonly port: number;
    readonly httpsPort: number;
    readonly events: {
        readonly applied: unknown[];
        readonly failed: { readonly result: string; readonly message: string }[];
    };
    /** Rows in the database, by id. */
    rows(): ReadonlyMap<number, { readonly row: HostRow; readonly applied: boolean }>;
    /** Ends the service and starts another one on the same data. The engine goes on. */
    reboot(options?: Partial<EngineOptions>): Promise<void>;
    close(): Promise<void>;
}

export interface FaultyRig extends Rig {
    readonly driver: FaultyEngine;
}

/** A rig on an engine that fails on demand. */
export const faultyRig = async (options: Partial<EngineOptions> = {}): Promise<FaultyRig> => {
    const driver = createFaultyEngine();
    // The engine does not end: the next panel finds the same one.
    const shared: EngineDriver = {
        process: () => driver.process(),
        start: (base) => driver.start(base),
        stop: () => driver.stop(),
        load: (config, how) => driver.load(config, how),
        validate: (config) => driver.validate(config),
        config: () => driver.config(),
        answers: (withinMs) => driver.answers(withinMs),
        upstreams: () => driver.upstreams(),
        logs: (asked) => driver.logs(asked),
        onChange: (listener) => driver.onChange(listener),
        close: async () => undefined
    };
    return Object.assign(await rig(() => shared, options), { driver });
};

/** A rig on a real engine. @param timing - time limits other than the quick ones */
export const realRig = (
    options: Partial<EngineOptions> = {},
    timing: Partial<EngineTiming> = {}
): Promise<Rig> =>
    rig(
        (dataDir) =>
            new CaddyDriver({
                binary: null,
                dataDir,
                user: null,
                log: { info: silence, warn: silence, error: silence },
                timing: {
                    tickMs: 50,
                    pingEveryMs: 250,
                    pingMs: 2000,
                    pingsMissed: 2,
                    backoffMs: 100,
                    graceMs: 2000,
                    ...timing
                }
            }),
        options
    );

const silence = (): void => undefined;

const rig = async (
    driverOf: (dataDir: string) => EngineDriver,
    options: Partial<EngineOptions>
): Promise<Rig> => {
    const real = createRealEngine();
    const store = await openStore(rigTables);
    const [port, httpsPort] = [await freePort(), await freePort()];
    const state: RigState = {
        settings: {
            httpPort: port,
            httpsPort,
            acmeEmail: null,
            acmeDirectory: null,
            acmeEab: null,
            accessLog: false
        },
        fixed: {},
        autoReload: true,
        driftRepair: true,
        certificates: new Map(),
        written: []
    };
    const events: { applied: unknown[]; failed: { readonly result: string; readonly message: string }[] } = {
        applied: [],
        failed: []
    };
    const create = (more: Partial<EngineOptions>): EngineService =>
        new ProxyEngine({
            driver: driverOf(real.dataDir),
            hosts: hostStore(store),
            settings: {
                engine: () => state.settings,
                autoReload: () => state.autoReload,
                driftRepair: () => state.driftRepair,
                fixed: () => state.fixed,
                async write(_tx, settings) {
                    state.settings = settings;
                    state.written.push(settings);
                }
            },
            certificates: {
                load: async () =>
                    [...state.certificates.values()].map(({ id, fingerprint, names }) => ({
                        id,
                        fingerprint,
                        names
                    })),
                async pem(id) {
                    const found = state.certificates.get(id);
                    if (found === undefined) {
                        throw new Error(`no certificate ${id}`);
                    }

                    return found.pem;
                }
            },
            db: store.db,
            sealer: store.keyring,
            home: () => real.folders,
            log: store.log,
            clock: handClock(),
            hooks: {
                applied: (event) => void events.applied.push(event),
                failed: (event) => void events.failed.push(event)
            },
            address: '127.0.0.1',
            windowMs: 100,
            ...options,
            ...more
        });
    let engine = create({});
    await engine.boot();
    return {
        get engine() {
            return engine;
        },
        store,
        folders: real.folders,
        state,
        port,
        httpsPort,
        events,
        rows: () =>
            new Map(
                store.db
                    .prepare<[], { id: number; row: string; applied: number }>(
                        'select id, row, applied from test_host'
                    )
                    .all()
                    .map(({ id, row, applied }) => [id, { row: revive(row), applied: applied === 1 }])
            ),
        async reboot(more = {}) {
            await engine.close();
            await store.reopen();
            engine = create(more);
            await engine.boot();
        },
        async close() {
            await engine.close();
            await store.remove();
            await real.close();
        }
    };
};

const hostStore = (store: Store): HostStore => ({
    load: async () =>
        store.db
            .prepare<[], { row: string }>('select row from test_host order by id')
            .all()
            .map(({ row }) => revive(row)),
    async write(tx, rows, applied) {
        for (const { id, row } of rows) {
            if (row === null) {
                await tx.em.nativeDelete(HostEntity, { id });
            } else {
                await tx.em.upsert(HostEntity, { id, row: JSON.stringify(row), applied });
            }
        }
    },
    async markApplied(tx, ids) {
        await tx.em.nativeUpdate(HostEntity, { id: { $in: [...ids] } }, { applied: true });
    }
});

const revive = (text: string): HostRow => {
    const row = JSON.parse(text) as HostRow;
    return { ...row, createdAt: new Date(row.createdAt), updatedAt: new Date(row.updatedAt) };
};

/** A row as the feature `hosts` makes it. */
export const testRow = (site: Partial<Site> & { readonly id: number }, version = 1): HostRow => ({
    site: testSite(site),
    version,
    owner: null,
    tags: [],
    notes: '',
    createdAt: new Date(0),
    updatedAt: new Date(0)
});

interface Committed {
    readonly id: number;
    readonly outcome: Outcome;
}

const committing = (
    plan: (draft: Draft) => Plan & { readonly id: number },
    more: Partial<Change<Committed>>
): Change<Committed> => {
    let id = 0;
    return {
        plan(draft) {
            const made = plan(draft);
            id = made.id;
            return made;
        },
        commit: async (_tx, outcome) => ({ id, outcome }),
        ...more
    };
};

/** A change that makes a host. */
export const creates = (
    site: Partial<Site> & { readonly domain: string },
    more: Partial<Change<Committed>> = {}
): Change<Committed> =>
    committing((draft) => {
        if (draft.hostOf(site.domain) !== undefined) {
            throw new Error(`taken: ${site.domain}`);
        }

        const id = draft.nextHostId();
        return { id, hosts: [{ id, row: testRow({ ...site, id }) }] };
    }, more);

/** A change of a host. */
export const updates = (
    id: number,
    site: Partial<Site>,
    more: Partial<Change<Committed>> = {}
): Change<Committed> =>
    committing((draft) => {
        const before = draft.hosts.get(id);
        if (before === undefined) {
            throw new Error(`missing: ${id}`);
        }

        return {
            id,
            hosts: [
                { id, row: { ...before, version: before.version + 1, site: { ...before.site, ...site } } }
            ]
        };
    }, more);

/** A change that removes a host. */
export const removes = (id: number, more: Partial<Change<Committed>> = {}): Change<Committed> =>
    committing(() => ({ id, hosts: [{ id, row: null }] }), more);
