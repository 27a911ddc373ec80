/** Hosts and certificates on a real database and the real queue, with an engine in memory. For tests of their services alone. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { ProxyEngine } from '../../../core/src/engine/engine.ts';
import { engineEntities, engineMigrations } from '../../../core/src/engine/entities.ts';
import { type EngineFolders, engineHome, prepareHome } from '../../../core/src/engine/files/home.ts';
import { refusedTexts } from '../../../core/src/engine/handlers/check.ts';
import type { EngineService } from '../../../core/src/engine/service.ts';
import type { EngineSettings } from '../../../core/src/engine/site.ts';
import { advancedOf, maskConfig } from '../../../core/src/engine/wire/mask.ts';
import { AcmeAccounts } from '../../../core/src/features/certificates/acme/accounts.ts';
import { EngineCertificates } from '../../../core/src/features/certificates/engine-certificates.ts';
import {
    certificateEntities,
    certificateMigrations
} from '../../../core/src/features/certificates/entities.ts';
import { Certificates } from '../../../core/src/features/certificates/service.ts';
import { DatabaseCertificateStore } from '../../../core/src/features/certificates/store.ts';
import { createChecklist } from '../../../core/src/features/hosts/checks/checklist.ts';
import { hostEntities, hostMigrations } from '../../../core/src/features/hosts/entities.ts';
import { HostList } from '../../../core/src/features/hosts/list.ts';
import type { HostHooks } from '../../../core/src/features/hosts/preparation.ts';
import { createReadable } from '../../../core/src/features/hosts/rules/paths.ts';
import { covers } from '../../../core/src/features/hosts/rules/safety.ts';
import { Hosts } from '../../../core/src/features/hosts/service.ts';
import { DatabaseHostStore } from '../../../core/src/features/hosts/store.ts';
import { createFaultyEngine, type FaultyEngine } from '../engine/faulty.ts';
import { type HandClock, handClock, openStore, type Store } from './store.ts';

export interface HostKit {
    readonly store: Store;
    readonly rows: DatabaseHostStore;
    readonly engine: EngineService;
    readonly driver: FaultyEngine;
    readonly hosts: Hosts;
    readonly certificates: Certificates;
    readonly clock: HandClock;
    readonly folders: EngineFolders;
    /** The functions that the hooks call; a test sets them. */
    readonly hooks: { current: Partial<HostHooks> };
    readonly settings: { autoReload: boolean; engine: EngineSettings };
    close(): Promise<void>;
}

/** The permissions of an admin for hosts and certificates. */
export const adminMay = [
    'hosts:read',
    'hosts:write',
    'hosts:unsafe',
    'certificates:read',
    'certificates:write',
    'certificates:secrets',
    'engine:secrets'
];
export const operatorMay = ['hosts:read', 'hosts:write', 'certificates:read', 'certificates:write'];

export async function createHostKit(): Promise<HostKit> {
    const store = await openStore({
        entities: [...engineEntities, ...hostEntities, ...certificateEntities],
        migrations: [...engineMigrations, ...hostMigrations, ...certificateMigrations]
    });
    const dataDir = join(store.folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    const { uid, gid } = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    const folders = engineHome(dataDir, null, {
        uid: 1,
        gid: 1,
        runtimeDir: undefined,
        temporary: store.folder,
        users: '/etc/passwd',
        roots: { persistent: join(store.folder, 'lib'), runtime: join(store.folder, 'run') }
    });
    const own = { ...folders, owner: { name: 'tester', uid, gid, switched: false }, panel: { uid, gid } };
    prepareHome(own);
    const driver = createFaultyEngine();
    const clock = handClock();
    const settings: HostKit['settings'] = {
        autoReload: true,
        engine: {
            httpPort: 18080,
            httpsPort: 18443,
            acmeEmail: null,
            acmeDirectory: null,
            acmeEab: null,
            accessLog: false
        }
    };
    const rows = new DatabaseHostStore(store.db, store.keyring);
    const certificateRows = new DatabaseCertificateStore(store.db, store.keyring);
    const engine = new ProxyEngine({
        driver,
        hosts: rows,
        certificates: certificateRows,
        settings: { engine: () => settings.engine, autoReload: () => settings.autoReload },
        db: store.db,
        sealer: store.keyring,
        home: () => own,
        log: store.log,
        clock,
        windowMs: 1,
        vet: (call, before, after) => hosts.vet(call, before, after)
    });
    await engine.boot();
    const hooks: HostKit['hooks'] = { current: {} };
    const readable = createReadable(own.owner);
    const hosts = new Hosts({
        engine,
        list: new HostList(store.db, rows, engine),
        clock,
        readable,
        checklist: createChecklist({
            engine,
            readable,
            nameservers: () => ['127.0.0.1:1'],
            addresses: () => ['192.0.2.1']
        }),
        hooks: {
            beforeSave: async (before, body, call) => hooks.current.beforeSave?.(before, body, call) ?? body,
            guard: async (before, after, call) => hooks.current.guard?.(before, after, call),
            afterChange: (before, after, call) => hooks.current.afterChange?.(before, after, call)
        },
        safety: {
            folders: [dataDir, own.persistent, own.runtime],
            sockets: [own.adminSocket],
            foreignWriter: null,
            addresses: () => ['192.0.2.1'],
            refusedTexts
        },
        mask: (config, site) => maskConfig(config, advancedOf([site]))
    });
    const idle = (): never => {
        throw new Error('Nothing is ordered in these tests');
    };
    const certificates = new Certificates({
        engine,
        store: certificateRows,
        db: store.db,
        clock,
        covers,
        log: store.log,
        accounts: new AcmeAccounts(store.db, store.keyring, clock),
        own: new EngineCertificates(() => null),
        ports: {
            http: { request: idle },
            tasks: { start: idle },
            dns: { writer: idle, default: () => null, existsIn: idle },
            events: { issued: idle, expiring: idle, failed: idle },
            settings: idle,
            systemCall: idle
        }
    });
    return {
        store,
        rows,
        engine,
        driver,
        hosts,
        certificates,
        clock,
        folders: own,
        hooks,
        settings,
        async close() {
            await engine.close();
            await store.remove();
        }
    };
}
