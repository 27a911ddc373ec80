/** The sync queue: one piece of work at a time, in the order of the calls. Changes that wait next to each other are taken as one batch. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** What came of a batch: the changes to be taken again at the head of the next batch, and what the queue waits for before it. */
export interface BatchResult<C> {
    readonly left: readonly C[];
    readonly wait: Promise<unknown>;
}

type Entry<C> = { readonly change: C } | { readonly work: () => Promise<void> };

/** Orders changes and exclusive work. `C` is a change together with its caller's promise. */
export class SyncQueue<C> {
    readonly #take: (batch: readonly C[]) => Promise<BatchResult<C>>;
    readonly #line: Entry<C>[] = [];
    // The first caller must not lend its own context (a transaction, a request) to the work of all others.
    readonly #outside = AsyncLocalStorage.snapshot();
    #running: Promise<void> | null = null;

    /** @param take - applies a batch and answers its callers; never throws */
    constructor(take: (batch: readonly C[]) => Promise<BatchResult<C>>) {
        this.#take = take;
    }

    /** Puts a change in line. `take` answers its caller. */
    change(change: C): void {
        this.#add({ change });
    }

    /** Runs work on its own, between batches. */
    exclusive<T>(work: () => Promise<T>): Promise<T> {
        return new Promise((resolve, reject) => {
            this.#add({ work: () => work().then(resolve, reject) });
        });
    }

    /** Resolves when the line is empty. */
    async idle(): Promise<void> {
        while (this.#running !== null) {
            await this.#running;
        }
    }

    #add(entry: Entry<C>): void {
        this.#line.push(entry);
        // The batch starts a turn of the event loop later, so that changes of one turn become one batch.
        this.#running ??= this.#outside(() => Promise.resolve().then(() => this.#run()));
    }

    async #run(): Promise<void> {
        for (let head = this.#line[0]; head !== undefined; head = this.#line[0]) {
            if ('work' in head) {
                this.#line.shift();
                await head.work();
                continue;
            }

            const { left, wait } = await this.#take(this.#takeChanges());
            this.#line.unshift(...left.map((change) => ({ change })));
            await wait;
        }

        this.#running = null;
    }

    /** All changes up to the next exclusive work. */
    #takeChanges(): C[] {
        const end = this.#line.findIndex((entry) => 'work' in entry);
        return this.#line
            .splice(0, end === -1 ? this.#line.length : end)
            .flatMap((entry) => ('change' in entry ? [entry.change] : []));
    }
}
