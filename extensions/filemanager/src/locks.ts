/** One writer at a time for each path, so that comparing a version and replacing the file are one step among the panel's own requests. */

export class Locks {
    readonly #tails = new Map<string, Promise<unknown>>();

    async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
        const before = this.#tails.get(key) ?? Promise.resolve();
        const mine = before.then(work, work);
        const tail = mine.catch(() => undefined);
        this.#tails.set(key, tail);
        try {
            return await mine;
        } finally {
            if (this.#tails.get(key) === tail) {
                this.#tails.delete(key);
            }
        }
    }
}
