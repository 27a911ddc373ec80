/** The thread in which one generation works on many small files: calls that block cost a fraction of a promise for each. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';

import type { Owned, Scope } from '@portico/sdk/host';

import type { Reply, Request } from './operations.ts';

/** A thread without work ends after this time. */
const idleMs = 5_000;

/** One thread that runs. */
interface Running {
    readonly worker: Worker;
    readonly owned: Owned;
    /** Who waits for a reply, in the order of the requests. */
    readonly waiting: PromiseWithResolvers<Reply>[];
    idle: NodeJS.Timeout | null;
}

/** Starts with the first request, and ends with the scope, or some seconds after the last request. */
export class FilesThread {
    readonly #scope: Scope;
    readonly #leave: <T>(work: () => T) => T;
    #running: Running | null = null;

    /** @param leave - runs code of the host: the thread is the panel's */
    constructor(scope: Scope, leave: <T>(work: () => T) => T) {
        this.#scope = scope;
        this.#leave = leave;
    }

    /** Does a request. When it settles, the thread uses no descriptor of it any more. @throws Error when the thread ended before it was done */
    perform(request: Request): Promise<Reply> {
        return this.#leave(() => {
            const running = (this.#running ??= this.#start());
            const reply = Promise.withResolvers<Reply>();
            running.waiting.push(reply);
            if (running.idle !== null) {
                clearTimeout(running.idle);
                running.idle = null;
            }
            running.worker.ref();
            running.worker.postMessage(request);
            return reply.promise;
        });
    }

    #start(): Running {
        const worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), {
            name: 'files',
            resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }
        });
        const owned = this.#scope.own('thread', 'files', () => worker.terminate());
        const running: Running = { worker, owned, waiting: [], idle: null };
        let failure: unknown = null;
        worker.on('error', (error) => (failure = error));
        worker.on('message', (reply: Reply) => {
            running.waiting.shift()?.resolve(reply);
            if (running.waiting.length === 0) {
                worker.unref();
                running.idle = setTimeout(() => this.#end(running), idleMs).unref();
            }
        });
        worker.once('exit', () => {
            this.#forget(running);
            for (const { reject } of running.waiting) {
                reject(new Error('The thread for files ended', { cause: failure }));
            }
        });
        return running;
    }

    #end(running: Running): void {
        this.#forget(running);
        void running.worker.terminate();
    }

    #forget(running: Running): void {
        if (running.idle !== null) {
            clearTimeout(running.idle);
        }
        running.owned.drop();
        if (this.#running === running) {
            this.#running = null;
        }
    }
}
