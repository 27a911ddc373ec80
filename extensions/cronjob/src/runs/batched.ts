/** Work that is done for many at once. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Mutex } from '@portico/sdk';

interface Waiting<T> {
    readonly item: T;
    resolve(): void;
    reject(error: unknown): void;
}

/** So long after its work it gathers items. What comes alone never waits, and a write to the disk serves many of what comes in numbers. */
const pauseMs = 50;

/** Works on an item at once, and on what comes within 50 ms of that together. */
export class Batched<T> {
    readonly #mutex: Mutex;
    readonly #work: (items: readonly T[]) => Promise<void>;
    readonly #closing = new AbortController();
    #waiting: Waiting<T>[] = [];
    #pause: Promise<unknown> = Promise.resolve();

    /** @param work - runs under the mutex; where it fails for many, it runs for each of them alone, so that one does not take the others with it */
    constructor(mutex: Mutex, work: (items: readonly T[]) => Promise<void>) {
        this.#mutex = mutex;
        this.#work = work;
    }

    /** Resolves when the work on the item is done. Rejects with what the work on it alone throws. */
    add(item: T): Promise<void> {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        this.#waiting.push({ item, resolve, reject });
        if (this.#waiting.length === 1) {
            void this.#pause.then(() => this.#mutex.run(() => this.#take()));
        }
        return promise;
    }

    /** From now on nothing is gathered: what waits is worked on at once. */
    close(): void {
        this.#closing.abort();
    }

    async #take(): Promise<void> {
        const taken = this.#waiting;
        this.#waiting = [];
        this.#pause = wait(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
        try {
            await this.#work(taken.map(({ item }) => item));
            taken.forEach(({ resolve }) => resolve());
        } catch (error) {
            if (taken.length === 1) {
                taken.forEach(({ reject }) => reject(error));
                return;
            }
            for (const { item, resolve, reject } of taken) {
                await this.#work([item]).then(resolve, reject);
            }
        }
    }
}
