/** Long work of a plugin under test, kept by the panel's own tasks. */
import {
    type Caller,
    createInternalCall,
    type Database,
    type HttpPorts,
    type Tasks
} from '@portico/core/plugin-runtime';
import type { TaskView } from '@portico/sdk';

import { inTime } from './deadline.ts';

/** A task with what only those see who may read it. */
export interface TestTask extends TaskView {
    /** The permission that its starter's route asks for, such as `notes:write`. */
    readonly access: string;
    readonly log: readonly string[];
}

/** The tasks that the plugin started. */
export class TestTasks {
    readonly #tasks: Tasks;
    readonly #db: Database;
    readonly #recorder: HttpPorts['recorder'];
    readonly #system: Caller;
    readonly #patienceMs: number;

    /** @internal */
    constructor(
        tasks: Tasks,
        db: Database,
        recorder: HttpPorts['recorder'],
        system: Caller,
        patienceMs: number
    ) {
        this.#tasks = tasks;
        this.#db = db;
        this.#recorder = recorder;
        this.#system = system;
        this.#patienceMs = patienceMs;
    }

    /** Every task, oldest first. */
    list(): readonly TestTask[] {
        const page = this.#tasks.list(this.#system, {}, { limit: 1_000, before: null });
        return page.tasks.map((task) => this.#withLog(task)).reverse();
    }

    /** Waits for the end of one, by default the newest. @throws Error when there is none; TestTimeout when it does not end */
    async wait(id = this.#newest()): Promise<TestTask> {
        const { kind } = this.#tasks.get(id, this.#system);
        const leaving = new AbortController();
        const over = Array.fromAsync(this.#tasks.events(id, this.#system, { signal: leaving.signal }));
        await inTime(`the end of task ${id} (${kind})`, this.#patienceMs, over).finally(() =>
            leaving.abort()
        );
        return this.#withLog(this.#tasks.get(id, this.#system));
    }

    /** Cancels one, as a person would, and waits for its end. */
    async cancel(id = this.#newest()): Promise<TestTask> {
        const signal = new AbortController().signal;
        const call = createInternalCall({ caller: this.#system, recorder: this.#recorder, signal });
        await this.#tasks.cancel(id, call);
        return this.wait(id);
    }

    #newest(): number {
        const [task] = this.#tasks.list(this.#system, {}, { limit: 1, before: null }).tasks;
        if (task === undefined) {
            throw new Error('The plugin started no task');
        }
        return task.id;
    }

    #withLog({ version: _version, ...task }: TaskView & { readonly version: number }): TestTask {
        const [row] = this.#db
            .prepare<[number], { access: string; log: string }>('select access, log from tasks where id = ?')
            .all(task.id);
        const { lines } = JSON.parse(row?.log ?? '{"lines":[]}') as { readonly lines: readonly string[] };
        return { ...task, access: row?.access ?? '', log: lines };
    }
}
