/** Events as they happen. The newest are kept, and each listener reads them at its own pace. */
import { randomUUID } from 'node:crypto';

import { type EventOf, joi } from '@portico/sdk';

import { alertSchema } from './alerts/schema.ts';
import { sampleSchema } from './sampling/sample.ts';

/** Number of events kept for listeners that come back. */
const kept = 120;

/** The events by their names. */
export const feedEvents = {
    sample: sampleSchema,
    alert: alertSchema,
    gap: joi.object({
        missed: joi
            .number()
            .integer()
            .required()
            .label('Missed')
            .description('How many events are no longer kept')
    })
};
/** One event. */
type FeedEvent = EventOf<typeof feedEvents>;

interface KeptEvent {
    readonly number: number;
    readonly event: FeedEvent['event'];
    readonly data: unknown;
}

/** Keeps the newest events and hands them to listeners. */
export class EventFeed {
    /** First part of each event's id: it differs between generations of the plugin. */
    readonly #generation = randomUUID().slice(0, 8);
    #events: KeptEvent[] = [];
    #last = 0;
    readonly #listeners = new Set<() => void>();

    /** Adds an event and wakes the listeners. */
    publish(event: FeedEvent['event'], data: unknown): void {
        this.#last += 1;
        this.#events = [...this.#events.slice(1 - kept), { number: this.#last, event, data }];
        this.#listeners.forEach((wake) => wake());
    }

    /** Number of listeners. */
    get listeners(): number {
        return this.#listeners.size;
    }

    /**
     * Yields the newest sample and all events from now on; with a `lastEventId`, all events since that one. An event `gap` says how many of them are no
     * longer kept. A slow listener costs no memory: it reads what is still kept.
     */
    async *listen(lastEventId: string | null, signal: AbortSignal): AsyncGenerator<FeedEvent> {
        let at = this.#startAfter(lastEventId);
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
                // It was published with the data of its name.
                yield { event: next.event, id: this.#id(next.number), data: next.data } as FeedEvent;
            }
        } finally {
            this.#listeners.delete(ring);
            signal.removeEventListener('abort', ring);
        }
    }

    #startAfter(lastEventId: string | null): number {
        const [generation, number] = (lastEventId ?? '').split('.');
        if (lastEventId === null || !/^\d{1,15}$/.test(number ?? '')) {
            // A new listener begins with the newest sample.
            return (this.#events.findLast(({ event }) => event === 'sample')?.number ?? this.#last + 1) - 1;
        }
        if (generation !== this.#generation) {
            // The id is of an earlier generation: everything that is kept came after it.
            return (this.#events[0]?.number ?? 1) - 1;
        }
        return Math.min(Number(number), this.#last);
    }

    #id(number: number): string {
        return `${this.#generation}.${number}`;
    }
}
