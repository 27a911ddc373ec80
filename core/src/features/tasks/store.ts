/** The rows of tasks: written at the start, at the end, and now and then in between. */
import type { Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../platform/database/database.ts';
import { TaskEntity } from './entities.ts';
import { TaskLog, taskLogOf } from './log.ts';
import { interrupted, type LiveTask, mayRead, type TaskRow, type TaskState } from './task.ts';

/** Which tasks a list shows. */
export interface TaskFilter {
    readonly state?: TaskState | undefined;
    readonly kind?: string | undefined;
}

/** Which part of the matching tasks a list shows. */
export interface TaskPage {
    readonly limit: number;
    /** Only tasks with a smaller id; null for the first page. */
    readonly before: number | null;
}

/** What the starter of a task decides. */
export type NewTask = Pick<TaskRow, 'kind' | 'title' | 'access' | 'starter' | 'actor' | 'route'>;

const keptTasks = 1_000;
const columns =
    'id, kind, title, state, progress, access, starter, actor, route, created_at, started_at, finished_at, result, error, version';

/** Reads and writes the rows of tasks. */
export class TaskStore {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #byId: Statement<[number], TaskRow & { readonly log: string }>;
    readonly #page: Statement<[number, string | null, string | null, string, string, number], TaskRow>;
    readonly #accesses: Statement<[], { access: string }>;

    constructor(db: Database, clock: Clock) {
        this.#db = db;
        this.#clock = clock;
        this.#byId = db.prepare(`select ${columns}, log from tasks where id = ?`);
        this.#page = db.prepare(
            `select ${columns} from tasks where id < ? and kind = coalesce(?, kind) and state = coalesce(?, state) and (starter = ? or access in (select value from json_each(?))) order by id desc limit ?`
        );
        this.#accesses = db.prepare('select distinct access from tasks');
    }

    /** The row as it was last written. */
    find(id: number): TaskRow | undefined {
        return this.#byId.get(id);
    }

    /** The log as it was last written. */
    logOf(id: number): TaskLog {
        const row = this.#byId.get(id);
        return row === undefined ? new TaskLog() : taskLogOf(row.log);
    }

    /** The tasks that the caller may see, newest first. */
    list(caller: Caller, { state, kind }: TaskFilter, { limit, before }: TaskPage): TaskRow[] {
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

    /** Adds a queued task and removes the oldest finished ones. `also` writes more in the same transaction. */
    insert(task: NewTask, also: (tx: Transaction, row: TaskRow) => Promise<void>): Promise<TaskRow> {
        const createdAt = this.#clock.now();
        return this.#db.write(async (tx) => {
            const id = await tx.em.insert(TaskEntity, {
                ...task,
                state: 'queued',
                progress: null,
                createdAt,
                startedAt: null,
                finishedAt: null,
                result: null,
                error: null,
                log: JSON.stringify(new TaskLog()),
                version: 1
            });
            await tx.em.execute(
                'delete from tasks where finished_at is not null and id <= (select id from tasks order by id desc limit 1 offset ?)',
                [keptTasks],
                'run'
            );
            const row: TaskRow = {
                ...task,
                id,
                state: 'queued',
                progress: null,
                created_at: createdAt,
                started_at: null,
                finished_at: null,
                result: null,
                error: null,
                version: 1
            };
            await also(tx, row);
            return row;
        });
    }

    /** Writes the state, the progress and the log of tasks that are not over. */
    async save(tasks: readonly LiveTask[]): Promise<void> {
        await this.#db.write(async (tx) => {
            for (const task of tasks.filter(({ ending }) => !ending)) {
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

    /** Writes the end of a task. */
    async finish(
        task: LiveTask,
        end: Pick<TaskRow, 'state' | 'progress' | 'finished_at' | 'result' | 'error'>
    ): Promise<void> {
        await this.#db.write((tx) =>
            tx.em.nativeUpdate(
                TaskEntity,
                { id: task.row.id },
                {
                    state: end.state,
                    progress: end.progress,
                    startedAt: task.row.started_at,
                    finishedAt: end.finished_at,
                    result: end.result,
                    error: end.error,
                    log: JSON.stringify(task.log),
                    version: task.row.version + 1
                }
            )
        );
    }

    /** Writes the result that a task has if it is cut from here on. */
    async recordResult(tx: Transaction, task: LiveTask, result: unknown): Promise<void> {
        await tx.em.nativeUpdate(TaskEntity, { id: task.row.id }, { result: JSON.stringify(result) });
        tx.afterCommit(() => task.record(result));
    }

    /**
     * Ends the tasks that were not over when the panel ended: those that recorded a result have succeeded, the others have failed. Returns how many
     * there were.
     */
    async endInterrupted(): Promise<number> {
        const { affectedRows } = await this.#db.writeEssential((tx) =>
            tx.em.execute<{ affectedRows: number }>(
                `update tasks set state = iif(result is null, 'failed', 'succeeded'), error = iif(result is null, ?, null),
                progress = iif(result is null, progress, 1), finished_at = ?, version = version + 1 where state in ('queued', 'running')`,
                [JSON.stringify(interrupted), this.#clock.now()],
                'run'
            )
        );
        return affectedRows;
    }
}
