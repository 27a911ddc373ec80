/** Long work: started by a call, seen and cancelled by others, and never lost: what a restart cut is failed and says so. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as wait } from 'node:timers/promises';

import { type AuditDetail, isFailure, reply, type StreamEvent } from '@portico/sdk';

import type { Call, Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { TaskEntity } from './entities.ts';
import {
    isOver,
    isStarter,
    LiveTask,
    mayRead,
    type TaskError,
    type TaskRow,
    type TaskState,
    type TaskView,
    viewOf
} from './task.ts';
import { followTask, replayTask } from './task-events.ts';
import { taskLogOf } from './task-log.ts';

/** What a task's work is handed. */
export interface TaskRun {
    readonly id: number;
    readonly actor: Caller;
    /** Aborts when somebody cancels the task or the panel stops; the work is then to end soon, by throwing. */
    readonly signal: AbortSignal;
    /** 0 to 1, or null when unknown; the text becomes a line of the log. */
    progress(fraction: number | null, text?: string): void;
    log(text: string): void;
}

export interface TaskStart {
    /** What kind of work, as `certificate.issue`. */
    readonly kind: string;
    /** For people; default: the kind. */
    readonly title?: string;
    /** The permission that the route that starts it asks for, or `'authenticated'`. */
    readonly access: string;
    /** Who asks; the task is put on record with it. */
    readonly call: Call;
    /** Only one task at a time has this key. */
    readonly key?: string;
    /** What the call's audit entry says. */
    readonly audit?: AuditDetail;
    /** Writes what belongs to its beginning, in the transaction that makes it durable; what it throws, `start` throws. */
    readonly also?: (tx: Transaction) => Promise<void>;
    /** What it returns is the task's result: plain data, at most 1 MiB as JSON. */
    work(run: TaskRun): Promise<unknown>;
}

export interface TaskFilter {
    readonly state?: TaskState | undefined;
    readonly kind?: string | undefined;
}

export interface Tasks {
    /** Resolves when the task is durable, not when it is done. @throws IN_USE 40901 while another task has the key; NOT_READY 50300 while the panel stops */
    start(options: TaskStart): Promise<TaskView>;
    /** Newest first: those that the caller started, and those whose permission the caller has. */
    list(
        caller: Caller,
        filter: TaskFilter,
        page: { readonly limit: number; readonly before: number | null }
    ): { readonly tasks: TaskView[]; readonly next: number | null };
    /** @throws NOT_FOUND 40400, also for tasks that are none of the caller's business */
    get(id: number, caller: Caller): TaskView;
    /** Asks it to end and waits a little; one that is over stays as it is. @throws NOT_FOUND 40400 */
    cancel(id: number, call: Call): Promise<TaskView>;
    /** `progress`, `log` (for those who may read it) and at last `end`. `from`: the number after the last line that the reader has. @throws NOT_FOUND 40400 */
    events(
        id: number,
        caller: Caller,
        options: { readonly from?: number; readonly signal: AbortSignal }
    ): AsyncGenerator<StreamEvent>;
    /** Aborts what runs, waits for it, and marks what does not end as cut. */
    close(): Promise<void>;
}

export interface TasksOptions {
    readonly db: Database;
    readonly log: Logger;
    readonly clock: Clock;
    /** Milliseconds; defaults: 5 s between saves, 5 s for work to end when the panel stops, 2 s when it is cancelled. */
    readonly timing?: { readonly saveMs?: number; readonly closeMs?: number; readonly cancelMs?: number };
}

/** More wait in the queue. */
const runningAtOnce = 4;
const keptTasks = 1_000;
const mostResultBytes = 1024 * 1024;
const columns =
    'id, kind, title, state, progress, access, starter, created_at, started_at, finished_at, result, error, version';
const emptyLog = '{"first":0,"lines":[]}';
const cut: TaskError = {
    code: 50300,
    reason: 'INTERRUPTED',
    message:
        'The panel stopped while the task was under way; what it had done until then may have stayed done',
    data: null
};

/** Finds what a restart cut, and marks it as failed. */
export async function createTasks(options: TasksOptions): Promise<Tasks> {
    const { db, clock, log } = options;
    const { affectedRows } = await db.write((tx) =>
        tx.em.execute<{ affectedRows: number }>(
            "update tasks set state = 'failed', error = ?, finished_at = ?, version = version + 1 where state in ('queued', 'running')",
            [JSON.stringify(cut), clock.now()],
            'run'
        )
    );
    if (affectedRows > 0) {
        log.warn('Tasks were cut by the end of the panel', { tasks: affectedRows });
    }
    return new Service(options);
}

class Service implements Tasks {
    readonly #options: TasksOptions;
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #live = new Map<number, LiveTask>();
    readonly #keys = new Map<string, number | null>();
    readonly #queue: (() => void)[] = [];
    readonly #works = new Set<Promise<void>>();
    readonly #one: Statement<[number], TaskRow & { readonly log: string }>;
    readonly #page: Statement<[number, string | null, string | null, string, string, number], TaskRow>;
    readonly #accesses: Statement<[], { access: string }>;
    #saver: NodeJS.Timeout | null = null;
    #running = 0;
    #closed = false;

    constructor(options: TasksOptions) {
        const { db } = options;
        this.#options = options;
        this.#one = db.prepare(`select ${columns}, log from tasks where id = ?`);
        this.#page = db.prepare(
            `select ${columns} from tasks where id < ? and kind = coalesce(?, kind) and state = coalesce(?, state) and (starter = ? or access in (select value from json_each(?))) order by id desc limit ?`
        );
        this.#accesses = db.prepare('select distinct access from tasks');
    }

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
            const row = await this.#insert({ kind, title, access, starter: call.actor.key }, options);
            const task = new LiveTask(row, key);
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

    list(
        caller: Caller,
        { state, kind }: TaskFilter,
        { limit, before }: { readonly limit: number; readonly before: number | null }
    ): { readonly tasks: TaskView[]; readonly next: number | null } {
        const rows =
            state !== undefined && !isOver(state)
                ? this.#unfinished(caller, state, kind, before)
                : this.#rows(caller, state, kind, before, limit + 1);
        const tasks = rows.slice(0, limit).map((row) => viewOf(this.#live.get(row.id)?.row ?? row, caller));
        return { tasks, next: rows.length > limit ? (tasks.at(-1)?.id ?? null) : null };
    }

    get(id: number, caller: Caller): TaskView {
        return viewOf(this.#find(id, caller), caller);
    }

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
            await this.#settled(task, this.#options.timing?.cancelMs ?? 2_000);
        }
        return this.get(id, call.actor);
    }

    events(
        id: number,
        caller: Caller,
        { from = 0, signal }: { readonly from?: number; readonly signal: AbortSignal }
    ): AsyncGenerator<StreamEvent> {
        const row = this.#find(id, caller);
        const task = this.#live.get(id);
        return task === undefined
            ? replayTask(row, taskLogOf(this.#one.get(id)?.log ?? emptyLog), caller, from)
            : followTask(task, caller, from, signal);
    }

    async close(): Promise<void> {
        this.#closed = true;
        clearTimeout(this.#saver ?? undefined);
        this.#queue.length = 0;
        for (const task of this.#live.values()) {
            task.controller.abort(new Error('The panel stops'));
        }
        const late = new AbortController();
        await Promise.race([
            Promise.allSettled(this.#works),
            wait(this.#options.timing?.closeMs ?? 5_000, undefined, { signal: late.signal }).catch(
                () => undefined
            )
        ]);
        late.abort();
        for (const task of [...this.#live.values()]) {
            await this.#finish(task, { state: 'failed', error: cut });
        }
    }

    #unfinished(
        caller: Caller,
        state: TaskState,
        kind: string | undefined,
        before: number | null
    ): TaskRow[] {
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

    #rows(
        caller: Caller,
        state: TaskState | undefined,
        kind: string | undefined,
        before: number | null,
        limit: number
    ): TaskRow[] {
        const open = this.#accesses
            .all()
            .map(({ access }) => access)
            .filter((access) => mayRead({ access, starter: '' }, caller));
        return this.#page.all(
            before ?? Number.MAX_SAFE_INTEGER,
            kind ?? null,
            state ?? null,
            caller.key,
            JSON.stringify(open),
            limit
        );
    }

    #find(id: number, caller: Caller): TaskRow {
        const row = this.#live.get(id)?.row ?? this.#one.get(id);
        if (row === undefined || !(isStarter(row, caller) || mayRead(row, caller))) {
            throw fail.NOT_FOUND();
        }
        return row;
    }

    #insert(
        fields: Pick<TaskRow, 'kind' | 'title' | 'access' | 'starter'>,
        { call, audit, also }: TaskStart
    ): Promise<TaskRow> {
        const now = this.#options.clock.now();
        return this.#options.db.write(async (tx) => {
            const id = Number(
                await tx.em.insert(TaskEntity, {
                    ...fields,
                    state: 'queued',
                    progress: null,
                    createdAt: now,
                    startedAt: null,
                    finishedAt: null,
                    result: null,
                    error: null,
                    log: emptyLog,
                    version: 1
                } as never)
            );
            const row: TaskRow = {
                ...fields,
                id,
                state: 'queued',
                progress: null,
                created_at: now,
                started_at: null,
                finished_at: null,
                result: null,
                error: null,
                version: 1
            };
            await tx.em.execute(
                'delete from tasks where finished_at is not null and id <= (select id from tasks order by id desc limit 1 offset ?)',
                [keptTasks],
                'run'
            );
            await also?.(tx);
            await call.complete(tx, { ...audit, reply: reply.accepted(viewOf(row, call.actor)) });
            return row;
        });
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
        const work = this.#run(task, options).finally(() => {
            this.#running -= 1;
            this.#works.delete(work);
            this.#next();
        });
        this.#works.add(work);
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
                log: (text) => this.#say(task, text)
            });
            ending = { state: 'succeeded', result };
        } catch (error) {
            ending = task.cancelled
                ? { state: 'cancelled' }
                : { state: 'failed', error: signal.aborted ? cut : this.#errorOf(task, error) };
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

    #errorOf(task: LiveTask, error: unknown): TaskError {
        if (isFailure(error)) {
            const { code, reason, message, data } = error;
            return { code, reason, message, data };
        }
        this.#options.log.error('A task failed', { task: task.row.id, kind: task.row.kind, error });
        return {
            code: 50000,
            reason: 'INTERNAL',
            message: `Something went wrong; the log has it under the task ${task.row.id}`,
            data: null
        };
    }

    /** The first ending counts. It is durable before readers see it, unless it cannot be written. */
    async #finish(task: LiveTask, ending: Ending): Promise<void> {
        const { id, kind, started_at: startedAt } = task.row;
        if (!task.end()) {
            return;
        }
        const result = ending.state === 'succeeded' ? this.#resultOf(task, ending.result) : null;
        const error = ending.state === 'failed' ? JSON.stringify(ending.error) : null;
        const fields = {
            state: ending.state,
            finished_at: this.#options.clock.now(),
            result,
            error,
            ...(ending.state === 'succeeded' ? { progress: 1 } : {})
        };
        try {
            await this.#options.db.write((tx) =>
                tx.em.nativeUpdate(
                    TaskEntity,
                    { id },
                    {
                        state: fields.state,
                        progress: fields.progress ?? task.row.progress,
                        startedAt,
                        finishedAt: fields.finished_at,
                        result,
                        error,
                        log: JSON.stringify(task.log),
                        version: task.row.version + 1
                    }
                )
            );
        } catch (failure) {
            this.#options.log.error(
                'The end of a task could not be written; after a restart it will count as cut',
                { task: id, kind, error: failure }
            );
        }
        task.update(fields);
        this.#live.delete(id);
        if (task.lockKey !== null) {
            this.#keys.delete(task.lockKey);
        }
    }

    #resultOf(task: LiveTask, result: unknown): string | null {
        try {
            const text = JSON.stringify(result ?? null);
            if (Buffer.byteLength(text) <= mostResultBytes) {
                return text;
            }
            task.say('The result is larger than 1 MiB and was not kept');
        } catch (error) {
            task.say('The result is not plain data and was not kept');
            this.#options.log.error('The result of a task is not plain data', { task: task.row.id, error });
        }
        return null;
    }

    async #settled(task: LiveTask, ms: number): Promise<void> {
        const signal = AbortSignal.timeout(ms);
        while (!isOver(task.row.state) && !signal.aborted) {
            await task.after(task.revision, signal);
        }
    }

    /** What runs is written now and then, so that a crash leaves most of its log. */
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
        if (unsaved.length === 0) {
            return;
        }
        await this.#options.db.write(async (tx) => {
            for (const task of unsaved.filter(({ ending }) => !ending)) {
                const { id, state, progress, started_at: startedAt, version } = task.row;
                const { revision } = task;
                await tx.em.nativeUpdate(
                    TaskEntity,
                    { id, finishedAt: null },
                    { state, progress, startedAt, version, log: JSON.stringify(task.log) }
                );
                tx.afterCommit(() => task.saved(revision));
            }
        });
    }
}

type Ending =
    | { readonly state: 'succeeded'; readonly result: unknown }
    | { readonly state: 'failed'; readonly error: TaskError }
    | { readonly state: 'cancelled' };
