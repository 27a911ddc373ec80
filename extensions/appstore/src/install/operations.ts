/** One change at a time for an app, kept while it lasts: what fails or is cut goes back, data included. */
import { type Actor, errors, isFailure, type TaskView } from '@portico/sdk';

import type { InstalledRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { AppHosts } from './hosts.ts';
import type { Drafts } from './planning/drafts.ts';
import { stackOf } from './planning/layout.ts';
import type { InstalledStore, Operation } from './store.ts';
import { callOf, type Run, type Trial } from './trial.ts';

/** What installs, updates and removals of apps work with. */
export interface OperationParts {
    readonly ctx: Ctx;
    readonly store: InstalledStore;
    readonly drafts: Drafts;
    readonly trial: Trial;
    readonly hosts: AppHosts;
    readonly machine: Machine;
}

/** What an operation is begun with: the app, the work, and the user or plugin that asked for it. */
export interface Begin {
    readonly name: string;
    readonly kind: Operation['kind'];
    readonly title: string;
    readonly access: 'run' | 'write';
    readonly actor: Actor | null;
    readonly to?: string | null;
    readonly keepData?: boolean;
}

/** A change under way. */
export class Change {
    readonly row: InstalledRow;
    readonly run: Run;
    readonly #store: InstalledStore;
    #operation: Operation;

    constructor(store: InstalledStore, row: InstalledRow, operation: Operation, run: Run) {
        this.#store = store;
        this.row = row;
        this.run = run;
        this.#operation = operation;
    }

    get operation(): Operation {
        return this.#operation;
    }

    /** Writes down how far it has come, before it goes on. */
    async note(change: Partial<Operation>): Promise<void> {
        this.#operation = { ...this.#operation, ...change };
        await this.#store.operate(this.row.name, this.#operation);
    }
}

const undoneMessage = 'It was cut by the end of the panel, and taken back';
const cancelledMessage = 'It was cancelled, and taken back';

const whyOf = (error: unknown): string =>
    isFailure(error) ? error.message : 'An unexpected fault; see the log of the panel';

/** Begins changes, and takes back what failed. */
export class Operations {
    readonly #parts: OperationParts;
    readonly #busy = new Set<string>();

    constructor(parts: OperationParts) {
        this.#parts = parts;
    }

    /**
     * Begins a change as a task. When the work fails, the app is as before, and so are its data where the change had a snapshot of them.
     *
     * @throws IN_USE 40901 while another change is under way
     */
    async begin<T>(
        { name, kind, title, access, actor, to = null, keepData = false }: Begin,
        work: (change: Change) => Promise<T>
    ): Promise<TaskView> {
        const { ctx, store } = this.#parts;
        const row = await store.get(name);
        this.refuseBusy(row);
        this.#busy.add(name);
        try {
            return await ctx.task(
                {
                    ...{ kind, title, access, resource: name, key: `app:${name}` },
                    ...(actor === null ? {} : { actor })
                },
                async (run) => {
                    try {
                        const operation = await this.#first(row, { kind, to, keepData });
                        const change = new Change(store, row, operation, run);
                        return await this.#guard(change, work);
                    } finally {
                        this.#busy.delete(name);
                    }
                }
            );
        } catch (error) {
            this.#busy.delete(name);
            throw error;
        }
    }

    /** Does something short that no change may meet. @throws IN_USE 40901 */
    async hold<T>(name: string, work: (row: InstalledRow) => Promise<T>): Promise<T> {
        const row = await this.#parts.store.get(name);
        this.refuseBusy(row);
        this.#busy.add(name);
        try {
            return await work(row);
        } finally {
            this.#busy.delete(name);
        }
    }

    /** @throws IN_USE 40901 */
    refuseBusy({ name, operation }: Pick<InstalledRow, 'name' | 'operation'>): void {
        if (this.#busy.has(name) || operation !== null) {
            throw errors.inUse(name, 'Another change of this app is under way: wait for its end');
        }
    }

    /** Finishes or undoes what a killed panel left, and what could not be undone before. One task for each app. */
    async recover(): Promise<void> {
        const { ctx, store } = this.#parts;
        for (const row of await store.list()) {
            if (row.operation === null || this.#busy.has(row.name)) {
                continue;
            }
            const { name } = row;
            const operation = JSON.parse(row.operation) as Operation;
            this.#busy.add(name);
            await ctx
                .task(
                    {
                        kind: 'recover',
                        title: `Recover ${name}`,
                        access: 'write',
                        resource: name,
                        key: `app:${name}`
                    },
                    async (run) => {
                        try {
                            await this.#recoverOne(new Change(store, row, operation, run));
                        } finally {
                            this.#busy.delete(name);
                        }
                    }
                )
                .catch((error: unknown) => {
                    this.#busy.delete(name);
                    throw error;
                });
        }
    }

    async #recoverOne(change: Change): Promise<void> {
        if (change.operation.kind === 'remove') {
            await this.finishRemoval(change);
        } else {
            await this.#undo(change, change.operation.why ?? undoneMessage);
        }
    }

    async #first(
        { name, revision }: InstalledRow,
        { kind, to, keepData }: Pick<Operation, 'kind' | 'to' | 'keepData'>
    ): Promise<Operation> {
        const { ctx, store } = this.#parts;
        const stack = revision === 0 ? null : await ctx.plugins.container.stack({ name: stackOf(name) });
        const wasRunning = stack === null ? kind === 'install' : !['stopped', 'absent'].includes(stack.state);
        const stackRevision = stack?.revision ?? null;
        const operation: Operation = {
            ...{ kind, snapshot: null, touched: false, keepData, wasRunning, stackRevision, to, why: null }
        };
        const state = kind === 'install' ? 'installing' : 'updating';
        await store.operate(name, operation, kind === 'backup' ? {} : { state });
        return operation;
    }

    async #guard<T>(change: Change, work: (change: Change) => Promise<T>): Promise<T> {
        try {
            return await work(change);
        } catch (error) {
            // At the end of the plugin nothing can be taken back any more: the next start does it.
            if (change.operation.kind !== 'remove' && !this.#parts.ctx.signal.aborted) {
                await this.#undo(change, change.run.signal.aborted ? cancelledMessage : whyOf(error));
            }
            throw error;
        }
    }

    /** Takes a change back. What cannot be taken back now is tried again later: the operation stays on record. */
    async #undo(change: Change, why: string): Promise<void> {
        const { ctx, store } = this.#parts;
        const { name } = change.row;
        // The change may have been cancelled; taking it back is not.
        const run: Run = { actor: change.run.actor, log: change.run.log, signal: ctx.signal };
        try {
            await change.note({ why });
            if (change.operation.kind === 'install') {
                await this.#undoInstall(change, run);
                return;
            }
            await this.#restoreRevision(change, run);
            await store.operate(name, null, { state: 'ready', lastError: why });
            await this.#tellUndone(change, why);
        } catch (error) {
            await store.update(name, {
                state: 'failed',
                lastError: `${why}. It could not be taken back yet: ${String(error)}`
            });
            ctx.log.error('A change of an app could not be taken back', { app: name, error: String(error) });
        }
    }

    /** An update that was taken back is not tried again by itself. */
    async #tellUndone({ row, operation }: Change, why: string): Promise<void> {
        const { ctx, store } = this.#parts;
        const { kind, to } = operation;
        if (kind !== 'update' || to === null) {
            return;
        }
        const before = JSON.parse(row.takenBack) as readonly string[];
        await store.update(row.name, { takenBack: JSON.stringify([...new Set([...before, to])].slice(-50)) });
        await ctx.notify({
            event: 'update-undone',
            severity: 'warning',
            title: `The update of ${row.name} to ${to} was taken back`,
            text: why,
            data: { app: row.name, version: to }
        });
    }

    async #undoInstall({ row, operation }: Change, run: Run): Promise<void> {
        const { ctx, store, hosts } = this.#parts;
        const stack = stackOf(row.name);
        const { container } = ctx.plugins;
        await hosts.remove(row.hostId);
        if (!operation.keepData) {
            await container.remove({ stack, volumes: true }, callOf(run));
        } else if ((await container.stack({ name: stack })) !== null) {
            await container.control({ stack, action: 'down' }, callOf(run));
        }
        await store.remove(row.name);
    }

    async #restoreRevision({ row, operation }: Change, run: Run): Promise<void> {
        const { ctx } = this.#parts;
        const stack = stackOf(row.name);
        const { container } = ctx.plugins;
        if (!operation.touched) {
            if (operation.wasRunning) {
                await container.control({ stack, action: 'start' }, callOf(run));
            }
            return;
        }
        if (operation.stackRevision === null && !operation.wasRunning) {
            // It came with an import and had no stack: it has none again.
            await container.remove({ stack, volumes: false }, callOf(run));
            return;
        }
        if (operation.snapshot !== null) {
            await container.control({ stack, action: 'stop' }, callOf(run));
            await container.restore({ stack, snapshot: operation.snapshot }, callOf(run));
        }
        await this.#restoreStack({ row, operation }, run);
        if (!operation.wasRunning) {
            await container.control({ stack, action: 'stop' }, callOf(run));
        }
    }

    /** Compose text, variables and images as they were: by the record of `container`, or where that is gone by the app's own. */
    async #restoreStack({ row, operation }: Pick<Change, 'row' | 'operation'>, run: Run): Promise<void> {
        const { ctx, store, drafts, trial } = this.#parts;
        const stack = stackOf(row.name);
        const { container } = ctx.plugins;
        const { stackRevision } = operation;
        const now = (await container.stack({ name: stack }))?.revision ?? null;
        if (stackRevision !== null && now === stackRevision) {
            await container.control({ stack, action: 'redeploy' }, callOf(run));
            return;
        }
        if (stackRevision !== null && now === stackRevision + 1) {
            await container.rollback({ stack, revision: stackRevision }, callOf(run));
            return;
        }
        const before = await store.revision(row.name, row.revision);
        const plan = await drafts.plan(row, before, { actor: run.actor, exposed: before, pinned: true });
        await trial.deploy(drafts.target({ name: row.name, document: before.document, plan }), run);
    }

    /** Removes an app, from wherever its removal has come. */
    async finishRemoval({ row, operation, run }: Change): Promise<void> {
        const { ctx, store, hosts, machine } = this.#parts;
        const stack = stackOf(row.name);
        const { container } = ctx.plugins;
        await hosts.remove(row.hostId);
        if (!operation.keepData) {
            await container.remove({ stack, volumes: true }, callOf(run));
            await store.remove(row.name);
            return;
        }
        let bytes = 0;
        if ((await container.stack({ name: stack })) !== null) {
            await container.control({ stack, action: 'down' }, callOf(run));
            for (const { id, snapshot } of await store.backups(row.name)) {
                await container.dropSnapshot({ stack, snapshot }, callOf(run));
                await store.dropBackup(id);
            }
            const measured = await container.snapshot({ stack }, callOf(run));
            bytes = measured.bytes;
            await container.dropSnapshot({ stack, snapshot: measured.snapshot }, callOf(run));
        }
        const { source, app, keyId, name, port } = row;
        const values = row.revision === 0 ? {} : (await store.revision(name, row.revision)).values;
        const sealed = await ctx.secrets.seal(JSON.stringify(values));
        await store.addLeftover({
            name,
            source,
            app,
            keyId,
            bytes,
            leftAt: machine.now(),
            values: sealed,
            port
        });
        await store.remove(name);
    }
}
