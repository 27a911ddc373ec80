/** Events as they happen. The newest are kept, and each listener reads them at its own pace. */
import { EventBuffer, type EventOf, joi } from '@portico/sdk';

import { alertSchema } from '../alerts/schema.ts';
import { sampleSchema } from './sample.ts';

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

/** Keeps the newest events and hands them to listeners. */
export class EventFeed {
    readonly #buffer = new EventBuffer<{ readonly event: FeedEvent['event']; readonly data: unknown }>(kept);
    /** Number of the newest sample; 0 before the first. */
    #sample = 0;

    /** Adds an event and wakes the listeners. */
    publish(event: FeedEvent['event'], data: unknown): void {
        const number = this.#buffer.publish({ event, data });
        if (event === 'sample') {
            this.#sample = number;
        }
    }

    /** Number of listeners. */
    get listeners(): number {
        return this.#buffer.listeners;
    }

    /**
     * Yields the newest sample and all events from now on; with a `lastEventId`, all events since that one. An event `gap` says how many of them are no
     * longer kept.
     */
    async *listen(lastEventId: string | null, signal: AbortSignal): AsyncGenerator<FeedEvent> {
        for await (const next of this.#buffer.after(this.#startAfter(lastEventId), signal)) {
            const { id } = next;
            if ('missed' in next) {
                yield { event: 'gap', id, data: { missed: next.missed } };
            } else {
                // It was published with the data of its name.
                yield { ...next.event, id } as FeedEvent;
            }
        }
    }

    #startAfter(lastEventId: string | null): number {
        const { first, last } = this.#buffer;
        if (lastEventId === null || !/^[^.]*\.\d{1,15}$/.test(lastEventId)) {
            // A new listener begins with the newest sample.
            return this.#sample < first ? last : this.#sample - 1;
        }
        // Everything that is kept came after an id of an earlier generation.
        return Math.min(this.#buffer.numberOf(lastEventId) ?? first - 1, last);
    }
}
