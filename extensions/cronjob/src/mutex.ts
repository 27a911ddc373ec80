/** A lock for asynchronous work within one process. */

/** Runs work one at a time, in the order in which it was asked for. Work must not call `run` of its own mutex and wait for it. */
export class Mutex {
    #last: Promise<unknown> = Promise.resolve();

    /** Runs the work when all earlier work has ended, also when that failed. Settles as the work does. */
    run<T>(work: () => Promise<T>): Promise<T> {
        const result = this.#last.then(work);
        this.#last = result.catch(() => undefined);
        return result;
    }
}
