/** Brings code into the panel while it runs, and takes it away again: installs, upgrades and ways back are tasks, an uninstall is not. */
import type {
    Found,
    Installed,
    InstallPhase,
    InstallSource,
    LockEntry,
    PluginPackage
} from '@portico/registry';
import { isFailure, type Reply, reply } from '@portico/sdk';

import type { TaskView } from '../../../features/tasks/task.ts';
import type { TaskRun, TaskStart } from '../../../features/tasks/tasks.ts';
import type { Call, Caller } from '../../../platform/call.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import type { Capabilities } from '../../runtime/generation.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import { requireAuthority } from '../consent/consent.ts';
import type { Decision } from '../data/data-folders.ts';
import { missingRequirement } from '../reconciler/desired-state.ts';
import { emptyRuntime, type PluginRecord, type Runtime } from '../records/plugin.ts';
import { newRecord } from '../records/records.ts';
import { chooseSource } from '../rollback/rollback-source.ts';
import type { MovedSettings } from '../settings/moved-settings.ts';
import type { PluginSettings } from '../settings/plugin-settings.ts';
import { activateStopped, probe, swap, type SwapPhase, type SwapPorts } from '../upgrade/swap.ts';
import { installFailed } from './install-failure.ts';

type Values = Readonly<Record<string, unknown>>;

/** Settings that wait for a plugin: an import brought them before it was installed. */
export interface KeptSettings {
    find(name: string, packageName: string): ({ readonly enabled: boolean } & MovedSettings) | null;
    /** They are taken over. */
    forget(name: string): Promise<void>;
}

export interface InstallerPorts extends SwapPorts {
    readonly tasks: { start(options: TaskStart): Promise<TaskView> };
    readonly recorder: Pick<Recorder, 'record' | 'recordAlone'>;
    readonly prover: PluginSettings;
    readonly kept: KeptSettings;
    /** Why no plugin is loaded; null when they are. */
    safeMode(): string | null;
    /** Takes what plugins, which go, gave for the engine out of it. Resolves with a sentence for each that had given anything. */
    dropFragments(plugins: readonly string[]): Promise<readonly string[]>;
    /** What a plugin that goes has under way gets no time to finish. */
    hurry(plugin: string): void;
    /** Names of what runs and requires a plugin. */
    runningDependants(name: string): readonly string[];
    /** Where a swap is, before it goes on; for tests that end the process there. */
    reached?(plugin: string, phase: SwapPhase): void | Promise<void>;
}

export interface InstallRequest {
    readonly enabled?: boolean | undefined;
    readonly grants?: Capabilities | undefined;
}

export interface ChangeRequest extends InstallRequest {
    readonly version: string;
    readonly settings?: Values | undefined;
    readonly force?: boolean | undefined;
    readonly restoreData?: boolean | undefined;
}

export interface Installer {
    /** @throws FORBIDDEN, STEP_UP_REQUIRED for grants; IN_USE 40901 while another task is at work on it; NOT_READY 50300 in safe mode */
    install(source: InstallSource, wish: InstallRequest, call: Call): Promise<TaskView>;
    /** Another version of a plugin that is installed. @throws also DATA_AHEAD 40911, CONSENT_REQUIRED 40910 and VERSION_STALE 41200, as far as it is known already */
    change(name: string, wish: ChangeRequest, call: Call): Promise<TaskView>;
    /** @throws PLUGIN_NOT_FOUND 40410, IN_USE 40901, VERSION_STALE 41200 */
    remove(
        name: string,
        options: { readonly purge: boolean; readonly cascade: boolean; readonly force?: boolean },
        call: Call
    ): Promise<Reply<null>>;
}

/** What one task is about. */
interface InstallOrder {
    readonly kind: 'install' | 'upgrade' | 'rollback';
    /** Null: the package tells. */
    readonly name: string | null;
    readonly key: string;
    readonly title: string;
    readonly source: InstallSource | null;
    /** The version that is there already. */
    readonly entry: LockEntry | null;
    readonly wish: Omit<ChangeRequest, 'version'>;
}

const resource = 'plugins';
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

export function createInstaller(ports: InstallerPorts): Installer {
    const { lifecycle, data, tasks, prover, kept, recorder, db, log } = ports;
    const { registry, records } = lifecycle;

    const ready = async (): Promise<void> => {
        await lifecycle.inventoryReady; // whoever comes right after the start is not sent away
        const safe = ports.safeMode();
        if (safe !== null || lifecycle.phase !== 'open') {
            throw fail.NOT_READY(null, { message: safe ?? 'The panel still looks for its plugins' });
        }
    };
    const authorise = (actor: Caller, { grants, restoreData }: Omit<ChangeRequest, 'version'>): void => {
        if (grants !== undefined) {
            requireAuthority(actor, grants);
        }
        if (restoreData === true && actor.kind !== 'system' && !actor.fresh) {
            throw fail.STEP_UP_REQUIRED();
        }
    };

    /** What an admin asked for, on top of what was decided before. */
    const decisionFor = (
        plugin: PluginPackage,
        { enabled, grants }: InstallRequest,
        before: PluginRecord | null
    ): { readonly decision: Decision; readonly missing: Capabilities | null } => {
        const asked = askedOf(plugin.manifest);
        const base: Decision = before ?? {
            ...newRecord(plugin, 0),
            enabled: false,
            settings: data.keptSettings(plugin) ?? {}
        };
        const decision: Decision = {
            enabled: enabled ?? base.enabled,
            grants: grants ?? base.grants,
            decided: grants === undefined ? base.decided : asked,
            settings: base.settings
        };
        return { decision, missing: beyond(asked, decision.decided, decision.grants) };
    };

    /** @throws IN_USE 40901 when something that is enabled requires another version; PLUGIN_FAILED 50303 when it could not run any more itself */
    const fits = (name: string, plugin: PluginPackage, runs: boolean): void => {
        const others = lifecycle.runtimes().filter((each) => each.name !== name && each.plugin !== null);
        const { unresolved } = registry.resolve([
            ...others.map((each) => each.plugin as PluginPackage),
            plugin
        ]);
        const by = unresolved.flatMap((each) => {
            const other = others.find((one) => one.plugin === each.plugin);
            return other !== undefined &&
                other.obstacle === null &&
                lifecycle.dependants(name).includes(other.name) &&
                lifecycle.recordOf(other)?.enabled === true
                ? [{ plugin: other.name, message: each.message }]
                : [];
        });
        if (by.length > 0) {
            throw fail.IN_USE(
                { by: by.map((each) => each.plugin) },
                { message: by.map((each) => each.message).join('; ') }
            );
        }
        const own = unresolved.find((each) => each.plugin === plugin);
        if (own !== undefined && runs) {
            throw fail.PLUGIN_FAILED(
                { plugin: name, stage: 'resolved', cause: own.code },
                { message: own.message }
            );
        }
    };

    const loaded = async (name: string, found: Found): Promise<NonNullable<Runtime['definition']>> => {
        const loading = await lifecycle.load(name, found);
        if ('failure' in loading) {
            throw fail.PLUGIN_FAILED(
                { plugin: name, stage: loading.failure.stage, cause: loading.failure.code },
                { message: `${loading.failure.message}; nothing was changed` }
            );
        }
        return loading.definition;
    };

    /** Everything after the package is there. Only inside `withPlugin`. */
    const apply = async (
        order: InstallOrder,
        entry: LockEntry,
        found: Found,
        plugin: PluginPackage,
        run: TaskRun,
        call: Call
    ): Promise<object> => {
        const { name } = plugin.manifest;
        const { wish } = order;
        const known = lifecycle.runtime(name);
        if (
            known?.plugin != null &&
            known.plugin.package !== plugin.package &&
            (lifecycle.recordOf(known)?.enabled === true || known.generation !== null)
        ) {
            throw fail.CONFLICT(
                { field: 'name', by: known.plugin.package },
                { message: `${known.plugin.package} has the name ${name} and is enabled: disable it first` }
            );
        }
        const record = records.get(name, plugin.package);
        const isUpgrade = record !== null && known?.plugin?.package === plugin.package;
        const waiting = isUpgrade ? null : kept.find(name, plugin.package);
        const isStranger = !isUpgrade && known?.plugin != null;
        const wanted = isUpgrade
            ? wish
            : { ...wish, enabled: !isStranger && (wish.enabled ?? waiting?.enabled ?? true) };
        const { decision: decided, missing } = decisionFor(plugin, wanted, record);
        if (isUpgrade && missing !== null) {
            throw fail.CONSENT_REQUIRED({ plugin: name, missing, version: plugin.version });
        }
        let decision: Decision = { ...decided, enabled: decided.enabled && missing === null };
        const runtime: Runtime = known ?? emptyRuntime(name);
        const runs =
            decision.enabled &&
            record?.quarantinedAt == null &&
            missingRequirement({ ...runtime, plugin }, (other) => lifecycle.runtime(other)) === null;
        fits(name, plugin, isUpgrade && runs);
        const before = runtime.plugin?.version ?? null;
        const source = chooseSource({ data, name, plugin, entry, restoreData: wish.restoreData === true });
        const also: Parameters<typeof swap>[3]['also'] = (tx) =>
            recorder.record(tx, {
                ...auditEntryOf(call, run),
                action: order.kind,
                resource,
                resourceId: name,
                outcome: 'success',
                status: 200,
                code: 0,
                before: { version: before },
                after: {
                    package: plugin.package,
                    version: plugin.version,
                    integrity: entry.integrity,
                    signature: entry.signature,
                    enabled: decision.enabled,
                    grants: decision.grants
                }
            });
        const phase = async (reached: SwapPhase): Promise<void> => {
            run.progress(fractions[reached], reached);
            await ports.reached?.(name, reached);
        };
        let swapped: object = {};
        if (runs) {
            const definition = await loaded(name, found);
            const { settings = decision.settings, refused = null } =
                waiting === null ? {} : await prover.take(plugin, definition, decision.settings, waiting);
            decision = {
                ...decision,
                settings:
                    wish.settings === undefined
                        ? settings
                        : await prover.seal(plugin, definition, settings, wish.settings)
            };
            if (refused !== null) {
                swapped = { settingsLeftOut: refused };
            }
            const next = { found, plugin, definition, entry, source, decision };
            if (isUpgrade) {
                swapped = await swap(ports, runtime, next, {
                    force: wish.force === true,
                    signal: run.signal,
                    phase,
                    also
                });
            } else {
                await phase('probe');
                await probe(ports, runtime, next, run.signal).catch((error: unknown) => {
                    // What is asked of it can be answered only once it is there.
                    if (!isFailure(error) || error.data?.['cause'] !== 'SETTINGS_REQUIRED') {
                        throw error;
                    }
                });
                run.signal.throwIfAborted();
                await activateStopped(ports, runtime, next, { phase, also });
            }
        } else {
            if (wish.settings !== undefined) {
                throw invalid({
                    path: 'settings',
                    message:
                        'settings are judged by the code, which is not loaded while the plugin does not run: change them afterwards'
                });
            }
            const settings =
                waiting === null
                    ? decision.settings
                    : (await prover.take(plugin, null, decision.settings, waiting)).settings;
            await lifecycle.stop(runtime, 'it is no longer to run');
            await activateStopped(
                ports,
                runtime,
                { found, plugin, entry, source, decision: { ...decision, settings } },
                { phase, also }
            );
        }
        return {
            plugin: name,
            package: plugin.package,
            version: plugin.version,
            from: before,
            ...(missing === null ? {} : { missing }),
            ...swapped
        };
    };

    const work = async (order: InstallOrder, run: TaskRun, call: Call): Promise<unknown> => {
        let installed: Installed | null = null;
        let label = order.name;
        try {
            const entry =
                order.entry ??
                (installed = await registry
                    .install(order.source as InstallSource, {
                        signal: run.signal,
                        onPhase: (phase) => run.progress(fractions[phase], phase)
                    })
                    .catch(installFailed));
            const found = await registry.locate(entry);
            if ('fault' in found.result) {
                throw fail.PACKAGE_REFUSED(
                    { cause: found.result.fault.code, stage: 'discovered' },
                    { message: found.result.fault.message }
                );
            }
            const { plugin } = found.result;
            const { name } = plugin.manifest;
            label = name;
            if (order.name !== null && order.name !== name) {
                throw fail.PACKAGE_REFUSED(
                    { cause: 'NAME_CHANGED', stage: 'discovered' },
                    {
                        message: `This version of ${plugin.package} is called ${name}, not ${order.name}: install it as another plugin`
                    }
                );
            }
            const wasThere = lifecycle.runtime(name)?.generation != null;
            const result = await lifecycle.withPlugin(name, () =>
                apply(order, entry, found, plugin, run, call)
            );
            await lifecycle.refreshInventory();
            await lifecycle.reconcile(name, { retry: true });
            lifecycle.reconcileDependants(name);
            const runtime = lifecycle.runtime(name);
            const isNew =
                !wasThere && order.kind === 'install' && (result as { from: string | null }).from === null;
            if (
                isNew &&
                runtime?.state === 'failed' &&
                !['SETTINGS_REQUIRED', 'REQUIREMENT_FAILED'].includes(runtime.failure?.code ?? '') &&
                runtime.failure?.stage !== 'resolved'
            ) {
                const { stage, code, message } = runtime.failure ?? {
                    stage: 'running',
                    code: 'UNKNOWN',
                    message: ''
                };
                await undo(name, plugin);
                throw fail.PLUGIN_FAILED(
                    { plugin: name, stage, cause: code },
                    { message: `It did not start, and is not installed: ${message}` }
                );
            }
            if (kept.find(name, plugin.package) !== null) {
                await kept.forget(name);
            }
            await registry
                .collect()
                .catch((error: unknown) =>
                    log.warn('Folders of versions that nobody needs could not be deleted', { error })
                );
            return {
                ...result,
                state: runtime?.state ?? null,
                ...(runtime?.failure == null
                    ? {}
                    : {
                          failure: {
                              stage: runtime.failure.stage,
                              code: runtime.failure.code,
                              message: runtime.failure.message
                          }
                      })
            };
        } catch (error) {
            if (installed !== null) {
                await registry.remove(installed.folder).catch(() => undefined); // the lock names it: it has taken over
            }
            if (label !== null) {
                await lifecycle.reconcile(label); // what was stopped for it runs again
            }
            await recorder
                .recordAlone({
                    ...auditEntryOf(call, run),
                    action: order.kind,
                    resource,
                    resourceId: label,
                    outcome: 'failure',
                    status: null,
                    code: isFailure(error) ? error.code : 50000,
                    after: { title: order.title }
                })
                .catch((failure: unknown) =>
                    log.error('The end of an install could not be put on record', { error: failure })
                );
            throw error;
        }
    };

    /** As if it had never been installed; data that were there before are there again. */
    const undo = async (name: string, plugin: PluginPackage): Promise<void> => {
        await lifecycle.withPlugin(name, async () => {
            const runtime = lifecycle.runtime(name);
            if (runtime !== null) {
                await lifecycle.stop(runtime, 'it is not installed after all');
            }
            await registry.lock.drop(name);
            await data.revert({ name, package: plugin.package });
            await db.write((tx) => records.remove(tx, { name, package: plugin.package }));
        });
        await lifecycle.refreshInventory();
        await lifecycle.reconcile(name);
    };

    const begin = (order: InstallOrder, call: Call): Promise<TaskView> =>
        tasks.start({
            kind: `plugin.${order.kind}`,
            title: order.title,
            access: 'plugins:manage',
            call,
            key: order.key,
            audit: {
                action: 'start',
                resource,
                resourceId: order.name ?? order.title,
                after: { kind: order.kind, title: order.title }
            },
            work: (run) => work(order, run, call)
        });

    return {
        async install(source, wish, call) {
            await ready();
            authorise(call.actor, wish);
            const title =
                'package' in source
                    ? `${source.package}${source.version === undefined ? '' : ` ${source.version}`}`
                    : `an archive of ${source.tarball.byteLength} bytes`;
            return begin(
                {
                    kind: 'install',
                    name: null,
                    key: `plugin.install:${'package' in source ? source.package : 'archive'}`,
                    title: `Install ${title}`,
                    source,
                    entry: null,
                    wish
                },
                call
            );
        },
        async change(name, { version, ...wish }, call) {
            await ready();
            const runtime = lifecycle.runtime(name);
            const record = runtime === null ? null : lifecycle.recordOf(runtime);
            if (runtime === null || record === null) {
                throw fail.PLUGIN_NOT_FOUND({ plugin: name });
            }
            if (call.ifMatch !== null && call.ifMatch !== '*' && call.ifMatch !== String(record.version)) {
                throw fail.VERSION_STALE({ version: record.version });
            }
            authorise(call.actor, wish);
            const entry =
                registry.lock
                    .kept(name)
                    .find((each) => each.version === version && each.package === record.package) ?? null;
            const found = entry === null ? null : await registry.locate(entry);
            const plugin = found !== null && 'plugin' in found.result ? found.result.plugin : null;
            const isBack =
                plugin !== null &&
                runtime.found?.lock != null &&
                Date.parse(entry?.installedAt ?? '') < Date.parse(runtime.found.lock.installedAt);
            if (plugin !== null && entry !== null) {
                chooseSource({ data, name, plugin, entry, restoreData: wish.restoreData === true });
                const { missing } = decisionFor(plugin, wish, record);
                if (missing !== null) {
                    throw fail.CONSENT_REQUIRED({ missing, version });
                }
                fits(name, plugin, false);
            }
            return begin(
                {
                    kind: isBack ? 'rollback' : 'upgrade',
                    name,
                    key: `plugin.change:${name}`,
                    title: `${isBack ? 'Roll back' : 'Upgrade'} ${name} to ${version}`,
                    wish,
                    source: { package: record.package, version },
                    entry: plugin === null ? null : entry
                },
                call
            );
        },
        async remove(name, { purge, cascade, force = false }, call) {
            const runtime = lifecycle.runtime(name);
            if (runtime === null) {
                throw fail.PLUGIN_NOT_FOUND({ plugin: name });
            }
            const record = lifecycle.recordOf(runtime);
            if (
                call.ifMatch !== null &&
                call.ifMatch !== '*' &&
                call.ifMatch !== String(record?.version ?? 0)
            ) {
                throw fail.VERSION_STALE({ version: record?.version ?? 0 });
            }
            if (runtime.found !== null && runtime.found.lock === null) {
                throw fail.IN_USE(
                    { by: [runtime.found.folder] },
                    {
                        message: `${name} was not installed here: it lies in ${runtime.found.folder}, and is there again as long as that is. Disable it, or delete that folder`
                    }
                );
            }
            const by = ports.runningDependants(name);
            if (by.length > 0 && !cascade) {
                throw fail.IN_USE({ by }, { message: `${name} is required by ${by.join(', ')}` });
            }
            await db.write(async (tx) => {
                for (const other of by) {
                    const dependant = lifecycle.runtime(other);
                    const theirs = dependant === null ? null : lifecycle.recordOf(dependant);
                    if (theirs !== null) {
                        await records.put(tx, { ...theirs, enabled: false, version: theirs.version + 1 });
                    }
                }
            });
            runtime.interrupt?.();
            (force ? [name, ...by] : []).forEach((each) => ports.hurry(each));
            for (const other of by) {
                await lifecycle.reconcile(other);
            }
            const report = await lifecycle.withPlugin(name, async () => {
                const released = await lifecycle.stop(runtime, 'it is uninstalled');
                await registry.lock.drop(name);
                const owners =
                    runtime.found === null && record === null
                        ? records.of(name)
                        : record === null
                          ? []
                          : [record];
                await db.write(async (tx) => {
                    for (const each of owners) {
                        await records.remove(tx, each);
                    }
                    if (owners.some(({ holdsArea }) => holdsArea)) {
                        await lifecycle.forgetArea(tx, name);
                    }
                    await call.complete(tx, {
                        action: 'uninstall',
                        resource,
                        resourceId: name,
                        before: {
                            package: record?.package ?? null,
                            version: runtime.plugin?.version ?? null
                        },
                        after: {
                            purge,
                            ...(by.length === 0 ? {} : { disabled: by }),
                            released: released?.released.length ?? 0,
                            leaked: released?.leaked ?? [],
                            cut: released?.cut ?? 0
                        },
                        reply: null
                    });
                });
                for (const each of owners) {
                    await (purge
                        ? data.purge(each)
                        : data.keep(each, {
                              enabled: false,
                              grants: {},
                              decided: {},
                              settings: each.settings
                          }));
                }
                return released;
            });
            await lifecycle.refreshInventory();
            await registry.collect();
            await lifecycle.reconcile(name);
            const dropped = await ports.dropFragments([name, ...by]);
            const said = [
                ...(by.length === 0 ? [] : [`Disabled what requires it: ${by.join(', ')}`]),
                ...dropped,
                ...(report === null
                    ? []
                    : [
                          `${report.released.length} released, ${report.leaked.length} leaked, ${report.cut} cut`
                      ])
            ];
            return reply.with(null, { message: said.length === 0 ? 'ok' : said.join('. ') });
        }
    };
}

function auditEntryOf(
    { actor, ip, userAgent, id }: Call,
    run: TaskRun
): Pick<Parameters<Recorder['recordAlone']>[0], 'actor' | 'ip' | 'userAgent' | 'requestId'> {
    return {
        actor: { id: actor.id, username: actor.username, tokenId: actor.tokenId, plugin: actor.plugin },
        ip,
        userAgent,
        requestId: id === '' ? `task-${run.id}` : id
    };
}
