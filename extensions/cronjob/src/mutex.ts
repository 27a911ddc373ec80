/** One after the other: what decides about runs sees the decision before it. */
export class Turns {
    #tail: Promise<unknown> = Promise.resolve();

    /** Does work when everything before it is done. Never call it within a turn. */
    take<T>(work: () => Promise<T>): Promise<T> {
        const turn = this.#tail.then(work);
        this.#tail = turn.catch(() => undefined);
        return turn;
    }
}
