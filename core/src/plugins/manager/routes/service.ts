/** What an admin sees of plugins and decides about them. A decision is durable before anything follows from it; the answer says what came of it. */
import { isDeepStrictEqual } from 'node:util';

import { type Catalogue, isNewer } from '@portico/registry';
import { type Reply, reply } from '@portico/sdk';
import { viewSettings } from '@portico/sdk/host';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { jsonSchemaOf } from '../../../server/http/json-schema/json-schema.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import { requireAuthority } from '../consent/consent.ts';
import type { PluginHealth } from '../reconciler/health.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import { adopt } from '../records/adopt.ts';
import type { PluginRecord, Runtime } from '../records/plugin.ts';
import type { PluginSettings } from '../settings/plugin-settings.ts';
import type { PluginDetail, PluginUpdate, PluginView } from './schema.ts';
import { detailOf, passedOverView, type Viewed, viewOf } from './view.ts';

export interface PluginServiceOptions {
    readonly lifecycle: Lifecycle;
    readonly prover: PluginSettings;
    readonly db: Database;
    readonly clock: Clock;
    /** Why no plugin is loaded; null when they are. */
    safeMode(): string | null;
    /** Data were moved from one package to another. */
    dataMoved(): Promise<void>;
    /** Takes what plugins, which an admin switched off, gave for the engine out of it. Resolves with a sentence for each that had given anything. */
    dropFragments(plugins: readonly string[]): Promise<readonly string[]>;
    readonly health: Pick<PluginHealth, 'ask'>;
    /** What a plugin that goes has under way gets no time to finish. */
    hurry(plugin: string): void;
}

export interface PluginService {
    /** All that are known; the message says what is wrong with all of them. */
    list(): Promise<Reply<readonly PluginView[]>>;
    /** What the npm registry offers. @throws REGISTRY_UNREACHABLE as NOT_READY 50300, TOOL_MISSING 50302 without npm */
    offers(signal: AbortSignal): Promise<Reply<Catalogue['offers']>>;
    /** @throws PLUGIN_NOT_FOUND 40410 */
    get(name: string): Promise<Reply<PluginDetail>>;
    /** @throws PLUGIN_NOT_FOUND, VERSION_STALE, VALIDATION_FAILED, CONSENT_REQUIRED 40910, IN_USE 40901, STEP_UP_REQUIRED, FORBIDDEN, PLUGIN_FAILED for one without a readable manifest */
    update(
        name: string,
        change: PluginUpdate,
        call: Call,
        options: { readonly cascade: boolean }
    ): Promise<Reply<PluginDetail>>;
    /** The version that is there; null when none is. */
    versionOf(name: string): string | null;
    /** Names of what runs and requires a plugin, also through others, each before what it requires. */
    runningDependants(name: string): readonly string[];
}

type Decision = Pick<PluginRecord, 'enabled' | 'grants' | 'decided' | 'settings'>;

const resource = 'plugins';

export function createPluginService({
    lifecycle,
    prover,
    db,
    clock,
    ...options
}: PluginServiceOptions): PluginService {
    const { records } = lifecycle;
    /** The newest version of each package that works with this panel, as of the last look. */
    let newest: ReadonlyMap<string, string> = new Map();

    const known = async (name: string): Promise<Runtime> => {
        await lifecycle.inventoryReady;
        const runtime = lifecycle.runtime(name);
        if (runtime === null) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        return runtime;
    };
    /** Another package's record of this name, of which the present one knows nothing. */
    const adoptable = (record: PluginRecord | null): PluginRecord | null =>
        record === null
            ? null
            : (records
                  .of(record.name)
                  .filter((each) => each.package !== record.package)
                  .at(-1) ?? null);
    const viewed = (runtime: Runtime): Viewed => {
        const record = lifecycle.recordOf(runtime);
        const [offered = null, present = null] = [
            newest.get(record?.package ?? ''),
            (runtime.plugin ?? record?.seen)?.version
        ];
        return {
            runtime,
            record,
            available: offered !== null && present !== null && isNewer(offered, present) ? offered : null,
            adoptable: adoptable(record)?.package ?? null
        };
    };
    const schemaOf = async ({ plugin, definition }: Runtime): Promise<object | null> => {
        if (plugin === null || definition === null) {
            return null;
        }
        const { settings } = await prover.describe(plugin, definition);
        try {
            return settings === null
                ? null
                : jsonSchemaOf({ describe: () => settings } as never, { side: 'body', defaults: true });
        } catch {
            return { type: 'object' }; // joi says more than JSON Schema can
        }
    };
    const answer = async (runtime: Runtime, message?: string): Promise<Reply<PluginDetail>> => {
        await options.health.ask(runtime);
        const shown = viewed(runtime);
        return reply.with(detailOf(shown, await schemaOf(runtime)), {
            version: shown.record?.version ?? 0,
            ...(message === undefined ? {} : { message })
        });
    };

    const runningDependants = (name: string): readonly string[] => {
        const all = new Set<string>();
        const visit = (one: string): void =>
            lifecycle
                .dependants(one)
                .filter((other) => !all.has(other) && lifecycle.runtime(other)?.generation != null)
                .forEach((other) => {
                    all.add(other);
                    visit(other);
                });
        visit(name);
        return lifecycle
            .runtimes()
            .map((runtime) => runtime.name)
            .filter((other) => all.has(other))
            .reverse();
    };

    /** What the record becomes. */
    const decided = async (
        runtime: Runtime,
        before: PluginRecord,
        change: PluginUpdate,
        call: Call
    ): Promise<Decision> => {
        const plugin = runtime.plugin ?? before.seen;
        const asked = askedOf(plugin.manifest);
        const { grants } = change;
        if (grants !== undefined || change.adopt === true) {
            requireAuthority(call.actor, grants ?? adoptable(before)?.grants ?? {});
        }
        let after: Decision = {
            enabled: change.enabled ?? before.enabled,
            grants: before.grants,
            decided: before.decided,
            settings: before.settings
        };
        if (change.adopt === true) {
            const other = adoptable(before);
            if (other === null) {
                throw invalid({
                    path: 'adopt',
                    message: `adopt: no other package had the name ${before.name}`
                });
            }
            after = {
                ...after,
                grants: other.grants,
                decided: other.decided,
                settings: prover.reseal(before.name, other.settings, other.package, before.package)
            };
        }
        if (grants !== undefined) {
            after = { ...after, grants, decided: asked };
        }
        const missing = beyond(asked, after.decided, after.grants);
        if (change.enabled === true && missing !== null) {
            throw fail.CONSENT_REQUIRED({ missing });
        }
        if (change.settings !== undefined && Object.keys(change.settings).length > 0) {
            after = { ...after, settings: await sealed(runtime, after, change.settings) };
        }
        return after;
    };
    const sealed = async (
        runtime: Runtime,
        { settings, enabled }: Decision,
        change: Readonly<Record<string, unknown>>
    ): Promise<PluginRecord['settings']> => {
        if (isDeepStrictEqual(change, viewSettings(settings))) {
            return settings; // what a read showed, sent back
        }
        if (enabled) {
            await lifecycle.ensureLoaded(runtime.name);
        }
        if (runtime.definition === null || runtime.plugin === null) {
            const why =
                options.safeMode() !== null
                    ? 'no code is loaded in safe mode'
                    : enabled
                      ? 'its code could not be loaded'
                      : 'its code was not loaded yet: send `enabled: true` with them';
            throw invalid({ path: 'settings', message: `settings cannot be judged: ${why}` });
        }
        return prover.seal(runtime.plugin, runtime.definition, settings, change);
    };
    const shown = ({ enabled, grants, settings, package: packageName }: PluginRecord): object => ({
        package: packageName,
        enabled,
        grants,
        settings: viewSettings(settings)
    });

    return {
        async list() {
            await lifecycle.inventoryReady;
            const rows = [
                ...lifecycle.runtimes().map((runtime) => viewOf(viewed(runtime))),
                ...lifecycle.passedOver.map((each) => passedOverView(each, clock.now()))
            ];
            const safe = options.safeMode();
            const notes = [
                ...(safe === null ? [] : [safe]),
                ...lifecycle.skipped.map(({ path, reason }) => `${path} was not looked into: ${reason}`)
            ];
            return reply.with(rows, {
                headers: {
                    'x-total-count': String(rows.length),
                    ...(safe === null ? {} : { 'x-portico-safe-mode': '1' })
                },
                ...(notes.length === 0 ? {} : { message: notes.join('. ') })
            });
        },
        async offers(signal) {
            await lifecycle.inventoryReady;
            const installed = lifecycle
                .runtimes()
                .flatMap(({ plugin }) =>
                    plugin === null ? [] : [{ package: plugin.package, version: plugin.version }]
                );
            const { offers, searchable, failures } = await lifecycle.registry
                .available(installed, { signal })
                .catch((error: unknown) => {
                    throw isNamed(error)
                        ? fail.NOT_READY({ cause: error.code }, { message: error.message, cause: error })
                        : error;
                });
            newest = new Map(
                offers.flatMap(({ package: name, version }) => (version === null ? [] : [[name, version]]))
            );
            const notes = [
                ...(searchable ? [] : ['The registry answers no search: only what is there was looked for']),
                ...failures.map(({ package: name, message }) => `${name}: ${message}`)
            ];
            return reply.with(offers, notes.length === 0 ? {} : { message: notes.join('. ') });
        },
        get: async (name) => answer(await known(name)),
        async update(name, change, call, { cascade }) {
            const runtime = await known(name);
            const before = lifecycle.recordOf(runtime);
            if (before === null) {
                throw fail.PLUGIN_FAILED({
                    plugin: name,
                    stage: runtime.failure?.stage ?? 'discovered',
                    cause: runtime.failure?.code ?? 'MANIFEST_INVALID'
                });
            }
            checkMatch(call, before);
            const by = change.enabled === false ? runningDependants(name) : [];
            if (by.length > 0 && !cascade) {
                throw fail.IN_USE({ by }, { message: `${name} is required by ${by.join(', ')}` });
            }
            const decision = await decided(runtime, before, change, call);
            const isFreed = change.enabled === true && before.quarantinedAt !== null;
            const isSame =
                isDeepStrictEqual(decision, {
                    enabled: before.enabled,
                    grants: before.grants,
                    decided: before.decided,
                    settings: before.settings
                }) &&
                !isFreed &&
                change.adopt !== true;
            await db.write(async (tx) => {
                const present = records.get(before.name, before.package);
                if (present === null || present.version !== before.version) {
                    throw fail.VERSION_STALE({ version: present?.version ?? 0 });
                }
                for (const other of by) {
                    const there = lifecycle.runtime(other);
                    const dependant = there === null ? null : lifecycle.recordOf(there);
                    if (dependant !== null) {
                        await records.put(tx, {
                            ...dependant,
                            enabled: false,
                            version: dependant.version + 1
                        });
                    }
                }
                const other = change.adopt === true ? adoptable(before) : null;
                if (other !== null) {
                    await adopt(tx, records, before, other);
                }
                const after: PluginRecord = {
                    ...present,
                    ...decision,
                    holdsArea: present.holdsArea || (other?.holdsArea ?? false),
                    version: present.version + (isSame ? 0 : 1),
                    ...(isFreed ? { quarantinedAt: null, failures: [] } : {})
                };
                await records.put(tx, after);
                const action =
                    change.enabled === undefined || change.enabled === before.enabled
                        ? 'update'
                        : change.enabled
                          ? 'enable'
                          : 'disable';
                await call.complete(tx, {
                    action,
                    resource,
                    resourceId: name,
                    before: shown(before),
                    after: { ...shown(after), ...(by.length === 0 ? {} : { disabled: by }) },
                    reply: null
                });
            });
            if (!decision.enabled) {
                runtime.interrupt?.();
                (change.force === true ? [name, ...by] : []).forEach((each) => options.hurry(each));
            }
            for (const other of by) {
                await lifecycle.reconcile(other);
            }
            if (change.adopt === true) {
                await options.dataMoved();
                await lifecycle.withPlugin(name, () => lifecycle.stop(runtime, 'it takes over other data'));
            }
            const retry =
                change.enabled === true ||
                decision.settings !== before.settings ||
                decision.grants !== before.grants;
            await lifecycle.refresh(name, before, { retry });
            const said = [
                ...(by.length === 0 ? [] : [`Disabled with what requires it: ${by.join(', ')}`]),
                ...(await options.dropFragments(decision.enabled ? [] : [name, ...by]))
            ];
            return answer(runtime, options.safeMode() ?? (said.length === 0 ? undefined : said.join('. ')));
        },
        versionOf: (name) => lifecycle.runtime(name)?.plugin?.version ?? null,
        runningDependants
    };
}

/** @throws VERSION_STALE 41200 */
function checkMatch({ ifMatch }: Call, { version }: PluginRecord): void {
    if (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(version)) {
        throw fail.VERSION_STALE({ version });
    }
}

function isNamed(error: unknown): error is Error & { readonly code: string } {
    return error instanceof Error && error.name === 'InstallFailure';
}
