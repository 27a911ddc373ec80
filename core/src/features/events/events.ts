/** What happens in the panel, told to those who look: pages read again what changed, instead of asking every second. */
import { EventBuffer } from '@portico/sdk';

import type { Caller } from '../../platform/call.ts';
import type { PanelEvent, Topic } from './schema.ts';

/** Events that are kept for listeners that are slow or come back. */
const kept = 1_000;

/** An event, and who may see it. */
export interface NewEvent {
    readonly event: PanelEvent['event'] & Topic;
    readonly data: PanelEvent['data'];
    /** Is asked for each listener when it reads the event, so a permission that was taken away counts at once. */
    isVisible(caller: Caller): boolean;
}

/** What a listener wants. */
export interface Listening {
    readonly caller: Caller;
    /** Null: all topics. */
    readonly topics: ReadonlySet<string> | null;
    readonly lastEventId: string | null;
    readonly signal: AbortSignal;
}

/** Keeps the newest events once, for all listeners, and wakes those that wait. */
export class PanelEvents {
    readonly #buffer = new EventBuffer<NewEvent>(kept);

    /** Tells an event. Costs nothing but one entry when no listener waits. */
    publish(event: NewEvent): void {
        this.#buffer.publish(event);
    }

    /** How many listen now. */
    get listeners(): number {
        return this.#buffer.listeners;
    }

    /**
     * The events from now on, or since `lastEventId`. When events were missed, a `gap` comes first: the listener reads again what it shows.
     */
    async *listen({ caller, topics, lastEventId, signal }: Listening): AsyncGenerator<PanelEvent> {
        const { last } = this.#buffer;
        const known = lastEventId === null ? last : this.#buffer.numberOf(lastEventId);
        const isKnown = known !== null && known <= last;
        if (!isKnown) {
            yield { event: 'gap', id: this.#buffer.idOf(last), data: { missed: null } };
        }
        for await (const next of this.#buffer.after(isKnown ? known : last, signal)) {
            const { id } = next;
            if ('missed' in next) {
                yield { event: 'gap', id, data: { missed: next.missed } };
                continue;
            }
            const { event, data } = next.event;
            if ((topics === null || topics.has(event)) && next.event.isVisible(caller)) {
                // The data of an event are those of its topic.
                yield { event, id, data } as PanelEvent;
            }
        }
    }
}
