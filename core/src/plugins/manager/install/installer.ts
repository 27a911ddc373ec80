/** Brings code into the panel while it runs. Installs, upgrades and rollbacks are tasks; this file checks what can be checked before the task begins. */
import type { InstallSource, LockEntry, PluginPackage } from '@portico/registry';
import type { Reply } from '@portico/sdk';

import type { TaskView } from '../../../features/tasks/task.ts';
import type { Call, Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import { requireVersion } from '../../../platform/version.ts';
import { requireAuthority } from '../consent/consent.ts';
import type { Runtime } from '../records/plugin.ts';
import { chooseSource } from '../rollback/rollback-source.ts';
import { decide, requireFit } from './decision.ts';
import { InstallTask } from './install-task.ts';
import type { ChangeRequest, InstallerPorts, InstallOrder, InstallRequest } from './ports.ts';
import { uninstall, type UninstallOptions } from './uninstall.ts';

const resource = 'plugins';

/** Starts the tasks that install, upgrade and roll back plugins. */
export class Installer {
    readonly #ports: InstallerPorts;

    constructor(ports: InstallerPorts) {
        this.#ports = ports;
    }

    /** Starts an install. @throws FORBIDDEN 40300 and STEP_UP_REQUIRED 40301 for grants; IN_USE 40901 while a task with the same package runs; NOT_READY 50300 in safe mode */
    async install(source: InstallSource, request: InstallRequest, call: Call): Promise<TaskView> {
        await this.#requireReady();
        authorise(call.actor, request);
        const isNamed = 'package' in source;
        const title = isNamed
            ? `${source.package}${source.version === undefined ? '' : ` ${source.version}`}`
            : `an archive of ${source.tarball.byteLength} bytes`;
        const key = `plugin.install:${isNamed ? source.package : 'archive'}`;
        return this.#start(
            { kind: 'install', name: null, key, title: `Install ${title}`, source, entry: null, request },
            call
        );
    }

    /** Starts a change to another version of an installed plugin. @throws as `install`, PLUGIN_NOT_FOUND 40410, VERSION_STALE 41200; and DATA_AHEAD 40911, CONSENT_REQUIRED 40910 and IN_USE when the version is known already */
    async change(name: string, { version, ...request }: ChangeRequest, call: Call): Promise<TaskView> {
        await this.#requireReady();
        const { lifecycle, data } = this.#ports;
        const runtime = lifecycle.runtime(name);
        const record = runtime === null ? null : lifecycle.recordOf(runtime);
        if (runtime === null || record === null) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        requireVersion(call, undefined, record.version);
        authorise(call.actor, request);
        const kept = await this.#keptVersion(name, record.package, version);
        if (kept !== null) {
            const { plugin, entry } = kept;
            chooseSource({ data, name, plugin, entry, restoreData: request.restoreData === true });
            const { missing } = decide(data, plugin, request, record);
            if (missing !== null) {
                throw fail.CONSENT_REQUIRED({ missing, version });
            }
            requireFit(lifecycle.registry, lifecycle.known.others(name), plugin, false);
        }
        const isRollback = kept !== null && isOlder(kept.entry, runtime);
        return this.#start(
            {
                kind: isRollback ? 'rollback' : 'upgrade',
                name,
                key: `plugin.change:${name}`,
                title: `${isRollback ? 'Roll back' : 'Upgrade'} ${name} to ${version}`,
                request,
                source: { package: record.package, version },
                entry: kept?.entry ?? null
            },
            call
        );
    }

    /** Uninstalls a plugin. Not a task: it is done when the promise resolves. @throws PLUGIN_NOT_FOUND 40410, IN_USE 40901, VERSION_STALE 41200 */
    uninstall(name: string, options: UninstallOptions, call: Call): Promise<Reply<null>> {
        return uninstall(this.#ports, name, options, call);
    }

    async #requireReady(): Promise<void> {
        const { lifecycle } = this.#ports;
        await lifecycle.inventoryReady; // a request right after the panel's start waits
        const safe = this.#ports.safeMode();
        if (safe !== null || lifecycle.phase !== 'open') {
            throw fail.NOT_READY(null, { message: safe ?? 'The panel is still looking for its plugins' });
        }
    }

    /** A version that is on the disk since an earlier install, and whose manifest can be read; null when there is none. */
    async #keptVersion(
        name: string,
        packageName: string,
        version: string
    ): Promise<{ readonly entry: LockEntry; readonly plugin: PluginPackage } | null> {
        const { registry } = this.#ports.lifecycle;
        const entry = registry.lock
            .kept(name)
            .find((each) => each.version === version && each.package === packageName);
        if (entry === undefined) {
            return null;
        }
        const { result } = await registry.locate(entry);
        return 'plugin' in result ? { entry, plugin: result.plugin } : null;
    }

    #start(order: InstallOrder, call: Call): Promise<TaskView> {
        const { kind, title, key, name } = order;
        return this.#ports.tasks.start({
            kind: `plugin.${kind}`,
            title,
            access: 'plugins:manage',
            call,
            key,
            audit: { action: 'start', resource, resourceId: name ?? title, after: { kind, title } },
            work: (run) => new InstallTask(this.#ports, order, run, call).work()
        });
    }
}

function authorise(actor: Caller, { grants, restoreData }: Omit<ChangeRequest, 'version'>): void {
    if (grants !== undefined) {
        requireAuthority(actor, grants);
    }
    if (restoreData === true && actor.kind !== 'system' && !actor.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
}

function isOlder(entry: LockEntry, { found }: Runtime): boolean {
    return found?.lock != null && Date.parse(entry.installedAt) < Date.parse(found.lock.installedAt);
}
