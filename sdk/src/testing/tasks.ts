/** Long work in a test: it runs at once, and the test sees all of it. */
import { failureOf } from '../boundary/failures.ts';
import { errors } from '../plugin-errors.ts';
import type { TaskView } from '../reply.ts';

/** A task with all that only its readers see. */
export interface TestTask extends TaskView {
    readonly title: string;
    /** The permission that reading it asks for, whole: `hello:read`. */
    readonly access: string;
    readonly log: readonly string[];
}

export interface TaskStart {
    readonly kind: string;
    readonly title: string;
    readonly access: string;
    readonly key: string | null;
    work(task: {
        readonly id: number;
        readonly signal: AbortSignal;
        progress(fraction: number | null, text?: string): void;
        log(line: string): void;
    }): Promise<unknown>;
}

type Row = { -readonly [K in keyof TestTask]: TestTask[K] } & { log: string[] };

export class TasksFake {
    readonly #rows = new Map<
        number,
        {
            readonly row: Row;
            readonly key: string | null;
            readonly controller: AbortController;
            readonly over: Promise<void>;
        }
    >();
    readonly #now: () => Date;

    constructor(now: () => Date) {
        this.#now = now;
    }

    /** Every task, oldest first. */
    list(): readonly TestTask[] {
        return [...this.#rows.values()].map(({ row }) => ({ ...row, log: [...row.log] }));
    }

    /** Waits for the end of one, by default the newest. @throws Error when there is none */
    async wait(id?: number): Promise<TestTask> {
        const { row, over } = this.#find(id);
        await over;
        return { ...row, log: [...row.log] };
    }

    /** Cancels one, as a person would, and waits for its end. */
    async cancel(id?: number): Promise<TestTask> {
        const { row, controller } = this.#find(id);
        controller.abort(new Error('The task was cancelled'));
        return this.wait(row.id);
    }

    start({ kind, title, access, key, work }: TaskStart): TaskView {
        if (
            key !== null &&
            [...this.#rows.values()].some((each) => each.key === key && each.row.finishedAt === null)
        ) {
            throw errors.inUse({ task: [...this.#rows.values()].find((each) => each.key === key)?.row.id });
        }
        const controller = new AbortController();
        const row: Row = {
            id: this.#rows.size + 1,
            kind,
            title,
            access,
            state: 'queued',
            progress: null,
            startedAt: null,
            finishedAt: null,
            result: null,
            error: null,
            log: []
        };
        const over = (async () => {
            await new Promise((resolve) => setImmediate(resolve));
            row.state = 'running';
            row.startedAt = this.#now().toISOString();
            try {
                row.result =
                    (await work({
                        id: row.id,
                        signal: controller.signal,
                        log: (line) => void row.log.push(line),
                        progress(fraction, text) {
                            row.progress = fraction;
                            if (text !== undefined) {
                                row.log.push(text);
                            }
                        }
                    })) ?? null;
                row.state = 'succeeded';
                row.progress = 1;
            } catch (error) {
                row.state = controller.signal.aborted ? 'cancelled' : 'failed';
                const { code, reason, message, data } = failureOf(error);
                row.error = row.state === 'cancelled' ? null : { code, reason, message, data };
            }
            row.finishedAt = this.#now().toISOString();
        })();
        this.#rows.set(row.id, { row, key, controller, over });
        const { log: _log, access: _access, ...view } = row;
        return view;
    }

    #find(id = this.#rows.size): {
        readonly row: Row;
        readonly controller: AbortController;
        readonly over: Promise<void>;
    } {
        const found = this.#rows.get(id);
        if (found === undefined) {
            throw new Error(this.#rows.size === 0 ? 'The plugin started no task' : `There is no task ${id}`);
        }
        return found;
    }
}
