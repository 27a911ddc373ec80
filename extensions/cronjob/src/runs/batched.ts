/** Work that is done for many at once: what comes while it waits for its turn is done with it. */
import type { Mutex } from '@portico/sdk';

interface Waiting<T> {
    readonly item: T;
    resolve(): void;
    reject(error: unknown): void;
}

/** Gathers items until the mutex is free, and then works on all of them together. */
export class Batched<T> {
    readonly #mutex: Mutex;
    readonly #work: (items: readonly T[]) => Promise<void>;
    #waiting: Waiting<T>[] = [];

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
            void this.#mutex.run(() => this.#take());
        }
        return promise;
    }

    async #take(): Promise<void> {
        const taken = this.#waiting;
        this.#waiting = [];
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
