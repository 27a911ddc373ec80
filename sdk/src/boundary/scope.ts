/** Resources of a plugin generation and how to release them: last in, first out, each within a time limit. */
import { messageOf } from '../errors.ts';
import type { Release } from './protocol.ts';

/** Milliseconds in which one resource must be released. */
const patienceMs = 5_000;

/** One owned resource; `drop` takes it out of the scope without releasing it. */
export interface Owned {
    drop(): void;
}

/** Everything that a generation holds and that must be released at its end. */
export class Scope {
    readonly #held = new Map<
        object,
        { readonly kind: string; readonly name: string; readonly dispose: () => unknown }
    >();
    #closed = false;

    /** Adds a resource that is released at the end; when the scope has ended already, at once. */
    own(kind: string, name: string, dispose: () => unknown): Owned {
        const key = {};
        if (this.#closed) {
            void (async () => dispose())().catch(() => undefined);
            return { drop: () => undefined };
        }
        this.#held.set(key, { kind, name, dispose });
        return { drop: () => void this.#held.delete(key) };
    }

    /** The resources that are held now. */
    held(): readonly { readonly kind: string; readonly name: string }[] {
        return [...this.#held.values()].map(({ kind, name }) => ({ kind, name }));
    }

    /** Releases everything. A resource that fails or hangs is listed as leaked and does not stop the others. */
    async release(): Promise<Release> {
        this.#closed = true;
        const released: { kind: string; name: string }[] = [];
        const leaked: { kind: string; name: string; error: string }[] = [];
        for (const { kind, name, dispose } of [...this.#held.values()].reverse()) {
            try {
                await within(patienceMs, async () => dispose());
                released.push({ kind, name });
            } catch (error) {
                leaked.push({ kind, name, error: messageOf(error) });
            }
        }
        this.#held.clear();
        return { released, leaked };
    }
}

/** Waits for work at most so long. @throws Error when it takes longer; its signal is aborted then */
export async function within<T>(milliseconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => {
            const error = new Error(`Not done within ${milliseconds / 1000} s`);
            controller.abort(error);
            reject(error);
        }, milliseconds);
    });
    try {
        return await Promise.race([work(controller.signal), late]);
    } finally {
        clearTimeout(timer);
    }
}
