/** The panel that a plugin under test runs in: the panel's own gateway, servers, tasks, idempotency, hooks and plugin runtime, with doubles at its outer ports. */
import { join } from 'node:path';

import {
    type AuditEntry,
    type Caller,
    createGateway,
    createHttpServer,
    createKeyring,
    createPluginHost,
    type Database,
    fail,
    type Gateway,
    type HttpPorts,
    idempotencyEntities,
    IdempotencyKeys,
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

import { TestApi } from '../api.ts';
import { TestAccessLog } from '../doubles/access-log.ts';
import { TestClock, TestSchedules } from '../doubles/clock.ts';
import { TestHosts } from '../doubles/hosts.ts';
import { MachineServices } from '../doubles/machine/machine-services.ts';
import { TestNetwork } from '../doubles/machine/network.ts';
import { TestPrograms } from '../doubles/machine/programs.ts';
import { TestServices } from '../doubles/machine/services.ts';
import { TestMandates } from '../doubles/mandates.ts';
import { TestPanelService } from '../doubles/panel-service.ts';
import { TestPartners } from '../doubles/partners.ts';
import { People } from '../doubles/people.ts';
import { TestFaults } from '../faults.ts';
import { TestHooks } from '../hooks.ts';
import { type LogLine, silence, TestLog } from '../log.ts';
import { TestTasks } from '../tasks.ts';
import type { TestPackage } from './package.ts';

/** An entry of the audit log. */
export interface AuditRecord extends AuditEntry {
    readonly username: string | null;
}

/** What a panel is made of. */
export interface TestPanelOptions {
    /** Folder of this test, absolute. */
    readonly root: string;
    /** Folder that stands for the root of the file system; empty for the real one, with the machine's own programs. */
    readonly machine: string;
    readonly package: TestPackage;
    readonly now: number;
    readonly patienceMs: number;
    readonly quiet: boolean;
    /** Absolute paths of the test's machine. */
    readonly forbidden: readonly string[];
}

/** What has to be opened before a panel can be built of it. */
export interface OpenedPanel {
    readonly options: TestPanelOptions;
    readonly db: Database;
    readonly clock: TestClock;
    /** The same clock as the panel's parts take it. */
    readonly milliseconds: { now(): number };
    readonly tasks: Tasks;
    readonly permissions: Permissions;
    readonly people: People;
    readonly keyring: ReturnType<typeof createKeyring>;
    readonly audit: readonly AuditRecord[];
    readonly http: HttpPorts;
    readonly gateway: Gateway;
    readonly port: number;
}

/** Opens the database, and listens on a free port of this machine. */
export async function openPanel(options: TestPanelOptions): Promise<OpenedPanel> {
    const { root, package: plugin, patienceMs } = options;
    const db = await openDatabase({
        file: join(root, 'panel.db'),
        entities: [...taskEntities, ...pluginHostEntities, ...idempotencyEntities],
        migrations: [...taskMigrations, ...pluginHostMigrations, ...idempotencyMigrations]
    });
    const clock = new TestClock(options.now, patienceMs);
    const milliseconds = { now: () => clock.now().getTime() };
    const tasks = await Tasks.open({ db, log: silence, clock: milliseconds, timing: { saveMs: 0 } });
    const permissions = new Permissions();
    permissions.register(plugin.manifest.name, permissionsOf(plugin));
    const people = new People(plugin.manifest.name, permissions);
    const keyring = createKeyring(root);
    const audit: AuditRecord[] = [];
    const record = async (entry: AuditEntry): Promise<void> =>
        void audit.push({ ...entry, username: entry.actor.username });
    const http: HttpPorts = {
        authenticator: people,
        recorder: { record: (_tx, entry) => record(entry), recordAlone: record, refused: record },
        idempotency: new IdempotencyKeys({ db, keyring, clock: milliseconds }),
        clientAddress: (peer) => peer,
        corsOrigins: () => [],
        origin: (host) => `http://${host}`,
        log: silence,
        checkReturns: true
    };
    const unknown = unknownPath((name) =>
        name === plugin.manifest.name
            ? fail.PLUGIN_DISABLED({ plugin: name })
            : fail.PLUGIN_NOT_FOUND({ plugin: name })
    );
    const core = createHttpServer({ name: 'core', prefix: '', routes: [], ports: http, unknown });
    const gateway = await createGateway({ core, log: silence, drainMs: patienceMs });
    const { port } = await gateway.listen('127.0.0.1', 0);
    return {
        options,
        db,
        clock,
        milliseconds,
        tasks,
        permissions,
        people,
        keyring,
        audit,
        http,
        gateway,
        port
    };
}

/** Everything around a plugin under test that outlives its generations. */
export class TestPanel {
    /** Visits to hosts, as the proxy engine records them. */
    readonly accessLog: TestAccessLog;
    /** The panel's own routes, which the plugin may call. */
    readonly api: TestApi;
    readonly clock: TestClock;
    readonly schedules: TestSchedules;
    readonly faults: TestFaults;
    readonly hooks: TestHooks;
    /** Hosts and certificates of the panel. */
    readonly hosts = new TestHosts();
    /** What people let the plugin do in their absence. */
    readonly mandates: TestMandates;
    readonly network: TestNetwork;
    /** The panel itself: where it listens, and how a copy of it boots. */
    readonly panel = new TestPanelService();
    readonly programs = new TestPrograms();
    /** Empty with `machine: 'real'`: services are then processes of this machine, which end with the test. */
    readonly services: TestServices;
    readonly partners: TestPartners;
    readonly tasks: TestTasks;
    readonly log: readonly LogLine[];
    readonly audit: readonly AuditRecord[];
    readonly notifications: Notification[] = [];
    /** @internal */
    readonly plugins: PluginHost;
    /** @internal */
    readonly opened: OpenedPanel;
    readonly #machineServices: MachineServices | null;

    /** @internal */
    constructor(opened: OpenedPanel) {
        const { options, db, clock, milliseconds, tasks, people, keyring, http, gateway } = opened;
        const { root, machine, patienceMs, forbidden } = options;
        const log = new TestLog(options.quiet);
        this.opened = opened;
        this.clock = clock;
        this.log = log.lines;
        this.audit = opened.audit;
        this.mandates = new TestMandates(milliseconds.now);
        this.network = new TestNetwork(machine === '');
        this.programs = new TestPrograms(machine === '');
        this.schedules = new TestSchedules(clock, patienceMs);
        this.faults = new TestFaults(patienceMs);
        this.hooks = new TestHooks(patienceMs);
        this.services = new TestServices(() => clock.now());
        this.#machineServices = machine === '' ? new MachineServices(join(root, 'services')) : null;
        this.accessLog = new TestAccessLog(() => clock.now());
        this.api = new TestApi(http, opened.permissions);
        this.tasks = new TestTasks(tasks, db, http.recorder, system, patienceMs);
        this.plugins = createPluginHost({
            gateway: this.api.behind(gateway),
            http,
            hooks: this.hooks.host,
            db,
            tasks,
            keyring,
            clock: milliseconds,
            log,
            notify: (notification) => void this.notifications.push(notification),
            renew: (caller) =>
                caller.kind === 'mandate' ? this.mandates.renew(caller) : people.renew(caller),
            hosts: this.hosts.hostsPort,
            certificates: this.hosts.certificatesPort,
            accessLog: this.accessLog,
            network: this.network.port,
            machine: { programs: this.programs, alarm: clock.alarm, root: machine },
            services: this.#machineServices ?? this.services,
            fragments: { put: async () => null, drop: async () => [] },
            mandates: this.mandates,
            panel: this.panel.port,
            isDangerous: (permission) => opened.permissions.isDangerous(permission),
            forbidden: () => forbidden.map((folder) => join(machine, folder))
        });
        this.partners = new TestPartners(this.plugins, gateway, opened.permissions, root);
    }

    /** Ends what the panel itself holds. @internal */
    async closePanel(): Promise<void> {
        await this.partners.close();
        await this.#machineServices?.end();
        await this.opened.gateway.close();
        await this.opened.tasks.close();
        await this.opened.db.close();
    }
}

/** The panel itself, which may see every task. */
const system: Caller = systemCaller('system');
