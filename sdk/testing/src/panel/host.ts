/** A panel with one plugin in it, for that plugin's tests. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
    type Capabilities,
    type Generation,
    GenerationFault,
    type GuestRuntime,
    type GuestSides,
    type ReleaseReport
} from '@portico/core/plugin-runtime';
import { type Db, type Health, isDefinition, type PluginDefinition, type Remote } from '@portico/sdk';
import { type GenerationDocument, partnerProxy, plainCopy, viewSettings } from '@portico/sdk/host';

import { TestClient } from '../client/client.ts';
import { inTime, usualPatienceMs } from '../deadline.ts';
import type { Span } from '../doubles/clock.ts';
import type { Who } from '../doubles/people.ts';
import { LeakError, leaksOf, packageOf, PluginFailure, type TestHostOptions } from './options.ts';
import type { TestPackage } from './package.ts';
import { type OpenedPanel, openPanel, TestPanel } from './panel.ts';
import { createCopyRuntime, createDirectRuntime, type TestRuntime } from './runtime.ts';

/**
 * Starts a panel with one plugin in it.
 *
 * @throws PluginFailure with the stage and code that the panel would put on the plugin's record
 */
export async function createTestHost(
    definition: PluginDefinition<never> | PluginDefinition,
    options: TestHostOptions = {}
): Promise<TestHost> {
    // What a definition does with its settings is between it and its schema.
    const code = definition as PluginDefinition;
    if (!isDefinition(code)) {
        throw new TypeError('createTestHost takes what definePlugin returned');
    }
    const plugin = packageOf(code, options);
    const absent = code.requires.filter((name) => options.partners?.[name] === undefined);
    if (absent.length > 0) {
        throw new TypeError(
            `${plugin.manifest.name} requires ${absent.join(' and ')}: give createTestHost a fake of each, as partners: { ${absent[0]}: { … } }`
        );
    }
    const root = await mkdtemp(join(tmpdir(), 'portico-test-'));
    const machine = options.machine === 'real' ? '' : join(root, 'machine');
    if (machine !== '') {
        const folders = (plugin.manifest.capabilities?.files ?? []).filter((each) => each.startsWith('/'));
        for (const folder of ['', ...folders]) {
            await mkdir(join(machine, folder), { recursive: true });
        }
    }
    const opened = await openPanel({
        root,
        machine,
        package: plugin,
        now: Number(options.now ?? Date.now()),
        patienceMs: options.timing?.patienceMs ?? usualPatienceMs,
        quiet: options.quiet ?? false,
        forbidden: options.forbidden ?? []
    });
    const host = new TestHost(opened, code, options);
    try {
        for (const [name, contract] of Object.entries(options.partners ?? {})) {
            await host.partners.set(name, contract);
        }
        await host.start();
        return host;
    } catch (error) {
        await host.close();
        throw error;
    }
}

/** A panel with one plugin in it. Close it, or write `await using`: what the plugin left behind is then named. */
export class TestHost extends TestPanel implements AsyncDisposable {
    readonly name: string;
    readonly version: string;
    /** The plugin's private folder; gone after `close`. */
    readonly dataDir: string;
    /** Where the plugin's granted folders really are: `/var/www` is `<machine>/var/www`. */
    readonly machine: string;
    readonly #package: TestPackage;
    readonly #code: PluginDefinition;
    readonly #options: TestHostOptions;
    #granted: Capabilities;
    #settings: Readonly<Record<string, unknown>>;
    #generation: Generation | null = null;
    /** The generation before that. */
    #before: Generation | null = null;
    #document: GenerationDocument | null = null;
    #runtime: TestRuntime | null = null;
    #db: Db | null = null;
    #closed: Promise<void> | null = null;

    /** @internal */
    constructor(opened: OpenedPanel, code: PluginDefinition, options: TestHostOptions) {
        super(opened);
        const { root, machine, package: plugin } = opened.options;
        this.name = plugin.manifest.name;
        this.version = plugin.version;
        this.dataDir = join(root, 'data');
        this.machine = machine === '' ? '/' : machine;
        this.#package = plugin;
        this.#code = code;
        this.#options = options;
        this.#granted = options.grants ?? plugin.manifest.capabilities ?? {};
        this.#settings = options.settings ?? {};
    }

    /** What the plugin registered. */
    get document(): GenerationDocument {
        if (this.#document === null) {
            throw new Error(`${this.name} has never started`);
        }
        return this.#document;
    }

    /** The plugin's own database, past the plugin. */
    get db(): Db {
        if (this.#db === null) {
            throw new Error(`${this.name} does not run`);
        }
        return this.#db;
    }

    /** Settings as every user may read them: secrets are `{ set: true }`. */
    get settings(): Readonly<Record<string, unknown>> {
        return viewSettings(this.#settings);
    }

    /** A person who asks. */
    as(who: Who): TestClient {
        const { people, port } = this.opened;
        const { caller, token } = people.person(who);
        return new TestClient({
            plugin: this.name,
            url: `http://127.0.0.1:${port}`,
            token,
            username: caller.username,
            patienceMs: this.#patienceMs,
            end: () => people.end(caller)
        });
    }

    /** Changes settings as an admin does; null takes one back to its default. @throws VALIDATION_FAILED 40001, and nothing changed */
    async setSettings(change: Readonly<Record<string, unknown>>): Promise<void> {
        const sealed = await this.#running.seal(plainCopy(change, 'the settings'));
        this.#settings = sealed;
        await this.#running.apply(sealed);
        await this.hooks.run('settings.changed', { keys: Object.keys(change) });
    }

    /** Changes what the admin granted. Resolves when what stood on a grant that is gone has ended. */
    async setGrants(grants: Capabilities): Promise<void> {
        this.#granted = grants;
        await this.#generation?.revoke();
    }

    /** Takes capabilities away: all of a kind, or one entry of its list. */
    refuse(capability: keyof Capabilities, entry?: string): Promise<void> {
        const { [capability]: now, ...rest } = this.#granted;
        // Of what stands for anything, one entry can only be taken away with the rest.
        const entries = Array.isArray(now) ? (now as readonly string[]) : [];
        const left =
            entry === undefined || entries.includes('*') ? [] : entries.filter((each) => each !== entry);
        return this.setGrants(left.length === 0 ? rest : { ...rest, [capability]: left });
    }

    /** Runs every health check at once; one that fails or hangs is a failed one. */
    health(): Promise<readonly (Health & { readonly name: string })[]> {
        return this.#running.health();
    }

    /** The plugin's contract, as another plugin sees it. */
    contract<C>({ plugin = 'test', who }: { readonly plugin?: string; readonly who?: Who } = {}): Remote<C> {
        const { people } = this.opened;
        const caller = who === undefined ? null : people.person(who).caller;
        const proxy = partnerProxy(this.name, ({ method, input, options: { signal = null } }) => {
            const held = caller === null ? null : { caller, ip: null, requestId: `call-${method}` };
            const call = this.plugins.contracts.call(this.name, { method, input, plugin, held, signal });
            return inTime(`the answer of ${this.name}.${method}`, this.#patienceMs, call);
        });
        // The type of the contract is the test's to say.
        return proxy as Remote<C>;
    }

    /** What the plugin holds through its context now, such as processes and sockets; after `stop`, what it still holds. */
    held(): readonly { readonly kind: string; readonly name: string }[] {
        return (this.#generation ?? this.#before)?.held() ?? [];
    }

    /** Enables it again on its data, as after a restart of the panel; `meanwhile` is the time that passed. @throws PluginFailure */
    async start(meanwhile: Span = {}): Promise<void> {
        if (this.#generation !== null) {
            throw new Error(`${this.name} runs already`);
        }
        await this.clock.advance(meanwhile);
        let thrown: { readonly message?: unknown } | undefined;
        const setup: PluginDefinition['setup'] = async (ctx) => {
            try {
                return await this.#code.setup(ctx);
            } catch (error) {
                thrown = error as Error;
                throw error;
            }
        };
        try {
            await this.#begin({ ...this.#code, setup });
        } catch (error) {
            await this.#end();
            if (error instanceof GenerationFault) {
                const logged = this.log.findLast(({ fields }) => fields['error'] !== undefined);
                thrown ??= error.code === 'START_FAILED' ? (logged?.fields['error'] as Error) : undefined;
                throw new PluginFailure(error, thrown);
            }
            throw error;
        }
    }

    /** Disables it, and says what was let go of. */
    async stop(): Promise<ReleaseReport> {
        const report = await this.#end();
        if (report === null) {
            throw new Error(`${this.name} does not run`);
        }
        return report;
    }

    /** Stops and starts it. @throws PluginFailure; LeakError when something was left */
    async restart(meanwhile?: Span): Promise<void> {
        this.#refuseLeaks(await this.stop());
        await this.start(meanwhile);
    }

    /** Ends everything, and removes every file. @throws LeakError when the plugin left something behind, or failed to stop */
    close(): Promise<void> {
        return (this.#closed ??= (async () => {
            const report = await this.#end();
            await this.closePanel();
            await rm(this.opened.options.root, { recursive: true, force: true });
            if (report !== null) {
                this.#refuseLeaks(report);
            }
        })());
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    async #begin(definition: PluginDefinition): Promise<void> {
        const { name, version, dataDir } = this;
        const { machine } = this.opened.options;
        const { boundary = 'copy', timing = {} } = this.#options;
        const runtime =
            boundary === 'copy'
                ? createCopyRuntime()
                : boundary === 'none'
                  ? createDirectRuntime()
                  : boundary({ name, version, dataDir, machine });
        this.#runtime = runtime;
        const inTest: GuestRuntime = (sides, inThread) => runtime.runtime(this.#watch(sides), inThread);
        const generation = await this.plugins.prepare({
            plugin: this.#package,
            folder: this.#package.folder ?? this.opened.options.root,
            definition,
            dataDir,
            settings: this.#settings,
            grants: () => this.#granted,
            runtime: inTest,
            timing
        });
        this.#generation = generation;
        this.#document = generation.document;
        await generation.start();
        await generation.mount();
        // What the test gave in the clear is kept sealed from now on.
        this.#settings = await generation.seal({});
    }

    /** The plugin's two sides, with everything in front of them that a test sees and breaks. */
    #watch(sides: GuestSides): GuestSides {
        this.#db = sides.local.db;
        return this.faults.wrap(this.schedules.watch(this.api.watch(sides)));
    }

    async #end(): Promise<ReleaseReport | null> {
        this.faults.clear();
        const generation = this.#generation;
        this.#before = generation;
        this.#generation = this.#db = null;
        const report = (await generation?.close('the test stops it')) ?? null;
        await this.#runtime?.close();
        this.#runtime = null;
        return report;
    }

    #refuseLeaks(report: ReleaseReport): void {
        const leaks = leaksOf(report);
        if (leaks.length > 0) {
            throw new LeakError(this.name, leaks);
        }
    }

    get #patienceMs(): number {
        return this.opened.options.patienceMs;
    }

    get #running(): Generation {
        if (this.#generation === null) {
            throw new Error(`${this.name} does not run`);
        }
        return this.#generation;
    }
}
