/** Which repositories restic works in. They are marked meanwhile, so that the next start finds what a killed panel left locked. */
import type { Logger } from '@portico/sdk';

/** Counts the users of each repository, and keeps its mark. */
export class Marks {
    readonly #log: Logger;
    readonly #mark: (id: number, isUsed: boolean) => Promise<void>;
    readonly #users = new Map<number, number>();
    /** Those whose locks of a killed panel could not be removed yet: they stay marked for the next start. */
    readonly #left = new Set<number>();

    /** @param mark - stores whether a repository is in use */
    constructor(log: Logger, mark: (id: number, isUsed: boolean) => Promise<void>) {
        this.#log = log;
        this.#mark = mark;
    }

    /** Runs work while which restic locks the repository. @throws what the work throws, and what keeps the mark from being set before it */
    async during<T>(id: number, work: () => Promise<T>): Promise<T> {
        const users = (this.#users.get(id) ?? 0) + 1;
        this.#users.set(id, users);
        try {
            if (users === 1) {
                await this.#mark(id, true);
            }
            return await work();
        } finally {
            await this.#leave(id);
        }
    }

    /** Removes the locks that a killed panel left. The mark stays where that fails. */
    async recover(id: number, unlock: () => Promise<unknown>): Promise<void> {
        this.#left.add(id);
        await this.during(id, async () => {
            await unlock();
            this.#left.delete(id);
        });
    }

    /** A mark that stays only makes the next start look for locks, so the end of the work counts. */
    async #leave(id: number): Promise<void> {
        const users = (this.#users.get(id) ?? 1) - 1;
        this.#users.set(id, users);
        if (users > 0 || this.#left.has(id)) {
            return;
        }
        try {
            await this.#mark(id, false);
        } catch (error) {
            this.#log.warn('That a repository is no longer in use could not be stored', {
                repository: id,
                error: String(error)
            });
        }
    }
}
