/** One thing at a time, in the order in which it was asked for; changes that wait side by side are taken together. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface ApplyQueue<C> {
    /** Puts a change in line. Whoever takes the batch answers for it. */
    change(change: C): void;
    /** Runs work alone, between batches. */
    alone<T>(work: () => Promise<T>): Promise<T>;
    /** Resolves when the line is empty. */
    idle(): Promise<void>;
}

/**
 * @param take - settles a batch of changes, and returns those to be taken again at the head of the next one (after `wait`); never throws
 */
export function createApplyQueue<C>(
    take: (
        batch: readonly C[]
    ) => Promise<{ readonly left: readonly C[]; readonly wait: Promise<void> | null }>
): ApplyQueue<C> {
    type Entry = { readonly change: C } | { readonly work: () => Promise<void> };
    const line: Entry[] = [];
    // Whoever asks first must not lend its own context (a transaction, a request) to the work of all others.
    const outside = AsyncLocalStorage.snapshot();
    let running: Promise<void> | null = null;

    const takeChanges = (): C[] => {
        const end = line.findIndex((entry) => 'work' in entry);
        return line
            .splice(0, end === -1 ? line.length : end)
            .flatMap((entry) => ('change' in entry ? [entry.change] : []));
    };

    const run = async (): Promise<void> => {
        for (let head = line[0]; head !== undefined; head = line[0]) {
            if ('work' in head) {
                line.shift();
                await head.work();
                continue;
            }

            const { left, wait } = await take(takeChanges());
            line.unshift(...left.map((change) => ({ change })));
            await wait;
        }

        running = null;
    };

    const add = (entry: Entry): void => {
        line.push(entry);
        // A turn later, so that changes asked for in one turn are one batch.
        running ??= outside(() => Promise.resolve().then(run));
    };

    return {
        change(change) {
            add({ change });
        },
        alone: (work) =>
            new Promise((resolve, reject) => {
                add({ work: () => work().then(resolve, reject) });
            }),
        async idle() {
            while (running !== null) {
                await running;
            }
        }
    };
}
