/** What an admin sees of plugins, and decides about them. A decision is durable before it has any effect; the answer says what the effect was. */
import { isDeepStrictEqual } from 'node:util';

import { InstallFailure, isNewer, type Offer } from '@portico/registry';
import { type Reply, reply } from '@portico/sdk';
import { viewSettings } from '@portico/sdk/host';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { requireVersion } from '../../../platform/version.ts';
import { settingsSchemaOf } from '../../runtime/generation/declared.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import { requireAuthority } from '../consent/consent.ts';
import type { PluginHealth } from '../reconciler/health.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import { adopt } from '../records/adopt.ts';
import type { Decision, PluginRecord, Runtime } from '../records/plugin.ts';
import type { RecordedServices } from '../records/services.ts';
import type { PluginSettings } from '../settings/plugin-settings.ts';
import type { PluginDetail, PluginUpdate, PluginView } from './schema.ts';
import { detailOf, passedOverView, versionsOf, type Viewed, viewOf } from './view.ts';

/** What the service needs. */
export interface PluginServiceOptions {
    readonly lifecycle: Lifecycle;
    readonly pluginSettings: PluginSettings;
    readonly db: Database;
    readonly clock: Clock;
    /** Why no plugin is loaded; null when plugins are loaded. */
    safeMode(): string | null;
    /** Is called after data were assigned to another package. */
    dataMoved(): Promise<void>;
    /** Removes from the engine what these plugins added to it. Resolves with a sentence for each plugin that had added anything. */
    dropFragments(plugins: readonly string[]): Promise<readonly string[]>;
    readonly health: Pick<PluginHealth, 'ask'>;
    readonly services: Pick<RecordedServices, 'list' | 'revoke' | 'adopt'>;
    /** Cuts the plugin's requests when it stops, instead of waiting for them. */
    hurry(plugin: string): void;
}

const resource = 'plugins';

/** Behind `/api/plugins`: everything but installs and uninstalls. */
export class PluginService {
    readonly #options: PluginServiceOptions;
    readonly #lifecycle: Lifecycle;
    /** The newest version of each package that works with this panel, from the last answer of the npm registry. */
    #newest: ReadonlyMap<string, string> = new Map();

    constructor(options: PluginServiceOptions) {
        this.#options = options;
        this.#lifecycle = options.lifecycle;
    }

    /** All known plugins. The message says what concerns all of them, such as safe mode. */
    async list(): Promise<Reply<PluginView[]>> {
        const { clock, safeMode } = this.#options;
        await this.#lifecycle.inventoryReady;
        const { passedOver, skipped } = this.#lifecycle.known;
        const rows = [
            ...this.#lifecycle.runtimes().map((runtime) => viewOf(this.#viewed(runtime))),
            ...passedOver.map((each) => passedOverView(each, clock.now()))
        ];
        const safe = safeMode();
        const notes = [
            ...(safe === null ? [] : [safe]),
            ...skipped.map(({ path, reason }) => `${path} was not searched: ${reason}`)
        ];
        return reply.with(rows, {
            headers: {
                'x-total-count': String(rows.length),
                ...(safe === null ? {} : { 'x-portico-safe-mode': '1' })
            },
            ...messageOf(notes)
        });
    }

    /** What the npm registry offers. @throws NOT_READY 50300 with the cause REGISTRY_UNREACHABLE; TOOL_MISSING 50302 without npm */
    async offers(signal: AbortSignal): Promise<Reply<Offer[]>> {
        await this.#lifecycle.inventoryReady;
        const installed = this.#lifecycle
            .runtimes()
            .flatMap(({ plugin }) =>
                plugin === null ? [] : [{ package: plugin.package, version: plugin.version }]
            );
        const { offers, searchable, failures } = await this.#lifecycle.registry
            .available(installed, { signal })
            .catch((error: unknown) => {
                throw error instanceof InstallFailure
                    ? fail.NOT_READY({ cause: error.code }, { message: error.message, cause: error })
                    : error;
            });
        this.#newest = new Map(
            offers.flatMap(({ package: name, version }) => (version === null ? [] : [[name, version]]))
        );
        return reply.with(
            [...offers],
            messageOf([
                ...(searchable
                    ? []
                    : ['The registry has no search: only packages that are here were looked up']),
                ...failures.map(({ package: name, message }) => `${name}: ${message}`)
            ])
        );
    }

    /** One plugin with its settings. @throws PLUGIN_NOT_FOUND 40410 */
    async get(name: string): Promise<Reply<PluginDetail>> {
        return this.#answer(await this.#require(name));
    }

    /** @throws PLUGIN_NOT_FOUND 40410 */
    async requireKnown(name: string): Promise<void> {
        await this.#require(name);
    }

    /** The version that is there; null when none is. */
    versionOf(name: string): string | null {
        return this.#lifecycle.runtime(name)?.plugin?.version ?? null;
    }

    /**
     * Enables, disables, configures a plugin, or grants it what it asks for.
     *
     * @throws PLUGIN_NOT_FOUND 40410, VERSION_STALE 41200, VALIDATION_FAILED 40001, CONSENT_REQUIRED 40910, IN_USE 40901, STEP_UP_REQUIRED 40301, FORBIDDEN
     * 40300, and PLUGIN_FAILED 50303 for a plugin whose manifest cannot be read
     */
    async update(
        name: string,
        change: PluginUpdate,
        call: Call,
        { cascade }: { readonly cascade: boolean }
    ): Promise<Reply<PluginDetail>> {
        const lifecycle = this.#lifecycle;
        const runtime = await this.#require(name);
        const before = lifecycle.recordOf(runtime);
        if (before === null) {
            throw fail.PLUGIN_FAILED({
                plugin: name,
                stage: runtime.failure?.stage ?? 'discovered',
                cause: runtime.failure?.code ?? 'MANIFEST_INVALID'
            });
        }
        requireVersion(call, undefined, before.version);
        const by = change.enabled === false ? lifecycle.known.runningDependants(name) : [];
        if (by.length > 0 && !cascade) {
            throw fail.IN_USE({ by }, { message: `${name} is required by ${by.join(', ')}` });
        }
        const decision = await this.#decide(runtime, before, change, call);
        await this.#withAdopted(change.adopt === true ? this.#adoptable(before) : null, before, () =>
            this.#write(before, decision, change, by, call)
        );
        if (!decision.enabled) {
            runtime.interrupt?.();
            (change.force === true ? [name, ...by] : []).forEach((each) => this.#options.hurry(each));
        }
        for (const other of by) {
            await lifecycle.reconcile(other);
        }
        if (change.adopt === true) {
            await this.#options.dataMoved();
            await lifecycle.withPlugin(name, () => lifecycle.stop(runtime, 'it takes over other data'));
        }
        const retry =
            change.enabled === true ||
            decision.settings !== before.settings ||
            decision.grants !== before.grants;
        await lifecycle.refresh(name, before, { retry });
        if (decision.grants !== before.grants) {
            await this.#options.services.revoke({ ...before, grants: decision.grants });
        }
        const sentences = [
            ...(by.length === 0 ? [] : [`Disabled with what requires it: ${by.join(', ')}`]),
            ...(await this.#options.dropFragments(decision.enabled ? [] : [name, ...by]))
        ];
        const safe = this.#options.safeMode();
        return this.#answer(runtime, safe === null ? sentences : [safe]);
    }

    /** Does the work with the services of another package at the one that takes over its record; they go back when the work fails. */
    async #withAdopted(
        other: PluginRecord | null,
        record: PluginRecord,
        work: () => Promise<void>
    ): Promise<void> {
        const { services } = this.#options;
        if (other === null) {
            return work();
        }
        await services.adopt(other, record);
        try {
            await work();
        } catch (error) {
            await services.adopt(record, other).catch(() => undefined);
            throw error;
        }
    }

    async #require(name: string): Promise<Runtime> {
        await this.#lifecycle.inventoryReady;
        const runtime = this.#lifecycle.runtime(name);
        if (runtime === null) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        return runtime;
    }

    /** The record of another package that had the name before; null when there is none. */
    #adoptable(record: PluginRecord): PluginRecord | null {
        const others = this.#lifecycle.records
            .of(record.name)
            .filter((each) => each.package !== record.package);
        return others.at(-1) ?? null;
    }

    #viewed(runtime: Runtime): Viewed {
        const record = this.#lifecycle.recordOf(runtime);
        const offered = this.#newest.get(record?.package ?? '') ?? null;
        const present = (runtime.plugin ?? record?.seen)?.version ?? null;
        return {
            runtime,
            record,
            available: offered !== null && present !== null && isNewer(offered, present) ? offered : null,
            adoptable: record === null ? null : (this.#adoptable(record)?.package ?? null)
        };
    }

    async #schemaOf({ plugin, definition }: Runtime): Promise<Record<string, unknown> | null> {
        if (plugin === null || definition === null) {
            return null;
        }
        const { settings } = await this.#options.pluginSettings.describe(plugin, definition);
        try {
            return settings === null ? null : settingsSchemaOf(settings);
        } catch {
            return { type: 'object' }; // with such a schema the plugin does not mount
        }
    }

    async #answer(runtime: Runtime, sentences: readonly string[] = []): Promise<Reply<PluginDetail>> {
        await this.#options.health.ask(runtime);
        const viewed = this.#viewed(runtime);
        const services = viewed.record === null ? [] : await this.#options.services.list(viewed.record);
        const versions = versionsOf(viewed, this.#lifecycle.registry.lock);
        return reply.with(detailOf(viewed, await this.#schemaOf(runtime), services, versions), {
            version: viewed.record?.version ?? 0,
            ...messageOf(sentences)
        });
    }

    /** What the admin's part of the record becomes. */
    async #decide(
        runtime: Runtime,
        before: PluginRecord,
        change: PluginUpdate,
        call: Call
    ): Promise<Decision> {
        const asked = askedOf((runtime.plugin ?? before.seen).manifest);
        const { grants } = change;
        const other = change.adopt === true ? this.#adoptable(before) : null;
        if (grants !== undefined || change.adopt === true) {
            requireAuthority(call.actor, grants ?? other?.grants ?? {});
        }
        if (change.adopt === true && other === null) {
            throw invalid({
                path: 'adopt',
                message: `adopt: no other package had the name ${before.name}`
            });
        }
        const base = other === null ? before : this.#adopted(before, other);
        const after: Decision = {
            enabled: change.enabled ?? before.enabled,
            grants: grants ?? base.grants,
            decided: grants === undefined ? base.decided : asked,
            settings: base.settings
        };
        const missing = beyond(asked, after.decided, after.grants);
        if (change.enabled === true && missing !== null) {
            throw fail.CONSENT_REQUIRED({ missing });
        }
        return change.settings !== undefined && Object.keys(change.settings).length > 0
            ? { ...after, settings: await this.#sealed(runtime, after, change.settings, call) }
            : after;
    }

    /** The decision that is taken over from another package: its secrets are sealed for the present one. */
    #adopted(
        { name, package: to }: PluginRecord,
        other: PluginRecord
    ): Pick<Decision, 'grants' | 'decided' | 'settings'> {
        const { pluginSettings } = this.#options;
        return { ...other, settings: pluginSettings.reseal(name, other.settings, other.package, to) };
    }

    async #sealed(
        runtime: Runtime,
        { settings, enabled }: Decision,
        change: Readonly<Record<string, unknown>>,
        { actor }: Call
    ): Promise<PluginRecord['settings']> {
        if (isDeepStrictEqual(change, viewSettings(settings))) {
            return settings; // a read that was sent back
        }
        if (!actor.fresh) {
            // Only the plugin knows which of its settings widen what it reaches.
            throw fail.STEP_UP_REQUIRED();
        }
        if (enabled) {
            await this.#load(runtime);
        }
        if (runtime.definition === null || runtime.plugin === null) {
            const why =
                this.#options.safeMode() !== null
                    ? 'no code is loaded in safe mode'
                    : enabled
                      ? 'its code could not be loaded'
                      : 'its code was not loaded yet: send `enabled: true` with them';
            throw invalid({ path: 'settings', message: `settings cannot be checked: ${why}` });
        }
        return this.#options.pluginSettings.seal(runtime.plugin, runtime.definition, settings, change);
    }

    /** Imports the code of a plugin that will run, if that was not done yet: its settings are checked by its code. */
    async #load(runtime: Runtime): Promise<void> {
        const lifecycle = this.#lifecycle;
        await lifecycle.withPlugin(runtime.name, async () => {
            const { name, found, definition, obstacle, importFailed } = runtime;
            if (found !== null && definition === null && obstacle === null && lifecycle.phase === 'open') {
                const loading = await lifecycle.load(name, found, { fresh: importFailed });
                runtime.importFailed = 'failure' in loading;
                runtime.definition = 'failure' in loading ? null : loading.definition;
            }
        });
    }

    /** Writes the records and the audit entry in one transaction. @param by - plugins that are disabled with this one */
    async #write(
        before: PluginRecord,
        decision: Decision,
        change: PluginUpdate,
        by: readonly string[],
        call: Call
    ): Promise<void> {
        const { records } = this.#lifecycle;
        const isFreed = change.enabled === true && before.quarantinedAt !== null;
        const { enabled, grants, decided, settings } = before;
        const isSame =
            isDeepStrictEqual(decision, { enabled, grants, decided, settings }) &&
            !isFreed &&
            change.adopt !== true;
        await this.#options.db.write(async (tx) => {
            const present = records.get(before.name, before.package);
            if (present === null || present.version !== before.version) {
                throw fail.VERSION_STALE({ version: present?.version ?? 0 });
            }
            await this.#lifecycle.disable(tx, by);
            const other = change.adopt === true ? this.#adoptable(before) : null;
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
            await call.complete(tx, {
                action: actionOf(change, before),
                resource,
                resourceId: before.name,
                before: auditView(before),
                after: { ...auditView(after), ...(by.length === 0 ? {} : { disabled: by }) },
                reply: null
            });
        });
    }
}

function actionOf({ enabled }: PluginUpdate, before: PluginRecord): 'update' | 'enable' | 'disable' {
    if (enabled === undefined || enabled === before.enabled) {
        return 'update';
    }
    return enabled ? 'enable' : 'disable';
}

function auditView({ enabled, grants, settings, package: packageName }: PluginRecord): object {
    return { package: packageName, enabled, grants, settings: viewSettings(settings) };
}

function messageOf(sentences: readonly string[]): { readonly message?: string } {
    return sentences.length === 0 ? {} : { message: sentences.join('. ') };
}
