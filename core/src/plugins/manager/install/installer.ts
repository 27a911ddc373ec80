/** Brings code into the panel while it runs. Installs, upgrades and rollbacks are tasks; this file checks what can be checked before the task begins. */
import type { InstallSource, LockEntry, PluginPackage } from '@portico/registry';
import type { Reply } from '@portico/sdk';

import type { Call, Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import { requireVersion } from '../../../platform/version.ts';
import type { TaskView } from '../../../server/http/answer/task-view.ts';
import { requireAuthority } from '../consent/consent.ts';
import type { Runtime } from '../records/plugin.ts';
import { chooseSource } from '../rollback/rollback-source.ts';
import { decide, requireFit } from './decision.ts';
import { InstallTask } from './install-task.ts';
import type { ChangeRequest, InstallerPorts, InstallOrder, InstallRequest } from './ports.ts';
import { preview } from './preview.ts';
import type { InstallPreview } from './schema.ts';
import { uninstall, type UninstallOptions } from './uninstall.ts';

const resource = 'plugins';

/** Starts the tasks that install, upgrade and roll back plugins. */
export class Installer {
    readonly #ports: InstallerPorts;

    constructor(ports: InstallerPorts) {
        this.#ports = ports;
    }

    /** What an install would do. Changes nothing. @throws as `install`, and what its task would fail with before it has a package */
    async previewInstall(
        source: InstallSource,
        request: InstallRequest,
        call: Call
    ): Promise<InstallPreview> {
        await this.#requireReady();
        authorise(call.actor, request);
        return preview(this.#ports, installOrder(source, request), call.signal);
    }

    /** What a change to another version would do. Changes nothing. @throws as `change`, but for CONSENT_REQUIRED, DATA_AHEAD and IN_USE, which the answer tells */
    async previewChange(name: string, request: ChangeRequest, call: Call): Promise<InstallPreview> {
        const order = await this.#changeOrder(name, request, call);
        return preview(this.#ports, order, call.signal);
    }

    /** Starts an install. @throws FORBIDDEN 40300 and STEP_UP_REQUIRED 40301 for grants; IN_USE 40901 while a task with the same package runs; NOT_READY 50300 in safe mode */
    async install(source: InstallSource, request: InstallRequest, call: Call): Promise<TaskView> {
        await this.#requireReady();
        authorise(call.actor, request);
        return this.#start(installOrder(source, request), call);
    }

    /** Starts a change to another version of an installed plugin. @throws as `install`, PLUGIN_NOT_FOUND 40410, VERSION_STALE 41200; and DATA_AHEAD 40911, CONSENT_REQUIRED 40910 and IN_USE when the version is known already */
    async change(name: string, request: ChangeRequest, call: Call): Promise<TaskView> {
        const { lifecycle, data } = this.#ports;
        const order = await this.#changeOrder(name, request, call);
        const plugin = order.entry === null ? null : await this.#keptPackage(order.entry);
        if (plugin !== null && order.entry !== null) {
            const record = lifecycle.records.get(name, plugin.package);
            chooseSource({
                data,
                name,
                plugin,
                entry: order.entry,
                restoreData: request.restoreData === true
            });
            const { missing } = decide(data, plugin, request, record);
            if (missing !== null) {
                throw fail.CONSENT_REQUIRED({ missing, version: request.version });
            }
            requireFit(lifecycle.registry, lifecycle.known.others(name), plugin, false);
        }
        return this.#start(order, call);
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

    /** The order of a change, after all checks that need no package. */
    async #changeOrder(
        name: string,
        { version, ...request }: ChangeRequest,
        call: Call
    ): Promise<InstallOrder> {
        await this.#requireReady();
        const { lifecycle } = this.#ports;
        const runtime = lifecycle.runtime(name);
        const record = runtime === null ? null : lifecycle.recordOf(runtime);
        if (runtime === null || record === null) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        requireVersion(call, undefined, record.version);
        authorise(call.actor, request);
        const kept = lifecycle.registry.lock
            .kept(name)
            .find((each) => each.version === version && each.package === record.package);
        const entry = kept !== undefined && (await this.#keptPackage(kept)) !== null ? kept : null;
        const isRollback = entry !== null && isOlder(entry, runtime);
        return {
            kind: isRollback ? 'rollback' : 'upgrade',
            name,
            key: `plugin.change:${name}`,
            title: `${isRollback ? 'Roll back' : 'Upgrade'} ${name} to ${version}`,
            request,
            source: { package: record.package, version },
            entry
        };
    }

    /** A version that is on the disk since an earlier install; null when its manifest cannot be read. */
    async #keptPackage(entry: LockEntry): Promise<PluginPackage | null> {
        const { result } = await this.#ports.lifecycle.registry.locate(entry);
        return 'plugin' in result ? result.plugin : null;
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

function installOrder(source: InstallSource, request: InstallRequest): InstallOrder {
    const isNamed = 'package' in source;
    const title = isNamed
        ? `${source.package}${source.version === undefined ? '' : ` ${source.version}`}`
        : `an archive of ${source.tarball.byteLength} bytes`;
    return {
        kind: 'install',
        name: null,
        key: `plugin.install:${isNamed ? source.package : 'archive'}`,
        title: `Install ${title}`,
        source,
        entry: null,
        request
    };
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
