/** One task: its state as it is known in memory while it is queued or runs, and how it is shown to whom. */
import type { TaskView as BareView } from '@portico/sdk';

import type { Caller } from '../../platform/call.ts';
import { TaskLog } from './task-log.ts';

export type TaskState = BareView['state'];

/** A task as the API shows it. */
export interface TaskView extends BareView {
    readonly title: string;
    /** Counts up with each change of the state. */
    readonly version: number;
}

/** A failure as it is kept. */
export interface TaskError {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly data: unknown;
}

/** A task's fields, as they lie in the database. */
export interface TaskRow {
    readonly id: number;
    readonly kind: string;
    readonly title: string;
    readonly state: TaskState;
    readonly progress: number | null;
    readonly access: string;
    readonly starter: string;
    readonly created_at: number;
    readonly started_at: number | null;
    readonly finished_at: number | null;
    readonly result: string | null;
    readonly error: string | null;
    readonly version: number;
}

/** Whether the caller has what the route that started the task asks for. */
export function mayRead(task: Pick<TaskRow, 'access' | 'starter'>, caller: Caller): boolean {
    return task.access === 'authenticated'
        ? isStarter(task, caller) || caller.kind === 'system'
        : caller.can(task.access);
}

export function isStarter(task: Pick<TaskRow, 'starter'>, caller: Caller): boolean {
    return task.starter === caller.key;
}

/** Result and error are for those who have the permission of the route that started it, the starter included. */
export function viewOf(row: TaskRow, caller: Caller): TaskView {
    const open = mayRead(row, caller);
    return {
        id: row.id,
        kind: row.kind,
        title: row.title,
        state: row.state,
        progress: row.progress,
        startedAt: timeOf(row.started_at),
        finishedAt: timeOf(row.finished_at),
        result: open && row.result !== null ? (JSON.parse(row.result) as unknown) : null,
        error: open && row.error !== null ? (JSON.parse(row.error) as unknown) : null,
        version: row.version
    };
}

function timeOf(milliseconds: number | null): string | null {
    return milliseconds === null ? null : new Date(milliseconds).toISOString();
}

export const isOver = (state: TaskState): boolean => state !== 'queued' && state !== 'running';

/** A task that is not over yet. */
export class LiveTask {
    readonly log = new TaskLog();
    readonly controller = new AbortController();
    readonly lockKey: string | null;
    /** Somebody asked it to end. */
    cancelled = false;
    #row: TaskRow;
    #revision = 0;
    #waiting: (() => void)[] = [];
    #saved = 0;
    #ending = false;

    constructor(row: TaskRow, lockKey: string | null) {
        this.#row = row;
        this.lockKey = lockKey;
    }

    get row(): TaskRow {
        return this.#row;
    }

    /** Counts up with whatever a reader can see. */
    get revision(): number {
        return this.#revision;
    }

    /** It ended, or its end is being written. */
    get ending(): boolean {
        return this.#ending;
    }

    /** True for the first who ends it. */
    end(): boolean {
        const first = !this.#ending;
        this.#ending = true;
        return first;
    }

    /** Something is in memory only. */
    get unsaved(): boolean {
        return this.#saved !== this.#revision;
    }

    saved(revision: number): void {
        this.#saved = revision;
    }

    update(fields: Partial<TaskRow>): void {
        const version =
            fields.state === undefined || fields.state === this.#row.state
                ? this.#row.version
                : this.#row.version + 1;
        this.#row = { ...this.#row, ...fields, version };
        this.#changed();
    }

    say(text: string): void {
        this.log.add(text);
        this.#changed();
    }

    /** Resolves when there is more to see than at `revision`, or the signal aborts. */
    async after(revision: number, signal: AbortSignal): Promise<void> {
        if (this.#revision !== revision || signal.aborted) {
            return;
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        const wake = (): void => resolve();
        this.#waiting.push(wake);
        signal.addEventListener('abort', wake, { once: true });
        await promise;
        signal.removeEventListener('abort', wake);
    }

    #changed(): void {
        this.#revision += 1;
        const waiting = this.#waiting;
        this.#waiting = [];
        waiting.forEach((resolve) => resolve());
    }
}
