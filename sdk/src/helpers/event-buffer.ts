/** The newest events of a stream, kept once for all listeners. */

/** An event with its id; or, when the listener is too slow or comes too late, how many events it missed. */
export type BufferedEvent<E> =
    { readonly id: string; readonly event: E } | { readonly id: string; readonly missed: number };

/**
 * Keeps the newest events of a stream, and hands them to listeners, each at its own pace. A slow listener costs no memory.
 *
 * @remarks Events are numbered from 1. An id names the event and the buffer, so a listener of an earlier process is recognised.
 */
export class EventBuffer<E> {
    readonly #kept: number;
    /** First part of each id. */
    readonly #run = crypto.randomUUID().slice(0, 8);
    readonly #listeners = new Set<() => void>();
    /** The newest events, up to twice as many as are kept: removing one at each event would move all others. */
    #events: E[] = [];
    #last = 0;

    /** @param kept - how many events are kept */
    constructor(kept: number) {
        this.#kept = kept;
    }

    /** Number of the newest event; 0 before the first. */
    get last(): number {
        return this.#last;
    }

    /** Number of the oldest event that is kept; 1 before the first. */
    get first(): number {
        return Math.max(1, this.#last - this.#kept + 1);
    }

    /** How many listeners there are now. */
    get listeners(): number {
        return this.#listeners.size;
    }

    /** Adds an event, and wakes the listeners. Returns its number. */
    publish(event: E): number {
        this.#last += 1;
        this.#events.push(event);
        if (this.#events.length >= 2 * this.#kept) {
            this.#events = this.#events.slice(-this.#kept);
        }
        this.#listeners.forEach((wake) => wake());
        return this.#last;
    }

    /** The id of an event, as in `Last-Event-ID`. */
    idOf(number: number): string {
        return `${this.#run}.${number}`;
    }

    /** The number of an event; null for an id that is not of this buffer. */
    numberOf(id: string): number | null {
        const [run, number = ''] = id.split('.');
        return run === this.#run && /^\d{1,15}$/.test(number) ? Number(number) : null;
    }

    /** The events after one number, from those that are kept to those to come, until the signal aborts. */
    async *after(number: number, signal: AbortSignal): AsyncGenerator<BufferedEvent<E>> {
        let at = number;
        let wake = (): void => undefined;
        const ring = (): void => wake();
        this.#listeners.add(ring);
        signal.addEventListener('abort', ring, { once: true });
        try {
            while (!signal.aborted) {
                const before = this.first - 1;
                if (at < before) {
                    const missed = before - at;
                    at = before;
                    yield { id: this.idOf(at), missed };
                } else if (at < this.#last) {
                    at += 1;
                    yield { id: this.idOf(at), event: this.#events.at(at - this.#last - 1) as E };
                } else {
                    await new Promise<void>((resolve) => {
                        wake = resolve;
                    });
                }
            }
        } finally {
            this.#listeners.delete(ring);
            signal.removeEventListener('abort', ring);
        }
    }
}
