/** Long work that a call starts and others follow and cancel. A task that a restart cut has failed, or has the result that it recorded. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as wait } from 'node:timers/promises';

import { type AuditDetail, reply } from '@portico/sdk';

import { type Call, type Caller, recordedActor } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/log.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';
import { followTask, replayTask } from './events.ts';
import { type Ending, errorOf, rowOf } from './outcome.ts';
import type { TaskEvent } from './schema.ts';
import { type TaskFilter, type TaskPage, TaskStore } from './store.ts';
import { interrupted, isOver, isStarter, LiveTask, mayRead, type TaskRow, viewOf } from './task.ts';

/** What the work of a task gets. */
export interface TaskRun {
    readonly id: number;
    readonly actor: Caller;
    /** Aborts when a caller cancels the task or the panel stops. The work must then end soon, by throwing. */
    readonly signal: AbortSignal;
    /** 0 to 1, or null when unknown; the text becomes a line of the log. */
    progress(fraction: number | null, text?: string): void;
    log(text: string): void;
    /**
     * Writes, with the change that the task is for, how it ends if it is cut from here on: with this result, at most 1 MiB as JSON. Without it a
     * task that the end of the panel cuts has failed.
     */
    recordResult(tx: Transaction, result: unknown): Promise<void>;
}

/** A task to be started. */
export interface TaskStart {
    /** What kind of work, as `certificate.issue`. */
    readonly kind: string;
    /** What users read; default: the kind. */
    readonly title?: string;
    /** The permission of the route that starts it, or `'authenticated'`. */
    readonly access: string;
    /** The call that starts it; its audit entry is written with the task. */
    readonly call: Call;
    /** Only one task at a time can have this key. */
    readonly key?: string;
    /** Details for the audit entry of the call. */
    readonly audit?: AuditDetail;
    /** Writes more in the transaction that makes the task durable. `start` throws what it throws. */
    readonly also?: (tx: Transaction) => Promise<void>;
    /** Returns the result of the task: plain data, at most 1 MiB as JSON. */
    work(run: TaskRun): Promise<unknown>;
}

/** What {@link Tasks} needs. */
export interface TasksOptions {
    readonly db: Database;
    readonly log: Logger;
    readonly clock: Clock;
    /** Is told a task whose state or progress changed; must not throw. */
    readonly changed?: (task: TaskRow) => void;
    /** Milliseconds; defaults: 5 s between saves, 5 s for work to end when the panel stops, 2 s when it is cancelled. */
    readonly timing?: { readonly saveMs?: number; readonly closeMs?: number; readonly cancelMs?: number };
}

/** More tasks than these wait in the queue. */
const runningAtOnce = 4;

/** Runs long work in the background, a few tasks at a time, and shows it to the callers who may see it. */
export class Tasks {
    readonly #options: TasksOptions;
    readonly #store: TaskStore;
    /** Runs work outside the transaction and the request that are open. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #live = new Map<number, LiveTask>();
    /** The task that has a key; null while it is being written. */
    readonly #keys = new Map<string, number | null>();
    readonly #queue: (() => void)[] = [];
    readonly #runs = new Set<Promise<void>>();
    #saver: NodeJS.Timeout | null = null;
    #running = 0;
    #closed = false;

    private constructor(options: TasksOptions, store: TaskStore) {
        this.#options = options;
        this.#store = store;
    }

    /** Opens the tasks of a database. Tasks that the end of the panel cut are ended. */
    static async open(options: TasksOptions): Promise<Tasks> {
        const store = new TaskStore(options.db, options.clock);
        const count = await store.endInterrupted();
        if (count > 0) {
            options.log.warn('The end of the panel interrupted tasks', { tasks: count });
        }
        return new Tasks(options, store);
    }

    /**
     * Resolves when the task is durable, not when it is done.
     *
     * @throws IN_USE 40901 while another task has the key, NOT_READY 50300 while the panel stops
     */
    async start(options: TaskStart): Promise<TaskView> {
        const { call, key = null, kind, access, title = kind } = options;
        if (this.#closed) {
            throw fail.NOT_READY();
        }
        if (key !== null) {
            const holder = this.#keys.get(key);
            if (holder !== undefined) {
                throw fail.IN_USE({ by: { task: holder } }, { message: 'A task is already at work on it' });
            }
            this.#keys.set(key, null);
        }
        try {
            const row = await this.#store.insert(
                {
                    kind,
                    title,
                    access,
                    starter: call.actor.key,
                    actor: JSON.stringify(recordedActor(call.actor)),
                    route: call.route ?? null
                },
                async (tx, inserted) => {
                    await options.also?.(tx);
                    await call.complete(tx, {
                        ...options.audit,
                        reply: reply.accepted(viewOf(inserted, call.actor))
                    });
                }
            );
            const task = new LiveTask(row, key, this.#options.changed);
            this.#live.set(row.id, task);
            if (key !== null) {
                this.#keys.set(key, row.id);
            }
            this.#queue.push(() => this.#outside(() => this.#begin(task, options)));
            this.#next();
            return viewOf(row, call.actor);
        } catch (error) {
            this.#keys.delete(key ?? '');
            throw error;
        }
    }

    /** Newest first: the tasks that the caller started, and those whose permission the caller has. */
    list(
        caller: Caller,
        filter: TaskFilter,
        { limit, before }: TaskPage
    ): { readonly tasks: TaskView[]; readonly next: number | null } {
        const rows =
            filter.state !== undefined && !isOver(filter.state)
                ? this.#unfinished(caller, filter, before)
                : this.#store.list(caller, filter, { limit: limit + 1, before });
        const tasks = rows.slice(0, limit).map((row) => viewOf(this.#live.get(row.id)?.row ?? row, caller));
        return { tasks, next: rows.length > limit ? (tasks.at(-1)?.id ?? null) : null };
    }

    /** @throws NOT_FOUND 40400, also for a task that the caller may not see */
    get(id: number, caller: Caller): TaskView {
        return viewOf(this.#find(id, caller), caller);
    }

    /** Asks a task to end, and waits a little for it. A task that is over stays as it is. @throws NOT_FOUND 40400 */
    async cancel(id: number, call: Call): Promise<TaskView> {
        const { kind } = this.#find(id, call.actor);
        await this.#options.db.write((tx) =>
            call.complete(tx, {
                reply: this.get(id, call.actor),
                action: 'cancel',
                resource: 'tasks',
                resourceId: id,
                after: { kind }
            })
        );
        const task = this.#live.get(id);
        if (task !== undefined) {
            task.cancelled = true;
            task.controller.abort(new Error('The task was cancelled'));
            if (task.row.state === 'queued') {
                await this.#finish(task, { state: 'cancelled' });
            }
            await this.#ended(task, this.#options.timing?.cancelMs ?? 2_000);
        }
        return this.get(id, call.actor);
    }

    /**
     * The events of a task: `progress`, `log` (for callers who may read it) and at last `end`.
     *
     * @param options - `from`: the number after the last line of the log that the reader has
     * @throws NOT_FOUND 40400
     */
    events(
        id: number,
        caller: Caller,
        { from = 0, signal }: { readonly from?: number; readonly signal: AbortSignal }
    ): AsyncGenerator<TaskEvent> {
        const row = this.#find(id, caller);
        const task = this.#live.get(id);
        return task === undefined
            ? replayTask(row, this.#store.logOf(id), caller, from)
            : followTask(task, caller, from, signal);
    }

    /** Aborts the running tasks, waits for them, and marks those that do not end as interrupted. */
    async close(): Promise<void> {
        this.#closed = true;
        clearTimeout(this.#saver ?? undefined);
        this.#queue.length = 0;
        for (const task of this.#live.values()) {
            task.controller.abort(new Error('The panel stops'));
        }
        const late = new AbortController();
        await Promise.race([
            Promise.allSettled(this.#runs),
            wait(this.#options.timing?.closeMs ?? 5_000, undefined, { signal: late.signal }).catch(
                () => undefined
            )
        ]);
        late.abort();
        for (const task of [...this.#live.values()]) {
            await this.#finish(task, task.recorded ?? { state: 'failed', error: interrupted });
        }
    }

    #unfinished(caller: Caller, { state, kind }: TaskFilter, before: number | null): TaskRow[] {
        return [...this.#live.values()]
            .map(({ row }) => row)
            .reverse()
            .filter(
                (row) =>
                    row.state === state &&
                    (kind === undefined || row.kind === kind) &&
                    (before === null || row.id < before) &&
                    (isStarter(row, caller) || mayRead(row, caller))
            );
    }

    #find(id: number, caller: Caller): TaskRow {
        const row = this.#live.get(id)?.row ?? this.#store.find(id);
        if (row === undefined || !(isStarter(row, caller) || mayRead(row, caller))) {
            throw fail.NOT_FOUND();
        }
        return row;
    }

    #next(): void {
        while (this.#running < runningAtOnce) {
            const begin = this.#queue.shift();
            if (begin === undefined) {
                return;
            }
            begin();
        }
    }

    #begin(task: LiveTask, options: TaskStart): void {
        if (task.ending) {
            return;
        }
        this.#running += 1;
        task.update({ state: 'running', started_at: this.#options.clock.now() });
        this.#save();
        const run = this.#run(task, options).finally(() => {
            this.#running -= 1;
            this.#runs.delete(run);
            this.#next();
        });
        this.#runs.add(run);
    }

    async #run(task: LiveTask, options: TaskStart): Promise<void> {
        const { signal } = task.controller;
        let ending: Ending;
        try {
            const result = await options.work({
                id: task.row.id,
                actor: options.call.actor,
                signal,
                progress: (fraction, text) => {
                    if (text !== undefined) {
                        this.#say(task, text);
                    }
                    this.#progress(task, fraction);
                },
                log: (text) => this.#say(task, text),
                recordResult: (tx, result) => this.#store.recordResult(tx, task, result)
            });
            ending = { state: 'succeeded', result };
        } catch (error) {
            ending = signal.aborted
                ? (task.recorded ??
                  (task.cancelled ? { state: 'cancelled' } : { state: 'failed', error: interrupted }))
                : { state: 'failed', error: errorOf(task, error, this.#options.log) };
        }
        await this.#finish(task, ending);
    }

    #say(task: LiveTask, text: string): void {
        if (!task.ending) {
            task.say(String(text));
            this.#save();
        }
    }

    #progress(task: LiveTask, fraction: number | null): void {
        if (!task.ending) {
            task.update({
                progress:
                    typeof fraction === 'number' && Number.isFinite(fraction)
                        ? Math.min(1, Math.max(0, fraction))
                        : null
            });
            this.#save();
        }
    }

    /** Ends a task once; later calls do nothing. The end is durable before readers see it, unless it cannot be written. */
    async #finish(task: LiveTask, ending: Ending): Promise<void> {
        if (!task.end()) {
            return;
        }
        const { id, kind } = task.row;
        const finishedAt = this.#options.clock.now();
        const end = { ...rowOf(ending, task, this.#options.log), finished_at: finishedAt };
        try {
            await this.#store.finish(task, end);
        } catch (error) {
            this.#options.log.error(
                'The end of a task could not be written; after a restart it counts as interrupted',
                { task: id, kind, error }
            );
        }
        task.update(end);
        this.#live.delete(id);
        if (task.lockKey !== null) {
            this.#keys.delete(task.lockKey);
        }
    }

    async #ended(task: LiveTask, ms: number): Promise<void> {
        const signal = AbortSignal.timeout(ms);
        while (!isOver(task.row.state) && !signal.aborted) {
            await task.after(task.revision, signal);
        }
    }

    /** Plans a save of the running tasks, so that a crash loses little of their logs. */
    #save(): void {
        if (this.#saver !== null || this.#closed) {
            return;
        }
        this.#saver = this.#outside(() =>
            setTimeout(() => {
                this.#saver = null;
                void this.#saveAll().catch((error: unknown) =>
                    this.#options.log.error('The progress of tasks could not be written', { error })
                );
            }, this.#options.timing?.saveMs ?? 5_000).unref()
        );
    }

    async #saveAll(): Promise<void> {
        const unsaved = [...this.#live.values()].filter((task) => task.unsaved);
        if (unsaved.length > 0) {
            await this.#store.save(unsaved);
        }
    }
}
