/** What happens now, for whoever listens: the newest events are kept, and each listener reads them at its own pace. */
import { randomUUID } from 'node:crypto';

import type { StreamEvent } from '@portico/sdk';

/** Events kept for those who come back. */
const kept = 120;

interface Held {
    readonly number: number;
    readonly event: string;
    readonly data: unknown;
}

export class Feed {
    /** Tells events of this generation from those of earlier ones. */
    readonly #mark = randomUUID().slice(0, 8);
    #events: Held[] = [];
    #last = 0;
    readonly #listeners = new Set<() => void>();

    publish(event: string, data: unknown): void {
        this.#last += 1;
        this.#events = [...this.#events.slice(1 - kept), { number: this.#last, event, data }];
        this.#listeners.forEach((wake) => wake());
    }

    /** How many listen. */
    get listeners(): number {
        return this.#listeners.size;
    }

    /**
     * All events from now on, the newest sample first; after a `lastEventId`, what came since. What is no longer kept is told by an event `gap`. A slow
     * listener costs nothing: it finds what is kept when it comes.
     */
    async *listen(lastEventId: string | null, signal: AbortSignal): AsyncGenerator<StreamEvent> {
        let at = this.#begin(lastEventId);
        let wake = (): void => undefined;
        const ring = (): void => wake();
        this.#listeners.add(ring);
        signal.addEventListener('abort', ring, { once: true });
        try {
            while (!signal.aborted) {
                const first = this.#events[0]?.number ?? this.#last + 1;
                if (at + 1 < first) {
                    yield { event: 'gap', id: this.#id(first - 1), data: { missed: first - at - 1 } };
                    at = first - 1;
                }
                const next = this.#events.find(({ number }) => number > at);
                if (next === undefined) {
                    await new Promise<void>((resolve) => {
                        wake = resolve;
                    });
                    continue;
                }
                at = next.number;
                yield { event: next.event, id: this.#id(next.number), data: next.data };
            }
        } finally {
            this.#listeners.delete(ring);
            signal.removeEventListener('abort', ring);
        }
    }

    #begin(lastEventId: string | null): number {
        const [mark, number] = (lastEventId ?? '').split('.');
        if (lastEventId === null || !/^\d{1,15}$/.test(number ?? '')) {
            // Whoever is new sees at once how things are.
            return (this.#events.findLast(({ event }) => event === 'sample')?.number ?? this.#last + 1) - 1;
        }
        if (mark !== this.#mark) {
            // What came before this generation is not here; all that is here came after.
            return (this.#events[0]?.number ?? 1) - 1;
        }
        return Math.min(Number(number), this.#last);
    }

    #id(number: number): string {
        return `${this.#mark}.${number}`;
    }
}
