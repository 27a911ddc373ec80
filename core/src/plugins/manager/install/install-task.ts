/** One install, upgrade or rollback while it runs: fetches the package, checks it, puts it in place, and takes it away again when it does not start. */
import type { Found, Installed, InstallPhase, LockEntry, PluginPackage } from '@portico/registry';
import { isFailure, type PluginDefinition } from '@portico/sdk';

import type { TaskRun } from '../../../features/tasks/tasks.ts';
import { type Call, recordedActor } from '../../../platform/call.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import { missingRequirement } from '../reconciler/desired-state.ts';
import type { PluginDataRow } from '../records/entities.ts';
import { type Decision, emptyRuntime, type Runtime } from '../records/plugin.ts';
import { chooseSource } from '../rollback/rollback-source.ts';
import { activateStopped } from '../upgrade/activate.ts';
import type { SwapPhase } from '../upgrade/ports.ts';
import { probe } from '../upgrade/probe.ts';
import { swap } from '../upgrade/swap.ts';
import { auditOfInstall, decideInstall, type InstallDecision, requireFit } from './decision.ts';
import { installFailed } from './install-failure.ts';
import type { InstallerPorts, InstallOrder } from './ports.ts';

const resource = 'plugins';
/** How much of the task is done when a phase begins. */
const fractions: Readonly<Record<InstallPhase | SwapPhase, number>> = {
    resolve: 0.02,
    fetch: 0.1,
    verify: 0.3,
    unpack: 0.4,
    inspect: 0.45,
    commit: 0.5,
    probe: 0.55,
    parked: 0.75,
    stopped: 0.8,
    copied: 0.85,
    migrated: 0.9,
    started: 0.95,
    committed: 0.99
};

/** A package that lies on the disk and is a plugin. */
interface Package {
    readonly entry: LockEntry;
    readonly found: Found;
    readonly plugin: PluginPackage;
}

/** What is done with the package. */
interface Plan extends Package, InstallDecision {
    readonly runtime: Runtime;
    /** The package is to run at once. */
    readonly runs: boolean;
    /** The data that it begins with; null for none. */
    readonly source: PluginDataRow | null;
    /** The version that was there; null for none. */
    readonly from: string | null;
}

/** The work of one task. */
export class InstallTask {
    readonly #ports: InstallerPorts;
    readonly #order: InstallOrder;
    readonly #run: TaskRun;
    readonly #call: Call;

    constructor(ports: InstallerPorts, order: InstallOrder, run: TaskRun, call: Call) {
        this.#ports = ports;
        this.#order = order;
        this.#run = run;
        this.#call = call;
    }

    /** Does all of it. When it fails, the plugin is as it was before. @returns the result of the task */
    async work(): Promise<unknown> {
        const { lifecycle } = this.#ports;
        const { registry } = lifecycle;
        let installed: Installed | null = null;
        let name = this.#order.name;
        try {
            const entry = this.#order.entry ?? (installed = await this.#fetch());
            const next = await this.#locate(entry);
            name = next.plugin.manifest.name;
            return await this.#install(name, next);
        } catch (error) {
            if (installed !== null) {
                await registry.remove(installed.folder).catch(() => undefined); // refused when the lock names it by now
            }
            if (name !== null) {
                await lifecycle.reconcile(name); // starts again what was stopped for this
            }
            await this.#recordFailure(name, error);
            throw error;
        }
    }

    #fetch(): Promise<Installed> {
        return this.#ports.lifecycle.registry
            .install(this.#order.source, {
                signal: this.#run.signal,
                onPhase: (phase) => this.#run.progress(fractions[phase], phase)
            })
            .catch(installFailed);
    }

    async #locate(entry: LockEntry): Promise<Package> {
        const found = await this.#ports.lifecycle.registry.locate(entry);
        if ('fault' in found.result) {
            const { code, message } = found.result.fault;
            throw fail.PACKAGE_REFUSED({ cause: code, stage: 'discovered' }, { message });
        }
        const { plugin } = found.result;
        const { name } = plugin.manifest;
        if (this.#order.name !== null && this.#order.name !== name) {
            throw fail.PACKAGE_REFUSED(
                { cause: 'NAME_CHANGED', stage: 'discovered' },
                {
                    message: `This version of ${plugin.package} is called ${name}, not ${this.#order.name}: install it as another plugin`
                }
            );
        }
        return { entry, found, plugin };
    }

    async #install(name: string, next: Package): Promise<object> {
        const { lifecycle, kept, log } = this.#ports;
        const wasRunning = lifecycle.runtime(name)?.generation != null;
        const result = await lifecycle.withPlugin(name, () => this.#apply(next));
        await lifecycle.refreshInventory();
        await lifecycle.reconcile(name, { retry: true });
        lifecycle.reconcileDependants(name);
        if (!wasRunning && this.#order.kind === 'install' && result.from === null) {
            await this.#undoWhenFailed(name, next.plugin);
        }
        if (kept.find(name, next.plugin.package) !== null) {
            await kept.forget(name);
        }
        await lifecycle.registry
            .collect()
            .catch((error: unknown) =>
                log.warn('Folders of versions that are not needed could not be deleted', { error })
            );
        const { state = null, failure = null } = lifecycle.runtime(name) ?? {};
        return {
            ...result,
            state,
            ...(failure === null
                ? {}
                : { failure: { stage: failure.stage, code: failure.code, message: failure.message } })
        };
    }

    /** Everything between the checked package and the lock. Only inside `withPlugin`. */
    async #apply(next: Package): Promise<{ readonly from: string | null }> {
        const plan = this.#plan(next);
        const done = await (plan.runs ? this.#replaceRunning(plan) : this.#replaceStopped(plan));
        return {
            plugin: plan.runtime.name,
            package: plan.plugin.package,
            version: plan.plugin.version,
            from: plan.from,
            ...(plan.missing === null ? {} : { missing: plan.missing }),
            ...done
        } as { readonly from: string | null };
    }

    #plan(next: Package): Plan {
        const { lifecycle, data } = this.#ports;
        const { plugin, entry } = next;
        const { request } = this.#order;
        const { name } = plugin.manifest;
        const known = lifecycle.runtime(name);
        const present = known?.plugin ?? null;
        const record = lifecycle.records.get(name, plugin.package);
        const isInUse =
            known !== null && (lifecycle.recordOf(known)?.enabled === true || known.generation !== null);
        const decided = decideInstall(this.#ports, { plugin, present, isInUse, record, request });
        const runtime = known ?? emptyRuntime(name);
        const runs =
            decided.decision.enabled &&
            record?.quarantinedAt == null &&
            missingRequirement({ ...runtime, plugin }, (other) => lifecycle.runtime(other)) === null;
        requireFit(lifecycle.registry, lifecycle.known.others(name), plugin, decided.isUpgrade && runs);
        return {
            ...next,
            ...decided,
            runtime,
            runs,
            source: chooseSource({ data, name, plugin, entry, restoreData: request.restoreData === true }),
            from: present?.version ?? null
        };
    }

    async #replaceRunning(plan: Plan): Promise<object> {
        const { pluginSettings } = this.#ports;
        const { runtime, plugin, found, entry, source, isUpgrade } = plan;
        const { request } = this.#order;
        const definition = await this.#load(runtime.name, found);
        const { settings = plan.decision.settings, refused = null } =
            plan.waiting === null
                ? {}
                : await pluginSettings.take(plugin, definition, plan.decision.settings, plan.waiting);
        const decision: Decision = {
            ...plan.decision,
            settings:
                request.settings === undefined
                    ? settings
                    : await pluginSettings.seal(plugin, definition, settings, request.settings)
        };
        const next = { found, plugin, definition, entry, source, decision };
        const hooks = this.#hooksOf(plan);
        if (isUpgrade) {
            return swap(this.#ports, runtime, next, {
                force: request.force === true,
                signal: this.#run.signal,
                ...hooks
            });
        }
        await hooks.phase('probe');
        await probe(this.#ports, runtime, next, this.#run.signal).catch((error: unknown) => {
            // Required settings can be given only when the plugin is installed.
            if (!isFailure(error) || error.data?.['cause'] !== 'SETTINGS_REQUIRED') {
                throw error;
            }
        });
        this.#run.signal.throwIfAborted();
        await activateStopped(this.#ports, runtime, next, hooks);
        return refused === null ? {} : { settingsLeftOut: refused };
    }

    async #replaceStopped(plan: Plan): Promise<object> {
        const { lifecycle, pluginSettings } = this.#ports;
        const { runtime, plugin, found, entry, source, decision, waiting } = plan;
        if (this.#order.request.settings !== undefined) {
            throw invalid({
                path: 'settings',
                message:
                    "settings are checked by the plugin's code, which is not loaded while the plugin does not run: change them afterwards"
            });
        }
        const settings =
            waiting === null
                ? decision.settings
                : (await pluginSettings.take(plugin, null, decision.settings, waiting)).settings;
        await lifecycle.stop(runtime, 'it is no longer to run');
        await activateStopped(
            this.#ports,
            runtime,
            { found, plugin, entry, source, decision: { ...decision, settings } },
            this.#hooksOf(plan)
        );
        return {};
    }

    async #load(name: string, found: Found): Promise<PluginDefinition> {
        const loading = await this.#ports.lifecycle.load(name, found);
        if ('failure' in loading) {
            const { stage, code, message } = loading.failure;
            throw fail.PLUGIN_FAILED(
                { plugin: name, stage, cause: code },
                { message: `${message}; nothing was changed` }
            );
        }
        return loading.definition;
    }

    /** What a swap calls: the progress of the task, and the audit entry that belongs to its commit. */
    #hooksOf({ runtime: { name }, from, plugin, entry, decision }: Plan): {
        phase(phase: SwapPhase): Promise<void>;
        also(tx: Transaction): Promise<void>;
    } {
        return {
            phase: async (phase) => {
                this.#run.progress(fractions[phase], phase);
                await this.#ports.reached?.(name, phase);
            },
            also: (tx) =>
                this.#ports.recorder.record(tx, {
                    ...this.#auditEntry(),
                    ...auditOfInstall(plugin, entry, decision, from),
                    status: 200
                })
        };
    }

    /** A new plugin that fails at its start is not kept, unless an admin can mend that by settings or by another plugin. */
    async #undoWhenFailed(name: string, plugin: PluginPackage): Promise<void> {
        const runtime = this.#ports.lifecycle.runtime(name);
        const { stage, code, message } = runtime?.failure ?? {
            stage: 'running',
            code: 'UNKNOWN',
            message: ''
        };
        if (
            runtime?.state === 'failed' &&
            !['SETTINGS_REQUIRED', 'REQUIREMENT_FAILED'].includes(code) &&
            stage !== 'resolved'
        ) {
            await this.#undo(name, plugin);
            throw fail.PLUGIN_FAILED(
                { plugin: name, stage, cause: code },
                { message: `It did not start, and is not installed: ${message}` }
            );
        }
    }

    /** Makes it as if the package had never been installed. Data that were there before count again. */
    async #undo(name: string, plugin: PluginPackage): Promise<void> {
        const { lifecycle, data, db } = this.#ports;
        await lifecycle.withPlugin(name, async () => {
            const runtime = lifecycle.runtime(name);
            if (runtime !== null) {
                await lifecycle.stop(runtime, 'it is not installed after all');
            }
            await lifecycle.registry.lock.drop(name);
            await data.revert({ name, package: plugin.package });
            await db.write((tx) => lifecycle.records.remove(tx, { name, package: plugin.package }));
        });
        await lifecycle.refreshInventory();
        await lifecycle.reconcile(name);
    }

    #recordFailure(name: string | null, error: unknown): Promise<void> {
        const { recorder, log } = this.#ports;
        return recorder
            .recordAlone({
                ...this.#auditEntry(),
                resourceId: name,
                outcome: 'failure',
                status: null,
                code: isFailure(error) ? error.code : 50000,
                after: { title: this.#order.title }
            })
            .catch((failure: unknown) =>
                log.error('The audit entry of a failed install could not be written', { error: failure })
            );
    }

    #auditEntry(): Pick<
        Parameters<Recorder['recordAlone']>[0],
        'action' | 'resource' | 'actor' | 'ip' | 'userAgent' | 'requestId'
    > {
        const { actor, ip, userAgent, id } = this.#call;
        return {
            action: this.#order.kind,
            resource,
            actor: recordedActor(actor),
            ip,
            userAgent,
            requestId: id === '' ? `task-${this.#run.id}` : id
        };
    }
}
