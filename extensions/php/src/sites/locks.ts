/** One change of a site at a time: a second one is refused, not queued, because its author has not seen the first. */
import { errors } from '@portico/sdk';

/** The sites that are being changed. */
export class Locks {
    readonly #held = new Map<number, string>();

    /** What is done to a site now; undefined when nothing is. */
    holder(id: number): string | undefined {
        return this.#held.get(id);
    }

    /** Does work on a site. @throws IN_USE 40901 while other work is done on it */
    async run<T>(id: number, what: string, work: () => Promise<T>): Promise<T> {
        using _held = this.take(id, what);
        return await work();
    }

    /** Takes the lock until it is disposed of. @throws IN_USE 40901 */
    take(id: number, what: string): Disposable {
        const holder = this.#held.get(id);
        if (holder !== undefined) {
            throw errors.inUse(holder);
        }
        this.#held.set(id, what);
        return { [Symbol.dispose]: () => void this.#held.delete(id) };
    }
}
