/** Builds generations: every part by hand, each owned by the generation's scope. */
import { mkdir } from 'node:fs/promises';

import type { EntityManager } from '@mikro-orm/sqlite';
import { type HookName, isFailure } from '@portico/sdk';
import {
    AskedTap,
    createGuest,
    type GenerationDocument,
    Grants,
    type Guest,
    labelOf,
    mergeSettings,
    openSettings,
    type Release,
    sandboxHeaders,
    Scope,
    sealSettings,
    viewSettings,
    within
} from '@portico/sdk/host';

import type { Route } from '../../server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../server/http/server.ts';
import { Handles } from './api/handles.ts';
import { checkTaps, createDoors, requirePages } from './api/host-api.ts';
import { createLocalDoors } from './api/local-api.ts';
import { openPluginDatabase, type PluginDatabase } from './database.ts';
import { checkPartners, permissionsOf } from './declared.ts';
import { FragmentTaps } from './fragments.ts';
import {
    type Generation,
    GenerationFault,
    type GenerationOptions,
    type GenerationTiming,
    type GuestSides,
    type HealthReport,
    type PluginHost,
    type Refusal,
    type ReleaseReport
} from './generation.ts';
import { confinedDoors, confinedGuest } from './isolation/confined.ts';
import type { Confine } from './isolation/error-owner.ts';
import { Leftovers } from './isolation/leak-detector.ts';
import { Network } from './network.ts';
import { Contracts } from './partners/contracts.ts';
import { providerOf } from './partners/provider.ts';
import type { MachinePorts, PluginHostPorts } from './ports.ts';
import { machinePrograms } from './programs/machine.ts';
import { Programs } from './programs/programs.ts';
import { createJournal, type Journal } from './records/journal.ts';
import { Uses } from './records/usage-log.ts';
import { assetRoutes } from './routes/assets.ts';
import { createPages } from './routes/pages.ts';
import { routesOf } from './routes/routes.ts';
import { PluginTickets } from './routes/tickets.ts';
import { Schedules, systemAlarm } from './schedules.ts';

const thisMachine: MachinePorts = { programs: machinePrograms, alarm: systemAlarm, root: '' };
const usual: GenerationTiming = { setupMs: 10_000, startMs: 30_000, stopMs: 8_000, healthMs: 5_000 };

export function createPluginHost(ports: PluginHostPorts): PluginHost {
    const journal = createJournal(ports.db, ports.http.recorder, () => ports.clock.now());
    const contracts = new Contracts((plugin) => ports.gateway.gate(plugin));
    return {
        prepare: (options) => Building.prepare({ ports, journal, contracts }, options),
        contracts,
        view: viewSettings,
        recover: () => journal.recover()
    };
}

interface Shared {
    readonly ports: PluginHostPorts;
    readonly journal: Journal;
    readonly contracts: Contracts;
}

class Building implements Generation {
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
    /** What the plugin holds in its own realm. */
    readonly #localScope = new Scope();
    readonly #ending = new AbortController();
    readonly #schedules: Schedules;
    readonly #tickets: PluginTickets;
    readonly #programs: Programs;
    readonly #network: Network;
    readonly #uses: Uses;
    readonly #leftovers: Leftovers;
    readonly #publishers = new Map<string, { run(payload: never): Promise<unknown> }>();
    /** Its server of the site's root. */
    #pages: HttpServer | null = null;
    #fragments!: FragmentTaps;
    #database!: PluginDatabase;
    #guest!: Guest;
    #settings: Readonly<Record<string, unknown>> = {};
    #mounted: (() => Promise<number>) | null = null;
    #closing: Promise<ReleaseReport> | null = null;
    #accepted: Promise<void> | null = null;

    static async prepare(shared: Shared, options: GenerationOptions): Promise<Generation> {
        const building = new Building(shared, options);
        try {
            await building.#prepare();
            return building;
        } catch (error) {
            await building.close('it could not be prepared');
            throw error;
        }
    }

    private constructor(shared: Shared, options: GenerationOptions) {
        const { ports } = shared;
        const { machine = thisMachine } = ports;
        const { manifest, version } = options.plugin;
        this.name = manifest.name;
        this.version = version;
        this.#shared = shared;
        this.#options = options;
        this.#timing = { ...usual, ...options.timing };
        this.#grants = new Grants(this.name, manifest.capabilities ?? {}, options.grants, (capability) =>
            this.#uses.refused(capability)
        );
        this.#schedules = new Schedules({
            plugin: this.name,
            clock: ports.clock,
            db: ports.db,
            log: this.#log(),
            signal: this.#ending.signal,
            alarm: machine.alarm
        });
        this.#tickets = new PluginTickets(ports.clock, (caller) => ports.renew(caller));
        this.#leftovers = new Leftovers(ports.http.checkReturns);
        this.#uses = new Uses({
            plugin: this.name,
            recorder: ports.http.recorder,
            log: this.#log(),
            clock: ports.clock
        });
        const local = { grants: this.#grants, scope: this.#localScope, forbidden: () => ports.forbidden() };
        this.#programs = new Programs({
            ...local,
            machine: machine.programs,
            folder: options.dataDir,
            used: (file, args, user) => this.#uses.exec(file, args, user)
        });
        this.#network = new Network({ ...local, network: ports.network, signal: this.#ending.signal });
    }

    async #prepare(): Promise<void> {
        const { plugin, definition, dataDir, settings } = this.#options;
        const { ports } = this.#shared;
        await mkdir(dataDir, { recursive: true, mode: 0o700 });
        checkPartners(this.#options);
        this.#guest = await this.#createGuest();
        this.definition = await this.#guest.define({});
        this.#settings = await this.#readSettings(
            openSettings(settings, labelOf(this.name, plugin.package), ports.keyring)
        );
        try {
            this.#database = await openPluginDatabase({
                dataDir,
                entities: definition.entities,
                migrations: definition.migrations
            });
        } catch (error) {
            throw new GenerationFault('mounted', 'MIGRATION_FAILED', messageOf(error), { cause: error });
        }
        this.document = await this.#setup();
        this.#fragments = new FragmentTaps({
            plugin: this.name,
            version: this.version,
            guest: this.#guest,
            document: this.document,
            port: ports.fragments,
            log: this.#log(),
            signal: this.#ending.signal
        });
        try {
            checkTaps(this.document.taps, this.#grants, (hook) => ports.hooks.kindOf(hook));
            requirePages(this.document.assets, this.#grants);
            this.server = this.#createServer(await assetRoutes(this.#options.folder, this.document.assets));
            this.#pages = await createPages({
                name: `${this.name} ${this.version}`,
                folder: this.#options.folder,
                assets: this.document.assets,
                http: ports.http
            });
        } catch (error) {
            throw new GenerationFault('mounted', 'REGISTRATION_INVALID', messageOf(error), { cause: error });
        }
    }

    async mount(): Promise<void> {
        const { ports, contracts } = this.#shared;
        const owner = { plugin: this.name, version: this.version, gate: ports.gateway.gate(this.name) };
        for (const { name, kind, timeoutSeconds } of this.document.hooks) {
            const published = ports.hooks.define(
                name as HookName,
                kind as never,
                timeoutSeconds === undefined ? {} : { timeoutSeconds }
            );
            this.#publishers.set(name, published as never);
            this.#scope.own('hook', name, () => ports.hooks.withdraw(name));
        }
        for (const { tap, hook, order } of this.document.taps) {
            const untap = ports.hooks.tap(
                owner,
                hook as HookName,
                (async (payload: unknown, call: { signal: AbortSignal }) =>
                    (await this.#guest.tap(new AskedTap(tap, payload, call))).result) as never,
                order
            );
            this.#scope.own('tap', hook, untap);
        }
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
            await this.#leftovers.looking(() =>
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
        return [
            ...this.#fragments.health(),
            ...(await Promise.all(
                this.document.health.map(async (name): Promise<HealthReport> => {
                    try {
                        return {
                            ...(await within(this.#timing.healthMs, (signal) =>
                                this.#guest.health({
                                    name,
                                    signal: AbortSignal.any([signal, this.#ending.signal])
                                })
                            )),
                            name
                        };
                    } catch (error) {
                        return { name, state: 'failed', evidence: messageOf(error) };
                    }
                })
            ))
        ];
    }

    async seal(change: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
        const { plugin, settings } = this.#options;
        const { keyring } = this.#shared.ports;
        const label = labelOf(this.name, plugin.package);
        const merged = mergeSettings(this.#raw ?? openSettings(settings, label, keyring), change);
        await this.#guest.readSettings({ values: merged });
        return sealSettings(merged, this.definition.secrets, label, keyring);
    }

    async apply(settings: Readonly<Record<string, unknown>>): Promise<void> {
        const { plugin } = this.#options;
        this.#raw = openSettings(settings, labelOf(this.name, plugin.package), this.#shared.ports.keyring);
        const { values } = await this.#guest.readSettings({ values: this.#raw });
        this.#settings = values;
        await this.#leftovers.looking(() =>
            within(this.#timing.startMs, () => this.#guest.settings({ values }))
        );
        await this.#fragments.collect();
    }
    /** Accepted settings without their defaults. */
    #raw: Readonly<Record<string, unknown>> | null = null;

    async revoke(): Promise<void> {
        this.#network.revoke();
        await this.#programs.revoke();
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
        return this.#uses.refusals();
    }

    close(reason: string): Promise<ReleaseReport> {
        return (this.#closing ??= this.#close(reason));
    }

    async #close(reason: string): Promise<ReleaseReport> {
        const released: { kind: string; name: string }[] = [];
        const leaked: { kind: string; name: string; error: string }[] = [];
        const failures: string[] = [];
        const note = (release: Release): void => {
            released.push(...release.released);
            leaked.push(...release.leaked);
        };
        let cut = 0;
        const attempt = async (kind: string, work: () => Promise<void>): Promise<void> => {
            try {
                await work();
            } catch (error) {
                leaked.push({ kind, name: this.name, error: messageOf(error) });
            }
        };
        await attempt('routes', async () => {
            cut = (await this.#mounted?.()) ?? 0;
            if (this.#mounted !== null) {
                released.push(...this.document.routes.map(({ id }) => ({ kind: 'route', name: id })));
            }
            this.#mounted = null;
        });
        this.#ending.abort(new Error(`The plugin ${this.name} ends: ${reason}`));
        for (const name of this.#schedules.names()) {
            await attempt('schedule', async () => {
                await within(this.#timing.stopMs, () => this.#schedules.stop(name));
                released.push({ kind: 'schedule', name });
            });
        }
        if (this.#guest !== undefined) {
            try {
                failures.push(
                    ...(await within(this.#timing.stopMs, (signal) => this.#guest.stop({ signal }))).failures
                );
            } catch (error) {
                failures.push(messageOf(error));
            }
        }
        note(await this.#scope.release());
        if (this.#guest !== undefined) {
            await attempt('guest', async () => note(await this.#guest.end({})));
        }
        await attempt('audit', () => this.#uses.close());
        leaked.push(
            ...(await this.#leftovers.end()).map((left) => ({
                ...left,
                error: 'The plugin left it behind; it was ended'
            }))
        );
        this.#handles.clear();
        if (leaked.length > 0 || failures.length > 0) {
            this.#log().warn('A plugin did not end cleanly', { leaked, failures });
        }
        return { released, leaked, cut, failures };
    }

    async #createGuest(): Promise<Guest> {
        const { plugin, definition, dataDir } = this.#options;
        const { ports } = this.#shared;
        const permissions = permissionsOf(this.#options);
        const confine = this.#confine();
        const ownDoors = createDoors({
            ports,
            plugin: this.name,
            label: labelOf(this.name, plugin.package),
            grants: this.#grants,
            handles: this.#handles,
            scope: this.#scope,
            schedules: this.#schedules,
            tickets: this.#tickets,
            contracts: this.#shared.contracts,
            log: this.#log(),
            signal: this.#ending.signal,
            permissions,
            collectFragments: () => this.#fragments.collect(),
            runHook: async (name, payload) => this.#publishers.get(name)?.run(payload as never)
        });
        const local = createLocalDoors({
            ...confine,
            grants: this.#grants,
            scope: this.#localScope,
            dataDir,
            machine: ports.machine?.root ?? '',
            network: this.#network,
            programs: this.#programs,
            forbidden: () => ports.forbidden(),
            database: () => this.#database,
            write: (work) => this.#write(work)
        });
        const inThread = (sides: GuestSides): Guest =>
            confinedGuest(
                createGuest({
                    name: this.name,
                    version: plugin.version,
                    dataDir,
                    definition,
                    checkReturns: ports.http.checkReturns,
                    ...sides
                }),
                confine
            );
        const { realm = (sides: GuestSides) => inThread(sides) } = this.#options;
        return realm({ doors: confinedDoors(ownDoors, confine), local }, inThread);
    }

    /** Both ways in which it is known what is the plugin's: to blame it, and to clean up behind it. */
    #confine(): Confine {
        const { confine } = this.#options;
        const left = this.#leftovers;
        return {
            enter: (work) => left.enter(() => (confine === undefined ? work() : confine.enter(work))),
            leave: (work) => left.leave(() => (confine === undefined ? work() : confine.leave(work)))
        };
    }

    async #readSettings(
        values: Readonly<Record<string, unknown>>
    ): Promise<Readonly<Record<string, unknown>>> {
        this.#raw = values;
        try {
            return (await this.#guest.readSettings({ values })).values;
        } catch (error) {
            const faults = (isFailure(error) ? (error.data?.['errors'] ?? []) : []) as readonly {
                readonly path: string;
                readonly message: string;
            }[];
            const isMissing =
                faults.length > 0 && faults.every(({ message }) => message.endsWith('is required'));
            throw new GenerationFault(
                'loaded',
                isMissing ? 'SETTINGS_REQUIRED' : 'SETTINGS_INVALID',
                faults.map(({ message }) => message).join('; ') || messageOf(error),
                { cause: error, data: { errors: faults } }
            );
        }
    }

    async #setup(): Promise<GenerationDocument> {
        const { contracts } = this.#shared;
        const partners = this.definition.optional.filter((name) => contracts.has(name));
        const overdue = Symbol('overdue');
        let timer: NodeJS.Timeout | undefined;
        const { signal } = this.#options;
        const late = new Promise<typeof overdue>((resolve) => {
            timer = setTimeout(() => resolve(overdue), this.#timing.setupMs);
            signal?.addEventListener('abort', () => resolve(overdue), { once: true });
        });
        try {
            signal?.throwIfAborted();
            const document = await this.#leftovers.looking(() =>
                Promise.race([this.#guest.setup({ settings: this.#settings, partners }), late])
            );
            signal?.throwIfAborted();
            if (document === overdue) {
                throw new GenerationFault(
                    'mounted',
                    'SETUP_TIMEOUT',
                    `setup did not return within ${this.#timing.setupMs / 1000} s`
                );
            }
            return document;
        } catch (error) {
            throw error instanceof GenerationFault
                ? error
                : new GenerationFault('mounted', 'SETUP_FAILED', messageOf(error), { cause: error });
        } finally {
            clearTimeout(timer);
        }
    }

    #createServer(assets: readonly Route[]): HttpServer {
        const { ports, journal } = this.#shared;
        const prefix = `/api/plugins/${this.name}`;
        const entries = new Set(
            (this.#options.plugin.manifest.contributes?.pages ?? []).map(
                ({ entry }) => `${prefix}/${entry.replace(/^\/+/, '')}`
            )
        );
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
        return createHttpServer({
            name: `${this.name} ${this.version}`,
            prefix,
            routes: [...routes, ...assets],
            ports: ports.http,
            headers: (_route, path) => sandboxHeaders(entries, path)
        });
    }

    /** What its start writes is not yet a change that somebody relies on. */
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
            this.#leftovers
                .looking(() => this.#guest.partner({ name, present }))
                .catch((error: unknown) =>
                    this.#log().warn('A plugin failed to hear of a partner', {
                        partner: name,
                        present,
                        error
                    })
                );
        }
    }

    #log(): ReturnType<PluginHostPorts['log']['child']> {
        return this.#shared.ports.log.child({
            plugin: this.#options.plugin.manifest.name,
            version: this.#options.plugin.version
        });
    }
}

function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error);
}
