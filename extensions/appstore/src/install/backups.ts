/** Backups of apps: snapshots of their volumes. */
import { type Actor, errors, type TaskView } from '@portico/sdk';

import type { BackupRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Change, Operations } from './operations.ts';
import { stackOf } from './planning/layout.ts';
import type { InstalledStore } from './store.ts';
import { callOf } from './trial.ts';

const byHand = 'by hand';

/** Takes backups, and brings them back. */
export class Backups {
    readonly #ctx: Ctx;
    readonly #store: InstalledStore;
    readonly #operations: Operations;
    readonly #machine: Machine;

    constructor(
        ctx: Ctx,
        parts: {
            readonly store: InstalledStore;
            readonly operations: Operations;
            readonly machine: Machine;
        }
    ) {
        this.#ctx = ctx;
        this.#store = parts.store;
        this.#operations = parts.operations;
        this.#machine = parts.machine;
    }

    /** Takes one within a change; the change goes back to it when it fails. The app is stopped by then, if `stop` says so. */
    async take(change: Change, because: string, stop: boolean): Promise<BackupRow> {
        const { row, run } = change;
        const stack = stackOf(row.name);
        const { container } = this.#ctx.plugins;
        const { version, document } = await this.#store.revision(row.name, row.revision);
        const volumes = document.backup?.volumes;
        if (stop) {
            await container.control({ stack, action: 'stop' }, callOf(run));
        }
        const { snapshot, bytes } = await container.snapshot(
            { stack, ...(volumes === undefined ? {} : { volumes }) },
            callOf(run)
        );
        await change.note({ snapshot });
        const backup = {
            ...{ name: row.name, revision: row.revision, version, bytes, because, snapshot },
            madeAt: this.#machine.now()
        };
        return { ...backup, id: await this.#store.addBackup(backup) };
    }

    /** Begins a backup by hand. */
    async begin(name: string, actor: Actor): Promise<TaskView> {
        const row = await this.#store.get(name);
        const { document } = await this.#store.revision(name, row.revision);
        return this.#operations.begin(
            { name, kind: 'backup', title: `Back ${name} up`, access: 'write', actor },
            async (change) => {
                const backup = await this.take(change, byHand, document.backup?.stop ?? true);
                if (change.operation.wasRunning) {
                    const call = callOf(change.run);
                    await this.#ctx.plugins.container.control(
                        { stack: stackOf(name), action: 'start' },
                        call
                    );
                }
                await this.#store.operate(name, null);
                return { id: backup.id, bytes: backup.bytes };
            }
        );
    }

    /** Begins a restore: the data of a backup, under the revision that runs. What was there before is a backup, too. */
    async restore(name: string, id: number, actor: Actor): Promise<TaskView> {
        const { snapshot } = await this.get(name, id);
        return this.#operations.begin(
            { name, kind: 'restore', title: `Restore ${name}`, access: 'write', actor },
            async (change) => {
                const stack = stackOf(name);
                const { container } = this.#ctx.plugins;
                await this.take(change, `restore of backup ${id}`, true);
                await change.note({ touched: true });
                await container.restore({ stack, snapshot }, callOf(change.run));
                if (change.operation.wasRunning) {
                    await container.control({ stack, action: 'start' }, callOf(change.run));
                }
                await this.#store.operate(name, null, { state: 'ready', lastError: null });
                await this.prune(name);
                return { restored: id };
            }
        );
    }

    /** @throws NOT_FOUND 40400 */
    async get(name: string, id: number): Promise<BackupRow> {
        await this.#store.get(name);
        const backup = (await this.#store.backups(name)).find((each) => each.id === id);
        if (backup === undefined) {
            throw errors.notFound('There is no such backup');
        }
        return backup;
    }

    /** @throws NOT_FOUND 40400; IN_USE 40901 while a change of the app may need it */
    async remove(name: string, id: number): Promise<void> {
        const { snapshot } = await this.get(name, id);
        await this.#operations.hold(name, async () => {
            await this.#ctx.plugins.container.dropSnapshot({ stack: stackOf(name), snapshot });
            await this.#store.dropBackup(id);
        });
    }

    /** Drops the oldest of those that changes made, beyond the setting. */
    async prune(name: string): Promise<void> {
        const made = (await this.#store.backups(name)).filter(({ because }) => because !== byHand);
        for (const { id, snapshot } of made.slice(this.#ctx.settings.backupsKept)) {
            await this.#ctx.plugins.container.dropSnapshot({ stack: stackOf(name), snapshot });
            await this.#store.dropBackup(id);
        }
    }
}
