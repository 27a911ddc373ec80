/** Work that the caller does not wait for. Failures are reported; `idle` waits for all of it. */
export class BackgroundWork {
    readonly #running = new Set<Promise<unknown>>();
    readonly #failed: (error: unknown) => void;

    /** @param failed - is told each error that work rejected with */
    constructor(failed: (error: unknown) => void) {
        this.#failed = failed;
    }

    /** Lets the work go on without the caller. */
    add(work: Promise<unknown>): void {
        const handled = work.catch(this.#failed).finally(() => this.#running.delete(handled));
        this.#running.add(handled);
    }

    /** Resolves when no work is left, including work that was added meanwhile. */
    async idle(): Promise<void> {
        while (this.#running.size > 0) {
            await Promise.all(this.#running);
        }
    }
}
