/** One generation of a plugin: its parts are built here by hand, and each belongs to one of its scopes. */
import { mkdir } from 'node:fs/promises';

import type { EntityManager } from '@mikro-orm/sqlite';
import { LeakDetector } from '@portico/registry';
import { isFailure, messageOf } from '@portico/sdk';
import { type GenerationDocument, Grants, type Guest, labelOf, Scope, within } from '@portico/sdk/host';

import type { Route } from '../../../server/http/route.ts';
import type { HttpServer } from '../../../server/http/server.ts';
import { ownerOf } from '../../../services/port.ts';
import { PluginAccessLog } from '../api/access-log.ts';
import { Handles } from '../api/handles.ts';
import { checkTaps, createHostApi, requirePages } from '../api/host-api.ts';
import { createLocalApi } from '../api/local-api.ts';
import type { PluginDatabase } from '../database.ts';
import { createReach, type Reach } from '../files/lent.ts';
import { FragmentTaps } from '../fragments.ts';
import { confinedApi } from '../isolation/confined.ts';
import { startGuest, withLeaks } from '../isolation/guest.ts';
import { Network } from '../network.ts';
import { providerOf } from '../partners/provider.ts';
import type { MachinePorts, PluginHostPorts } from '../ports.ts';
import { machinePrograms } from '../programs/machine.ts';
import { Programs } from '../programs/programs.ts';
import { PluginServices } from '../programs/services.ts';
import { UsageLog } from '../records/usage-log.ts';
import { assetRoutes } from '../routes/assets.ts';
import { createPages } from '../routes/pages.ts';
import { routesOf } from '../routes/routes.ts';
import { createPluginServer } from '../routes/server.ts';
import { PluginTickets } from '../routes/tickets.ts';
import { Schedules, systemAlarm } from '../schedules.ts';
import { GenerationSettings } from '../settings.ts';
import { checkedSettings, checkPartners, permissionsOf } from './declared.ts';
import {
    type Deprecation,
    type Generation,
    GenerationFault,
    type GenerationOptions,
    type GenerationTiming,
    type HealthReport,
    type Refusal,
    type ReleaseReport
} from './generation.ts';
import { checkHealth } from './health.ts';
import { type Publishers, registerHooks } from './registration.ts';
import { releaseGeneration } from './release.ts';
import { openMigrated, runSetup } from './setup.ts';
import type { Shared } from './shared.ts';

const thisMachine: MachinePorts = { programs: machinePrograms, alarm: systemAlarm, root: '' };
const usual: GenerationTiming = { setupMs: 10_000, startMs: 30_000, stopMs: 8_000, healthMs: 5_000 };

/** One generation of one plugin. Everything that it acquires is in one of its two scopes. */
export class PluginGeneration implements Generation {
    readonly name: string;
    readonly version: string;
    definition!: Generation['definition'];
    document!: GenerationDocument;
    server!: HttpServer;
    readonly #shared: Shared;
    readonly #options: GenerationOptions;
    readonly #timing: GenerationTiming;
    readonly #grants: Grants;
    readonly #handles = new Handles();
    /** What the host holds for the plugin. */
    readonly #scope = new Scope();
    /** What the plugin holds in its own runtime. */
    readonly #localScope = new Scope();
    readonly #ending = new AbortController();
    readonly #settings: GenerationSettings;
    readonly #schedules: Schedules;
    readonly #tickets: PluginTickets;
    readonly #programs: Programs;
    readonly #services: PluginServices;
    readonly #network: Network;
    readonly #accessLog: PluginAccessLog;
    readonly #reach: Reach;
    readonly #usageLog: UsageLog;
    readonly #leaks: LeakDetector;
    readonly #publishers: Publishers = new Map();
    /** The server of the site's root; null without the capability `pages`. */
    #pages: HttpServer | null = null;
    #fragments!: FragmentTaps;
    #database!: PluginDatabase;
    #guest!: Guest;
    #mounted: (() => Promise<number>) | null = null;
    #closing: Promise<ReleaseReport> | null = null;
    #accepted: Promise<void> | null = null;

    /** Builds a generation behind a closed gate. @throws GenerationFault after everything was released */
    static async prepare(shared: Shared, options: GenerationOptions): Promise<Generation> {
        const generation = new PluginGeneration(shared, options);
        try {
            await generation.#prepare();
            return generation;
        } catch (error) {
            await generation.close('it could not be prepared');
            throw error;
        }
    }

    private constructor(shared: Shared, options: GenerationOptions) {
        const { ports } = shared;
        const { machine = thisMachine, clock, http } = ports;
        const { manifest, version } = options.plugin;
        this.name = manifest.name;
        this.version = version;
        this.#shared = shared;
        this.#options = options;
        this.#timing = { ...usual, ...options.timing };
        const label = labelOf(this.name, options.plugin.package);
        this.#settings = new GenerationSettings(options.settings, label, ports.keyring);
        this.#grants = new Grants(this.name, manifest.capabilities ?? {}, options.grants, (capability) =>
            this.#usageLog.refused(capability)
        );
        this.#schedules = new Schedules({
            plugin: this.name,
            clock,
            db: ports.db,
            log: this.#log(),
            signal: this.#ending.signal,
            alarm: machine.alarm
        });
        this.#tickets = new PluginTickets(clock, (caller) => ports.renew(caller));
        this.#leaks = new LeakDetector(http.checkReturns);
        this.#usageLog = new UsageLog({
            plugin: this.name,
            recorder: http.recorder,
            log: this.#log(),
            clock
        });
        const local = { grants: this.#grants, scope: this.#localScope, forbidden: () => ports.forbidden() };
        const used: UsageLog['exec'] = (...use) => this.#usageLog.exec(...use);
        const [folder, owner] = [options.dataDir, ownerOf(this.name, options.plugin.package)];
        this.#programs = new Programs({ ...local, machine: machine.programs, folder, used });
        this.#services = new PluginServices({ grants: this.#grants, services: ports.services, owner, used });
        this.#reach = createReach(this.#grants, options.dataDir, ports);
        this.#network = new Network({ ...local, network: ports.network, signal: this.#ending.signal });
        this.#accessLog = new PluginAccessLog({ grants: this.#grants, log: ports.accessLog, clock });
    }

    async #prepare(): Promise<void> {
        const { definition, dataDir } = this.#options;
        const { ports } = this.#shared;
        await mkdir(dataDir, { recursive: true, mode: 0o700 });
        checkPartners(this.#options);
        this.#guest = await this.#createGuest();
        this.definition = checkedSettings(await this.#guest.define({}));
        await this.#settings.read(this.#guest);
        this.#database = await openMigrated(dataDir, definition);
        const { signal } = this.#options;
        this.document = await runSetup({
            guest: this.#guest,
            settings: this.#settings.values,
            partners: this.definition.optional.filter((name) => this.#shared.contracts.has(name)),
            leaks: this.#leaks,
            timeoutMs: this.#timing.setupMs,
            ...(signal === undefined ? {} : { signal })
        });
        this.#fragments = new FragmentTaps({
            plugin: this.name,
            version: this.version,
            guest: this.#guest,
            document: this.document,
            port: ports.fragments,
            log: this.#log(),
            signal: this.#ending.signal,
            mayReach: (host) => this.#network.covers(host)
        });
        try {
            checkTaps(this.document.taps, this.#grants, (hook) => ports.hooks.kindOf(hook));
            requirePages(this.document.assets, this.#grants);
            this.server = this.#createServer(await assetRoutes(this.#options.folder, this.document.assets));
            const { assets } = this.document;
            const name = `${this.name} ${this.version}`;
            this.#pages = await createPages({ name, folder: this.#options.folder, assets, http: ports.http });
        } catch (error) {
            throw new GenerationFault('mounted', 'REGISTRATION_INVALID', messageOf(error), { cause: error });
        }
    }

    async mount(): Promise<void> {
        const { ports, contracts } = this.#shared;
        registerHooks({
            hooks: ports.hooks,
            owner: { plugin: this.name, version: this.version, gate: ports.gateway.gate(this.name) },
            document: this.document,
            guest: this.#guest,
            scope: this.#scope,
            reach: this.#reach,
            publishers: this.#publishers
        });
        try {
            await ports.gateway.mount(this.name, this.server, this.#pages);
        } catch (error) {
            throw new GenerationFault('mounted', 'REGISTRATION_INVALID', messageOf(error), { cause: error });
        }
        this.#mounted = () => ports.gateway.unmount(this.name);
        const withdraw = contracts.provide(
            this.name,
            providerOf({
                methods: this.document.contract ?? [],
                guest: this.#guest,
                handles: this.#handles,
                ending: this.#ending.signal,
                accept: () => this.#accept()
            })
        );
        this.#scope.own('contract', this.name, withdraw);
        this.#scope.own(
            'partners',
            this.name,
            contracts.watch((name, present) => this.#partner(name, present))
        );
        await this.#fragments.collect();
    }

    async start(): Promise<void> {
        try {
            await this.#leaks.looking(() =>
                within(this.#timing.startMs, () => this.#guest.start({ signal: this.#ending.signal }))
            );
        } catch (error) {
            throw new GenerationFault(
                'running',
                isFailure(error) ? 'START_FAILED' : 'START_TIMEOUT',
                messageOf(error),
                { cause: error }
            );
        }
    }

    async health(): Promise<readonly HealthReport[]> {
        const limits = { timeoutMs: this.#timing.healthMs, ending: this.#ending.signal };
        const checks = await checkHealth(this.#guest, this.document.health, limits);
        const services = await this.#services.health();
        return [...this.#fragments.health(), ...services, ...this.#accessLog.health(), ...checks];
    }

    seal(change: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
        return this.#settings.seal(this.#guest, change, this.definition.secrets);
    }

    async apply(settings: Readonly<Record<string, unknown>>): Promise<void> {
        const values = await this.#settings.accept(this.#guest, settings);
        await this.#leaks.looking(() => within(this.#timing.startMs, () => this.#guest.settings({ values })));
        await this.#fragments.collect();
    }

    async revoke(): Promise<void> {
        this.#network.revoke();
        await Promise.all([this.#programs.revoke(), this.#services.revoke()]);
    }

    held(): readonly { readonly kind: string; readonly name: string }[] {
        return [
            ...(this.#mounted === null
                ? []
                : this.document.routes.map(({ id }) => ({ kind: 'route', name: id }))),
            ...this.#scope.held(),
            ...this.#localScope.held(),
            ...this.#schedules.names().map((name) => ({ kind: 'schedule', name }))
        ];
    }

    refused(): readonly Refusal[] {
        return this.#usageLog.refusals();
    }

    readonly deprecations = (): readonly Deprecation[] => this.#usageLog.deprecations();

    close(reason: string): Promise<ReleaseReport> {
        return (this.#closing ??= this.#close(reason));
    }

    #close(reason: string): Promise<ReleaseReport> {
        const mounted = this.#mounted;
        const unmount = async (): Promise<number> => {
            const cut = (await mounted?.()) ?? 0;
            this.#mounted = null;
            return cut;
        };
        return releaseGeneration({
            name: this.name,
            reason,
            unmount,
            routes: mounted === null ? [] : this.document.routes.map(({ id }) => id),
            ending: this.#ending,
            schedules: this.#schedules,
            stopMs: this.#timing.stopMs,
            guest: (this.#guest as Guest | undefined) ?? null,
            scope: this.#scope,
            usageLog: this.#usageLog,
            leaks: this.#leaks,
            handles: this.#handles,
            log: this.#log()
        });
    }

    async #createGuest(): Promise<Guest> {
        const { plugin, definition, dataDir, runtime } = this.#options;
        const { ports } = this.#shared;
        const confine = withLeaks(this.#options.confine, this.#leaks);
        const api = createHostApi({
            ports,
            plugin: this.name,
            label: labelOf(this.name, plugin.package),
            grants: this.#grants,
            handles: this.#handles,
            scope: this.#scope,
            schedules: this.#schedules,
            tickets: this.#tickets,
            contracts: this.#shared.contracts,
            services: this.#services,
            accessLog: this.#accessLog,
            usage: this.#usageLog,
            reach: this.#reach,
            log: this.#log(),
            signal: this.#ending.signal,
            permissions: permissionsOf(this.#options),
            collectFragments: () => this.#fragments.collect(),
            runHook: async (name, payload) => this.#publishers.get(name)?.run(payload as never) // the plugin's own payload
        });
        const local = createLocalApi({
            ...confine,
            scope: this.#localScope,
            reach: this.#reach,
            network: this.#network,
            programs: this.#programs,
            database: () => this.#database,
            write: (work) => this.#write(work)
        });
        const guest = { name: this.name, version: plugin.version, dataDir, definition };
        return startGuest(
            { ...guest, checkReturns: ports.http.checkReturns },
            { hostApi: confinedApi(api, confine), local },
            confine,
            runtime
        );
    }

    #createServer(assets: readonly Route[]): HttpServer {
        const { ports, journal } = this.#shared;
        const routes = routesOf(this.document.routes, {
            plugin: this.name,
            guest: this.#guest,
            handles: this.#handles,
            journal,
            db: ports.db,
            permissions: permissionsOf(this.#options),
            accept: () => this.#accept(),
            isPublic: (reason) => this.#grants.has('public', reason),
            takeTicket: async (ticket, permission) => this.#tickets.take(ticket, permission)
        });
        return createPluginServer(
            this.#options.plugin,
            [...routes, ...assets],
            ports.http,
            this.#options.grants()
        );
    }

    /** Writes of `onStart` come before the first request, so they do not count as accepted changes. */
    async #write<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        if (this.#mounted !== null) {
            await this.#accept();
        }
        return this.#database.write(work);
    }

    #accept(): Promise<void> {
        return (this.#accepted ??= (this.#options.accepted?.() ?? Promise.resolve()).catch(
            (error: unknown) => {
                this.#accepted = null;
                throw error;
            }
        ));
    }

    #partner(name: string, present: boolean): void {
        if (this.definition.optional.includes(name) || this.definition.requires.includes(name)) {
            const note = (error: unknown): void =>
                this.#log().warn('A plugin failed while it was told about a partner', {
                    partner: name,
                    error
                });
            this.#leaks.looking(() => this.#guest.partner({ name, present })).catch(note);
        }
    }

    #log(): ReturnType<PluginHostPorts['log']['child']> {
        return this.#shared.ports.log.child({ plugin: this.name, version: this.version });
    }
}
