/** One generation of the plugin under test: prepared, started and ended as the panel does it. */
import { readFile, realpath } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';

import { Grants } from '../boundary/grants.ts';
import type { GuestOptions } from '../boundary/guest.ts';
import type {
    DefinitionDocument,
    GenerationDocument,
    Guest,
    HostDoors,
    Release
} from '../boundary/protocol.ts';
import { Scope, within } from '../boundary/scope.ts';
import { labelOf, openSettings } from '../boundary/settings.ts';
import type { Health } from '../context.ts';
import type { PluginDefinition } from '../definition.ts';
import { isFailure } from '../errors.ts';
import { openTestDatabase, type TestDatabase } from './database.ts';
import { createDoors } from './doors.ts';
import { type Watch, watchLeftovers } from './leftovers.ts';
import { createLocalDoors } from './locals.ts';
import { createMatcher } from './matching.ts';
import { createCopyingRealm, createDirectRealm, type Realm } from './realm.ts';
import type { World } from './world.ts';

/** How the plugin's code is reached: `copy` (default) copies whatever crosses, as between threads; `none` calls it directly; or a realm of one's own. */
export type Boundary = 'copy' | 'none' | ((options: GuestOptions) => Promise<Realm>);

/** Milliseconds; the panel's own are setup 10,000, start 30,000, stop 8,000, one health check 5,000. */
export interface TestTiming {
    readonly setupMs: number;
    readonly startMs: number;
    readonly stopMs: number;
    readonly healthMs: number;
}

/** Why a plugin does not run, as its record in the panel would say. */
export class PluginFailure extends Error {
    readonly stage: 'loaded' | 'mounted' | 'running';
    /** As in the panel: SETTINGS_REQUIRED, SETTINGS_INVALID, MIGRATION_FAILED, SETUP_FAILED, SETUP_TIMEOUT, REGISTRATION_INVALID, START_FAILED, START_TIMEOUT. */
    readonly code: string;

    constructor(stage: PluginFailure['stage'], code: string, message: string, cause?: unknown) {
        super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
        this.name = 'PluginFailure';
        this.stage = stage;
        this.code = code;
    }
}

/** What the end of a plugin let go of, and what not. */
export interface StopReport extends Release {
    /** What `onStop` failed with. */
    readonly failures: readonly string[];
    /** What its code left running beside what it held through its context. */
    readonly leftovers: readonly string[];
}

const types: Readonly<Record<string, string>> = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.json': 'application/json; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.png': 'image/png'
};

export class TestGeneration {
    definition!: DefinitionDocument;
    document!: GenerationDocument;
    guest!: Guest;
    match!: ReturnType<typeof createMatcher>;
    /** What a test may read and write past the plugin. */
    database!: TestDatabase;
    readonly ending = new AbortController();
    readonly #world: World;
    readonly #code: PluginDefinition;
    readonly #timing: TestTiming;
    readonly #scope = new Scope();
    readonly #schedules = new Set<string>();
    readonly #watch: Watch = watchLeftovers();
    #realm: Realm | null = null;
    #revoke: () => void = () => undefined;
    #thrown: unknown;
    #report: Promise<StopReport> | null = null;

    private constructor(world: World, code: PluginDefinition, timing: TestTiming) {
        this.#world = world;
        this.#timing = timing;
        // What setup threw is known whole on this side only: a failure that crossed has lost its stack.
        this.#code = { ...code, setup: (ctx: never) => this.#noting(() => code.setup(ctx)) };
    }

    /** @throws PluginFailure with everything let go of */
    static async start(
        world: World,
        code: PluginDefinition,
        boundary: Boundary,
        timing: TestTiming
    ): Promise<TestGeneration> {
        const generation = new TestGeneration(world, code, timing);
        try {
            await generation.#prepare(boundary);
            await generation.#start();
            return generation;
        } catch (error) {
            await generation.stop();
            throw error;
        }
    }

    async #prepare(boundary: Boundary): Promise<void> {
        const { manifest } = this.#world.package;
        for (const side of ['requires', 'optional'] as const) {
            const stray = this.#code[side].find((name) => !Object.hasOwn(manifest[side] ?? {}, name));
            if (stray !== undefined) {
                throw new PluginFailure(
                    'mounted',
                    'REGISTRATION_INVALID',
                    `The definition names ${stray} in ${side}, and the manifest does not`
                );
            }
        }
        const grants = new Grants(manifest.name, manifest.capabilities ?? {}, () => this.#world.granted);
        const doors = createDoors({
            world: this.#world,
            grants,
            scope: this.#scope,
            signal: this.ending.signal,
            routes: () => this.document?.routes ?? [],
            schedules: this.#schedules
        });
        this.#realm = await this.#open(boundary, grants, doors);
        this.guest = this.#realm.guest;
        this.definition = await this.guest.define({});
        const settings = await this.#readSettings();
        try {
            this.database = await this.#watch.outside(() =>
                openTestDatabase(this.#world.dataDir, this.#code)
            );
        } catch (error) {
            throw new PluginFailure('mounted', 'MIGRATION_FAILED', messageOf(error), error);
        }
        this.document = await this.#setup(settings);
        this.#check(grants);
        this.match = createMatcher(this.document.routes);
    }

    async #start(): Promise<void> {
        const {
            hooks,
            package: { manifest, version }
        } = this.#world;
        try {
            await within(this.#timing.startMs, () => this.guest.start({ signal: this.ending.signal }));
        } catch (error) {
            throw new PluginFailure(
                'running',
                isFailure(error) ? 'START_FAILED' : 'START_TIMEOUT',
                messageOf(
                    this.#world.log.findLast(({ level }) => level === 'error')?.fields['error'] ?? error
                ),
                error
            );
        }
        for (const { name, kind, timeoutSeconds } of this.document.hooks) {
            hooks.publish(name, kind, timeoutSeconds === undefined ? {} : { timeoutSeconds });
            this.#scope.own('hook', name, () => hooks.withdraw(name));
        }
        for (const { tap, hook, order } of this.document.taps) {
            const untap = hooks.host.tap(
                { plugin: manifest.name, version },
                hook as never,
                (async (payload: unknown, { signal }: { signal: AbortSignal }) =>
                    (await this.guest.tap({ tap, payload, signal })).result) as never,
                order
            );
            this.#scope.own('tap', hook, untap);
        }
    }

    /** Runs every health check at once; one that fails or hangs is a failed one. */
    async health(): Promise<readonly (Health & { readonly name: string })[]> {
        return Promise.all(
            this.document.health.map(async (name) => {
                try {
                    return {
                        ...(await within(this.#timing.healthMs, (signal) =>
                            this.guest.health({ name, signal: AbortSignal.any([signal, this.ending.signal]) })
                        )),
                        name
                    };
                } catch (error) {
                    return { name, state: 'failed' as const, evidence: messageOf(error) };
                }
            })
        );
    }

    /** Grants changed: what is open under one that is gone is ended. */
    revoke(): void {
        this.#revoke();
    }

    /** A static file of the package; null when there is none. */
    async asset(path: string): Promise<Response | null> {
        const { folder } = this.#world.package;
        for (const { folder: assets, at, fallback } of folder === null ? [] : this.document.assets) {
            for (const name of at === undefined
                ? [path, ...(fallback === undefined ? [] : [fallback])]
                : []) {
                const root = await realpath(join(folder ?? '', assets)).catch(() => null);
                const file = root === null ? null : await realpath(join(root, name)).catch(() => null);
                if (root !== null && file?.startsWith(root + sep) === true) {
                    return new Response(new Uint8Array(await readFile(file)), {
                        headers: { 'content-type': types[extname(file)] ?? 'application/octet-stream' }
                    });
                }
            }
        }
        return null;
    }

    /** Ends it as the panel does: stop in reverse, then the scope. The second call gives the first report. */
    stop(): Promise<StopReport> {
        return (this.#report ??= this.#stop());
    }

    async #stop(): Promise<StopReport> {
        const failures: string[] = [];
        this.ending.abort(new Error('The plugin ends'));
        this.#world.faults.clear();
        for (const name of this.#schedules) {
            await within(this.#timing.stopMs, () => this.#world.clock.remove(name)).catch((error: unknown) =>
                failures.push(`schedule ${name}: ${messageOf(error)}`)
            );
        }
        if (this.guest !== undefined) {
            await within(this.#timing.stopMs, (signal) => this.guest.stop({ signal })).then(
                (stopped) => failures.push(...stopped.failures),
                (error: unknown) => failures.push(messageOf(error))
            );
        }
        const own = await this.#scope.release();
        const local: Release =
            this.guest === undefined
                ? { released: [], leaked: [] }
                : await within(this.#timing.stopMs, () => this.guest.end({})).catch((error: unknown) => ({
                      released: [],
                      leaked: [
                          { kind: 'guest', name: this.#world.package.manifest.name, error: messageOf(error) }
                      ]
                  }));
        await this.database?.close();
        await this.#realm?.close();
        const schedules = [...this.#schedules].map((name) => ({ kind: 'schedule', name }));
        return {
            released: [...schedules, ...own.released, ...local.released],
            leaked: [...own.leaked, ...local.leaked],
            failures,
            leftovers: await this.#watch.end()
        };
    }

    async #open(boundary: Boundary, grants: Grants, doors: HostDoors): Promise<Realm> {
        const {
            package: { manifest, version },
            dataDir
        } = this.#world;
        const { network, programs, faults, machine } = this.#world;
        const { local, revoke } = createLocalDoors({
            grants,
            dataDir,
            machine,
            network,
            programs,
            faults,
            watch: this.#watch,
            signal: this.ending.signal,
            database: async () => this.database
        });
        this.#revoke = revoke;
        const options: GuestOptions = {
            name: manifest.name,
            version,
            dataDir,
            definition: this.#code,
            doors,
            local,
            checkReturns: true
        };
        return boundary === 'copy'
            ? createCopyingRealm(options, this.#watch)
            : boundary === 'none'
              ? createDirectRealm(options, this.#watch)
              : boundary(options);
    }

    async #readSettings(): Promise<Readonly<Record<string, unknown>>> {
        const {
            settings,
            sealer,
            package: { manifest, package: npmName }
        } = this.#world;
        try {
            return (
                await this.guest.readSettings({
                    values: openSettings(settings, labelOf(manifest.name, npmName), sealer)
                })
            ).values;
        } catch (error) {
            const faults = (isFailure(error) ? (error.data?.['errors'] ?? []) : []) as readonly {
                readonly message: string;
            }[];
            const isMissing =
                faults.length > 0 && faults.every(({ message }) => message.endsWith('is required'));
            throw new PluginFailure(
                'loaded',
                isMissing ? 'SETTINGS_REQUIRED' : 'SETTINGS_INVALID',
                faults.map(({ message }) => message).join('; ') || messageOf(error),
                error
            );
        }
    }

    async #setup(settings: Readonly<Record<string, unknown>>): Promise<GenerationDocument> {
        const { partners } = this.#world;
        try {
            return await within(this.#timing.setupMs, () =>
                this.guest.setup({
                    settings,
                    partners: this.definition.optional.filter((name) => partners.has(name))
                })
            );
        } catch (error) {
            throw new PluginFailure(
                'mounted',
                isFailure(error) ? 'SETUP_FAILED' : 'SETUP_TIMEOUT',
                messageOf(error),
                this.#thrown ?? error
            );
        }
    }

    /** What the manifest must say for what the code registers. */
    #check(grants: Grants): void {
        const {
            people,
            hooks,
            package: { manifest }
        } = this.#world;
        const invalid = (message: string, cause?: unknown): never => {
            throw new PluginFailure('mounted', 'REGISTRATION_INVALID', message, cause);
        };
        for (const { id, access } of this.document.routes) {
            const permission =
                typeof access === 'string' ? access : 'ticket' in access ? access.permission : null;
            if (
                permission !== null &&
                permission !== 'authenticated' &&
                !people.permissions.includes(permission)
            ) {
                invalid(
                    `Route ${id} asks for the permission ${permission}, which the manifest of ${manifest.name} does not declare`
                );
            }
            if (typeof access === 'object' && 'public' in access && !grants.has('public', access.public)) {
                invalid(
                    `Route ${id} is public because "${access.public}", which is not among the granted reasons of the manifest (capabilities.public)`
                );
            }
        }
        const tap = this.document.taps.find(
            ({ hook }) => hooks.needsCapability(hook) && !grants.has('taps', hook)
        );
        if (tap !== undefined) {
            invalid(messageOf(grants.missing(`taps: ${tap.hook}`)));
        }
        if (this.document.assets.some(({ at }) => at === 'root') && !grants.pages) {
            invalid(messageOf(grants.missing('pages')));
        }
    }

    async #noting(work: () => unknown): Promise<unknown> {
        try {
            return await work();
        } catch (error) {
            this.#thrown = error;
            throw error;
        }
    }
}

function messageOf(error: unknown): string {
    return error instanceof Error
        ? error.message
        : String((error as { message?: unknown } | null)?.message ?? error);
}
