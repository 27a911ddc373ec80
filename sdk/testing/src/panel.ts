/** The panel that a plugin under test runs in: the panel's own gateway, servers, tasks, idempotency, hooks and plugin runtime, with doubles at its outer ports. */
import { join } from 'node:path';

import {
    type AuditEntry,
    type Caller,
    createGateway,
    createHttpServer,
    createIdempotency,
    createKeyring,
    createPluginHost,
    type Database,
    fail,
    type Gateway,
    type HttpPorts,
    idempotencyEntities,
    idempotencyMigrations,
    openDatabase,
    Permissions,
    permissionsOf,
    type PluginHost,
    pluginHostEntities,
    pluginHostMigrations,
    systemCaller,
    taskEntities,
    taskMigrations,
    Tasks,
    unknownPath
} from '@portico/core/plugin-runtime';
import type { Notification } from '@portico/sdk';

import { TestApi } from './api.ts';
import { TestClock, TestSchedules } from './clock.ts';
import { TestFaults } from './faults.ts';
import { TestHooks } from './hooks.ts';
import { TestHosts } from './hosts.ts';
import { silence, TestLog } from './log.ts';
import { TestMandates } from './mandates.ts';
import { TestNetwork } from './network.ts';
import type { TestPackage } from './package.ts';
import { type FakeContract, TestPartners } from './partners.ts';
import { People } from './people.ts';
import { TestPrograms } from './programs.ts';
import { TestTasks } from './tasks.ts';

/** An entry of the audit log. */
export interface AuditRecord extends AuditEntry {
    readonly username: string | null;
}

/** What a panel is made of. */
export interface TestPanelOptions {
    /** Folder of this test, absolute. */
    readonly root: string;
    readonly package: TestPackage;
    readonly now: number;
    readonly patienceMs: number;
    readonly quiet: boolean;
    readonly partners: Readonly<Record<string, FakeContract>>;
}

/** Everything around a plugin under test that outlives its generations. */
export class TestPanel {
    readonly url: string;
    readonly host: PluginHost;
    readonly people: People;
    readonly api: TestApi;
    readonly clock: TestClock;
    readonly schedules: TestSchedules;
    readonly faults: TestFaults;
    readonly hooks: TestHooks;
    readonly hosts = new TestHosts();
    readonly mandates: TestMandates;
    readonly network = new TestNetwork();
    readonly programs = new TestPrograms();
    readonly partners: TestPartners;
    readonly tasks: TestTasks;
    readonly log: TestLog;
    readonly audit: AuditRecord[] = [];
    readonly notifications: Notification[] = [];
    readonly #gateway: Gateway;
    readonly #tasks: Tasks;
    readonly #db: Database;

    /** Builds a panel and listens on a free port of this machine. */
    static async start(options: TestPanelOptions): Promise<TestPanel> {
        const db = await openDatabase({
            file: join(options.root, 'panel.db'),
            entities: [...taskEntities, ...pluginHostEntities, ...idempotencyEntities],
            migrations: [...taskMigrations, ...pluginHostMigrations, ...idempotencyMigrations]
        });
        const clock = new TestClock(options.now, options.patienceMs);
        const tasks = await Tasks.open({
            db,
            log: silence,
            clock: { now: () => clock.now().getTime() },
            timing: { saveMs: 0 }
        });
        const { manifest } = options.package;
        const permissions = new Permissions();
        permissions.register(manifest.name, permissionsOf(options.package));
        const people = new People(manifest.name, permissions);
        const keyring = createKeyring(options.root);
        const audit: AuditRecord[] = [];
        const record = async (entry: AuditEntry): Promise<void> =>
            void audit.push({ ...entry, username: entry.actor.username });
        const http: HttpPorts = {
            authenticator: people,
            recorder: { record: (_tx, entry) => record(entry), recordAlone: record, refused: record },
            idempotency: createIdempotency({ db, keyring, clock: { now: () => clock.now().getTime() } }),
            clientAddress: (peer) => peer,
            corsOrigins: () => [],
            log: silence,
            checkReturns: true
        };
        const unknown = unknownPath((plugin) =>
            plugin === manifest.name ? fail.PLUGIN_DISABLED({ plugin }) : fail.PLUGIN_NOT_FOUND({ plugin })
        );
        const core = createHttpServer({ name: 'core', prefix: '', routes: [], ports: http, unknown });
        const gateway = await createGateway({ core, log: silence, drainMs: options.patienceMs });
        const { port } = await gateway.listen('127.0.0.1', 0);
        return new TestPanel({
            ...options,
            db,
            clock,
            tasks,
            permissions,
            people,
            keyring,
            audit,
            http,
            gateway,
            port
        });
    }

    private constructor(parts: TestPanelOptions & Parts) {
        const { root, patienceMs, quiet, db, clock, tasks, people, keyring, audit, http, gateway } = parts;
        this.url = `http://127.0.0.1:${parts.port}`;
        this.people = people;
        this.mandates = new TestMandates(() => clock.now().getTime());
        this.clock = clock;
        this.audit = audit;
        this.schedules = new TestSchedules(clock, patienceMs);
        this.faults = new TestFaults(patienceMs);
        this.hooks = new TestHooks(patienceMs);
        this.log = new TestLog(quiet);
        this.api = new TestApi(http, parts.permissions);
        this.#gateway = gateway;
        this.#tasks = tasks;
        this.#db = db;
        this.tasks = new TestTasks(tasks, db, http.recorder, system, patienceMs);
        this.host = createPluginHost({
            gateway: this.api.behind(gateway),
            http,
            hooks: this.hooks.host,
            db,
            tasks,
            keyring,
            clock: { now: () => clock.now().getTime() },
            log: this.log,
            notify: (notification) => void this.notifications.push(notification),
            renew: (caller) =>
                caller.kind === 'mandate' ? this.mandates.renew(caller) : people.renew(caller),
            hosts: this.hosts.hostsPort,
            certificates: this.hosts.certificatesPort,
            network: this.network.port,
            machine: { programs: this.programs, alarm: clock.alarm, root: join(root, 'machine') },
            fragments: { put: async () => null, drop: async () => [] },
            mandates: this.mandates,
            isDangerous: (permission) => parts.permissions.isDangerous(permission),
            forbidden: () => []
        });
        this.partners = new TestPartners(this.host.contracts, gateway, parts.partners);
    }

    /** Ends what the panel itself holds. */
    async close(): Promise<void> {
        await this.#gateway.close();
        await this.#tasks.close();
        await this.#db.close();
    }
}

interface Parts {
    readonly db: Database;
    readonly clock: TestClock;
    readonly tasks: Tasks;
    readonly permissions: Permissions;
    readonly people: People;
    readonly keyring: ReturnType<typeof createKeyring>;
    readonly audit: AuditRecord[];
    readonly http: HttpPorts;
    readonly gateway: Gateway;
    readonly port: number;
}

/** The panel itself, which may see every task. */
const system: Caller = systemCaller('system');
