/** One after the other: whoever works on the engine's process waits for those before it. */
export class Turns {
    #under = 0;
    #last: Promise<unknown> = Promise.resolve();

    /** Whether anybody's turn is under way. */
    get busy(): boolean {
        return this.#under > 0;
    }

    take<Result>(work: () => Promise<Result>): Promise<Result> {
        const result = this.#last.then(async () => {
            this.#under += 1;
            try {
                return await work();
            } finally {
                this.#under -= 1;
            }
        });
        this.#last = result.catch(() => undefined);
        return result;
    }

    /** Resolves when everybody has had their turn; never rejects. */
    async over(): Promise<void> {
        await this.#last;
    }
}
