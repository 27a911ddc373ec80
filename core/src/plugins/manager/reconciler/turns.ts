/** What is done to one plugin is done in turn; what is done to several goes side by side. */
export class Turns {
    readonly #tails = new Map<string, Promise<void>>();
    readonly #background = new Set<Promise<unknown>>();
    readonly #failed: (error: unknown) => void;

    /** @param failed - hears of work in the background that rejected */
    constructor(failed: (error: unknown) => void) {
        this.#failed = failed;
    }

    /** Runs something when all that was begun before under this name has ended. */
    take<T>(name: string, work: () => Promise<T>): Promise<T> {
        const run = this.before(name).then(work);
        this.#tails.set(
            name,
            run.then(
                () => undefined,
                () => undefined
            )
        );
        return run;
    }

    /** Settles when all that was begun until now under this name has ended. */
    before(name: string): Promise<void> {
        return this.#tails.get(name) ?? Promise.resolve();
    }

    /** Goes on with something that nobody waits for. */
    aside(work: Promise<unknown>): void {
        const quiet = work.catch(this.#failed).finally(() => this.#background.delete(quiet));
        this.#background.add(quiet);
    }

    /** Resolves when nothing is under way. */
    async idle(): Promise<void> {
        while (this.#background.size > 0) {
            await Promise.all(this.#background);
        }
        await Promise.all(this.#tails.values());
    }
}
