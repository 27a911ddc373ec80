/** Tasks that work on servers: one at a time on each. */
import { type Actor, errors, type TaskRun, type TaskView } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** What is known of a task before it begins. */
export interface ServerTask {
    readonly kind: string;
    readonly title: string;
    readonly access: string;
    readonly actor: Actor;
}

/** Begins them, and knows which servers they work on. */
export class ServerTasks {
    readonly #ctx: Ctx;
    /** Servers that a task of this generation works on. */
    readonly #busy = new Set<number>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Whether a task works on a server. */
    isBusy(id: number): boolean {
        return this.#busy.has(id);
    }

    /** Begins a task. @throws IN_USE 40901 while another one works on the server */
    async run(id: number, what: ServerTask, work: (run: TaskRun) => Promise<unknown>): Promise<TaskView> {
        const release = this.#occupy(id);
        try {
            return await this.#ctx.task({ ...what, resource: `${id}` }, (run) => work(run).finally(release));
        } catch (error) {
            release();
            throw error;
        }
    }

    #occupy(id: number): () => void {
        if (this.#busy.has(id)) {
            throw errors.inUse('a task that works on this server');
        }
        this.#busy.add(id);
        return () => void this.#busy.delete(id);
    }
}
