/** One task: its row, what each caller may see of it, and its state in memory until it is over. */
import type { Caller, RecordedActor } from '../../platform/call.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';
import { TaskLog } from './log.ts';

/** Where a task is in its life. */
export type TaskState = TaskView['state'];

/** Why a task failed, as it is stored. */
export interface TaskError {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly data: unknown;
}

/** The error of a task that ended because the panel did. */
export const interrupted: TaskError = {
    code: 50300,
    reason: 'INTERRUPTED',
    message: 'The panel stopped while the task was running; what it had done until then may have stayed done',
    data: null
};

/** A row of `tasks`, without its log. */
export interface TaskRow {
    readonly id: number;
    readonly kind: string;
    readonly title: string;
    readonly state: TaskState;
    readonly progress: number | null;
    readonly access: string;
    readonly starter: string;
    readonly actor: string | null;
    readonly route: string | null;
    readonly created_at: number;
    readonly started_at: number | null;
    readonly finished_at: number | null;
    readonly result: string | null;
    readonly error: string | null;
    readonly version: number;
}

/** Whether the caller has the permission of the route that started the task. */
export function mayRead(task: Pick<TaskRow, 'access' | 'starter'>, caller: Caller): boolean {
    return task.access === 'authenticated'
        ? isStarter(task, caller) || caller.kind === 'system'
        : caller.can(task.access);
}

/** Whether the caller started the task. */
export function isStarter(task: Pick<TaskRow, 'starter'>, caller: Caller): boolean {
    return task.starter === caller.key;
}

/** A task as the API shows it to a caller. Only callers with the permission of the route that started it see its result and its error. */
export function viewOf(row: TaskRow, caller: Caller): TaskView {
    const open = mayRead(row, caller);
    return {
        id: row.id,
        kind: row.kind,
        title: row.title,
        state: row.state,
        progress: row.progress,
        createdAt: new Date(row.created_at).toISOString(),
        actor: row.actor === null ? null : (JSON.parse(row.actor) as RecordedActor),
        route: row.route,
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

/** Whether a task in this state has ended. */
export function isOver(state: TaskState): boolean {
    return state !== 'queued' && state !== 'running';
}

/** A task that is not over yet. */
export class LiveTask {
    readonly log = new TaskLog();
    readonly controller = new AbortController();
    readonly lockKey: string | null;
    /** A caller asked it to end. */
    cancelled = false;
    #row: TaskRow;
    #revision = 0;
    #waiting: (() => void)[] = [];
    #saved = 0;
    #ending = false;
    #recorded: LiveTask['recorded'] = null;
    readonly #told: (row: TaskRow) => void;
    #lastTold: TaskRow;

    /** @param told - is called when the state changes, or the progress by a hundredth; must not throw */
    constructor(row: TaskRow, lockKey: string | null, told: (row: TaskRow) => void = () => undefined) {
        this.#row = row;
        this.lockKey = lockKey;
        this.#told = told;
        this.#lastTold = row;
        told(row);
    }

    get row(): TaskRow {
        return this.#row;
    }

    /** Increases with each change that a reader can see. */
    get revision(): number {
        return this.#revision;
    }

    /** Whether it ended, or its end is being written. */
    get ending(): boolean {
        return this.#ending;
    }

    /** Marks it as ending. Returns true for the first call only. */
    end(): boolean {
        const first = !this.#ending;
        this.#ending = true;
        return first;
    }

    /** How it ends if it is cut now; null: as interrupted. */
    get recorded(): { readonly state: 'succeeded'; readonly result: unknown } | null {
        return this.#recorded;
    }

    /** Notes the result that is in the database already. */
    record(result: unknown): void {
        this.#recorded = { state: 'succeeded', result };
    }

    /** Whether a change is only in memory. */
    get unsaved(): boolean {
        return this.#saved !== this.#revision;
    }

    /** Notes that everything up to this revision is in the database. */
    saved(revision: number): void {
        this.#saved = revision;
    }

    /** Changes fields of the row, and wakes the readers. */
    update(fields: Partial<TaskRow>): void {
        const version =
            fields.state === undefined || fields.state === this.#row.state
                ? this.#row.version
                : this.#row.version + 1;
        this.#row = { ...this.#row, ...fields, version };
        this.#changed();
        const { state, progress } = this.#lastTold;
        if (state !== this.#row.state || Math.abs((this.#row.progress ?? 0) - (progress ?? 0)) >= 0.01) {
            this.#lastTold = this.#row;
            this.#told(this.#row);
        }
    }

    /** Adds text to the log, and wakes the readers. */
    say(text: string): void {
        this.log.add(text);
        this.#changed();
    }

    /** Resolves when there is a newer revision than this one, or the signal aborts. */
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
