/** Locks for asynchronous work within one process. */

/**
 * Runs asynchronous work one at a time, in the order in which it was asked for.
 *
 * @remarks Work must not call `run` of its own mutex and wait for it: that would never end.
 */
export class Mutex {
    #pending = 0;
    #last: Promise<void> = Promise.resolve();

    /** Whether any work runs or waits. */
    get busy(): boolean {
        return this.#pending > 0;
    }

    /** Runs the work when all earlier work has ended, also when that failed. Settles as the work does. */
    run<T>(work: () => T | Promise<T>): Promise<T> {
        this.#pending += 1;
        const result = this.#last.then(work);
        const release = (): void => {
            this.#pending -= 1;
        };
        this.#last = result.then(release, release);
        return result;
    }

    /** Resolves when all work that was asked for until now has ended; never rejects. */
    idle(): Promise<void> {
        return this.#last;
    }
}

/** A mutex for each key: work under the same key runs one at a time, work under different keys side by side. */
export class KeyedMutex {
    readonly #mutexes = new Map<string, Mutex>();

    /** Runs the work when all earlier work under this key has ended. */
    async run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
        const mutex = this.#mutexes.get(key) ?? new Mutex();
        this.#mutexes.set(key, mutex);
        try {
            return await mutex.run(work);
        } finally {
            if (!mutex.busy && this.#mutexes.get(key) === mutex) {
                this.#mutexes.delete(key);
            }
        }
    }

    /** Resolves when all work that was asked for until now, under one key or under all, has ended; never rejects. */
    async idle(key?: string): Promise<void> {
        const keys = key === undefined ? [...this.#mutexes.keys()] : [key];
        await Promise.all(keys.map(async (each) => this.#mutexes.get(each)?.idle()));
    }
}
