/** A panel in memory with one plugin in it, for that plugin's tests. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Capabilities } from '../boundary/grants.ts';
import { partnerProxy } from '../boundary/partners.ts';
import { plainCopy } from '../boundary/plain.ts';
import type { GenerationDocument } from '../boundary/protocol.ts';
import { labelOf, mergeSettings, openSettings, sealSettings, viewSettings } from '../boundary/settings.ts';
import type { Db, Health, Notification } from '../context.ts';
import { isDefinition, type PluginDefinition, type Remote } from '../definition.ts';
import type { Who } from './actors.ts';
import { createClient, type TestClient } from './client.ts';
import type {
    TestApi,
    TestFaults,
    TestHooks,
    TestNetwork,
    TestPartners,
    TestPrograms,
    TestSchedules,
    TestServing,
    TestTasks
} from './controls.ts';
import { type AuditRecord, Front } from './front.ts';
import { type Boundary, type StopReport, TestGeneration, type TestTiming } from './generation.ts';
import { readTestPackage, type TestManifest, type TestPackage } from './manifest.ts';
import type { FakeContract } from './partners.ts';
import type { TestClock } from './schedules.ts';
import { type LogLine, World } from './world.ts';

/** What a test's panel is made of; everything may be left out. */
export interface TestHostOptions {
    /** The plugin's package: a folder, or anything in it, such as the test's `import.meta.url`. Its package.json is the manifest. */
    readonly package?: string | URL;
    /** In place of what the package says, or of a package: then the plugin is named `test` and asks for what stands here. */
    readonly manifest?: Partial<TestManifest>;
    /** As an admin would set them. */
    readonly settings?: Readonly<Record<string, unknown>>;
    /** What the admin granted; default: all that the manifest asks for. */
    readonly grants?: Capabilities;
    /** Fakes of the plugins that this one works with. */
    readonly partners?: Readonly<Record<string, FakeContract>>;
    /** When the test's clock begins; default: now. */
    readonly now?: Date | number;
    /** Default: `copy`, which finds what could not cross between threads. */
    readonly boundary?: Boundary;
    readonly timing?: Partial<TestTiming>;
    /** Bugs of the plugin are not shown on standard error, only in `log`: for tests that provoke them. */
    readonly quiet?: boolean;
}

/** A panel with one plugin in it. Close it, or write `await using`: what the plugin left behind is then named. */
export interface TestHost extends AsyncDisposable {
    readonly name: string;
    readonly version: string;
    /** The plugin's private folder; gone after `close`. */
    readonly dataDir: string;
    /** Where the plugin's granted folders really are: `/var/www` is `<machine>/var/www`. */
    readonly machine: string;
    /** What the plugin registered. */
    readonly document: GenerationDocument;
    /** Somebody who asks. */
    as(who: Who): TestClient;
    readonly api: TestApi;
    readonly clock: TestClock;
    readonly schedules: TestSchedules;
    readonly faults: TestFaults;
    readonly hooks: TestHooks;
    readonly network: TestNetwork;
    readonly partners: TestPartners;
    readonly programs: TestPrograms;
    readonly serving: TestServing;
    readonly tasks: TestTasks;
    /** The plugin's own database, past the plugin. */
    readonly db: Db;
    readonly log: readonly LogLine[];
    readonly audit: readonly AuditRecord[];
    readonly notifications: readonly Notification[];
    /** Settings as anybody may read them: secrets are `{ set: true }`. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** Changes settings as an admin does; null takes one back to its default. @throws VALIDATION_FAILED 40001, and nothing changed */
    setSettings(change: Readonly<Record<string, unknown>>): Promise<void>;
    /** Changes what the admin granted, at once. */
    setGrants(grants: Capabilities): void;
    /** Takes capabilities away: all of a kind, or one entry of its list. */
    refuse(capability: keyof Capabilities, entry?: string): void;
    health(): Promise<readonly (Health & { readonly name: string })[]>;
    /** The plugin's contract, as another plugin sees it. */
    contract<C>(caller?: { readonly plugin?: string; readonly who?: Who }): Remote<C>;
    /** Enables it again on its data, as after a restart of the panel; `meanwhile` is the time that passed. @throws PluginFailure */
    start(meanwhile?: Parameters<TestClock['advance']>[0]): Promise<void>;
    /** Disables it, and says what was let go of. */
    stop(): Promise<StopReport>;
    /** Stops and starts it. @throws PluginFailure; LeakError when something was left */
    restart(meanwhile?: Parameters<TestClock['advance']>[0]): Promise<void>;
    /** Ends everything, and removes every file. @throws LeakError when the plugin left something behind, or failed to stop */
    close(): Promise<void>;
}

/** The plugin left something behind. */
export class LeakError extends Error {
    /** One line for each thing. */
    readonly leaks: readonly string[];

    constructor(plugin: string, leaks: readonly string[]) {
        super(`${plugin} left behind when it stopped:\n${leaks.map((leak) => `  - ${leak}`).join('\n')}`);
        this.name = 'LeakError';
        this.leaks = leaks;
    }
}

const usual: TestTiming = { setupMs: 10_000, startMs: 30_000, stopMs: 8_000, healthMs: 5_000 };

/**
 * Starts a plugin in a panel in memory.
 *
 * @example `await using host = await createTestHost(hello, { package: import.meta.url }); const { data } = await host.as('viewer').get('/greetings/Ann');`
 * @throws PluginFailure with the stage and code that the panel would put on the plugin's record
 */
export async function createTestHost(
    definition: PluginDefinition<never> | PluginDefinition,
    options: TestHostOptions = {}
): Promise<TestHost> {
    const code = definition as PluginDefinition;
    if (!isDefinition(code)) {
        throw new TypeError('createTestHost takes what definePlugin returned');
    }
    const pkg = packageOf(code, options);
    const absent = code.requires.filter((name) => options.partners?.[name] === undefined);
    if (absent.length > 0) {
        throw new TypeError(
            `${pkg.manifest.name} requires ${absent.join(' and ')}: give createTestHost a fake of each, as partners: { ${absent[0]}: { … } }`
        );
    }
    const root = await mkdtemp(join(tmpdir(), 'portico-test-'));
    const host = new Host(root, pkg, code, options);
    try {
        await mkdir(join(root, 'data'), { mode: 0o700 });
        for (const folder of [
            '',
            ...(pkg.manifest.capabilities?.files ?? []).filter((each) => each.startsWith('/'))
        ]) {
            await mkdir(join(root, 'machine', folder), { recursive: true });
        }
        await host.start();
        return host;
    } catch (error) {
        await rm(root, { recursive: true, force: true });
        throw error;
    }
}

function packageOf(code: PluginDefinition, { package: place, manifest = {} }: TestHostOptions): TestPackage {
    const named = (names: readonly string[]): Readonly<Record<string, string>> =>
        Object.fromEntries(names.map((name) => [name, '*']));
    const found: TestPackage =
        place === undefined
            ? {
                  package: '@test/plugin',
                  version: '1.0.0',
                  folder: null,
                  manifest: { name: 'test', requires: named(code.requires), optional: named(code.optional) }
              }
            : readTestPackage(place);
    return { ...found, manifest: { ...found.manifest, ...manifest } };
}

class Host implements TestHost {
    readonly name: string;
    readonly version: string;
    readonly #root: string;
    readonly #world: World;
    readonly #code: PluginDefinition;
    readonly #options: TestHostOptions;
    readonly #front: Front;
    #generation: TestGeneration | null = null;
    #document: GenerationDocument | null = null;
    #closed: Promise<void> | null = null;

    constructor(root: string, pkg: TestPackage, code: PluginDefinition, options: TestHostOptions) {
        this.name = pkg.manifest.name;
        this.version = pkg.version;
        this.#root = root;
        this.#code = code;
        this.#options = options;
        this.#world = new World(root, pkg, {
            partners: options.partners ?? {},
            now: Number(options.now ?? Date.now()),
            quiet: options.quiet ?? false
        });
        this.#world.granted = options.grants ?? this.#world.granted;
        this.#world.settings = options.settings ?? {};
        const entries = new Set(
            (pkg.manifest.contributes?.pages ?? []).map(
                ({ entry }) => `/api/plugins/${this.name}/${entry.replace(/^\/+/, '')}`
            )
        );
        this.#front = new Front({
            plugin: this.name,
            people: this.#world.people,
            tickets: this.#world.tickets,
            audit: this.#world.audit,
            entries,
            running: () =>
                this.#generation === null
                    ? null
                    : {
                          guest: this.#generation.guest,
                          match: this.#generation.match,
                          ending: this.#generation.ending.signal,
                          asset: (path) => this.#running.asset(path)
                      }
        });
        this.#world.partners.watch(async (name, present) => {
            await this.#generation?.guest.partner({ name, present });
        });
    }

    get dataDir(): string {
        return this.#world.dataDir;
    }

    get machine(): string {
        return this.#world.machine;
    }

    get document(): GenerationDocument {
        if (this.#document === null) {
            throw new Error(`${this.name} has never started`);
        }
        return this.#document;
    }

    get api(): TestApi {
        return this.#world.api;
    }

    get clock(): TestClock {
        return this.#world.clock;
    }

    get schedules(): TestSchedules {
        return this.#world.clock;
    }

    get faults(): TestFaults {
        return this.#world.faults;
    }

    get hooks(): TestHooks {
        return this.#world.hooks;
    }

    get network(): TestNetwork {
        return this.#world.network;
    }

    get partners(): TestPartners {
        return this.#world.partners;
    }

    get programs(): TestPrograms {
        return this.#world.programs;
    }

    get serving(): TestServing {
        return this.#world.serving;
    }

    get tasks(): TestTasks {
        return this.#world.tasks;
    }

    get db(): Db {
        return this.#running.database;
    }

    get log(): readonly LogLine[] {
        return this.#world.log;
    }

    get audit(): readonly AuditRecord[] {
        return this.#world.audit;
    }

    get notifications(): readonly Notification[] {
        return this.#world.notifications;
    }

    get settings(): Readonly<Record<string, unknown>> {
        return viewSettings(this.#world.settings);
    }

    as(who: Who): TestClient {
        const caller = this.#world.people.caller(who);
        return createClient(this.#front, this.name, caller, () => this.#world.people.end(caller.plain.key));
    }

    async setSettings(change: Readonly<Record<string, unknown>>): Promise<void> {
        const {
            sealer,
            package: { package: npmName }
        } = this.#world;
        const label = labelOf(this.name, npmName);
        const { guest, definition } = this.#running;
        const merged = mergeSettings(
            openSettings(this.#world.settings, label, sealer),
            plainCopy(change, 'the settings')
        );
        const { values } = await guest.readSettings({ values: merged });
        this.#world.settings = sealSettings(merged, definition.secrets, label, sealer);
        await guest.settings({ values });
        await this.#world.hooks.run('settings.changed', { keys: Object.keys(change) });
    }

    setGrants(grants: Capabilities): void {
        this.#world.granted = grants;
        this.#generation?.revoke();
    }

    refuse(capability: keyof Capabilities, entry?: string): void {
        const { [capability]: now, ...rest } = this.#world.granted;
        const { [capability]: asked } = this.#world.package.manifest.capabilities ?? {};
        // Of what stands for anything, one entry can only be taken away with the rest.
        const left =
            entry === undefined || !Array.isArray(now) || now.includes('*') || asked === undefined
                ? []
                : (now as readonly string[]).filter((each) => each !== entry);
        this.setGrants(left.length === 0 ? rest : { ...rest, [capability]: left });
    }

    health(): ReturnType<TestHost['health']> {
        return this.#running.health();
    }

    contract<C>({ plugin = 'test', who }: { readonly plugin?: string; readonly who?: Who } = {}): Remote<C> {
        return partnerProxy(this.name, async ({ method, input, options }) => {
            const { people } = this.#world;
            const asker =
                who === undefined
                    ? null
                    : people.begin({
                          caller: people.caller(who),
                          ip: null,
                          requestId: `call-${method}`,
                          audit: null
                      });
            const signal =
                options.signal === undefined
                    ? this.#running.ending.signal
                    : AbortSignal.any([options.signal, this.#running.ending.signal]);
            const answer = await this.#running.guest.contract({ method, input, plugin, asker, signal });
            if (asker !== null && answer.series === undefined) {
                people.finish(asker.handle);
            }
            return answer;
        }) as Remote<C>;
    }

    async start(meanwhile?: Parameters<TestClock['advance']>[0]): Promise<void> {
        if (this.#generation !== null) {
            throw new Error(`${this.name} runs already`);
        }
        if (meanwhile !== undefined) {
            await this.clock.advance(meanwhile);
        }
        const generation = await TestGeneration.start(
            this.#world,
            this.#code,
            this.#options.boundary ?? 'copy',
            { ...usual, ...this.#options.timing }
        );
        this.#generation = generation;
        this.#document = generation.document;
        // What the test gave in the clear is kept sealed from now on.
        const {
            sealer,
            package: { package: npmName }
        } = this.#world;
        const label = labelOf(this.name, npmName);
        this.#world.settings = sealSettings(
            openSettings(this.#world.settings, label, sealer),
            generation.definition.secrets,
            label,
            sealer
        );
    }

    async stop(): Promise<StopReport> {
        const generation = this.#running;
        this.#generation = null;
        return generation.stop();
    }

    async restart(meanwhile?: Parameters<TestClock['advance']>[0]): Promise<void> {
        this.#refuseLeaks(await this.stop());
        await this.start(meanwhile);
    }

    close(): Promise<void> {
        return (this.#closed ??= (async () => {
            const report = this.#generation === null ? null : await this.stop();
            await rm(this.#root, { recursive: true, force: true });
            if (report !== null) {
                this.#refuseLeaks(report);
            }
        })());
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    #refuseLeaks({ leaked, failures, leftovers }: StopReport): void {
        const leaks = [
            ...leaked.map(({ kind, name, error }) => `${kind} ${name}: ${error}`),
            ...failures.map((failure) => `onStop failed: ${failure}`),
            ...leftovers
        ];
        if (leaks.length > 0) {
            throw new LeakError(this.name, leaks);
        }
    }

    get #running(): TestGeneration {
        if (this.#generation === null) {
            throw new Error(`${this.name} does not run`);
        }
        return this.#generation;
    }
}
