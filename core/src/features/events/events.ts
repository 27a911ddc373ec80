/** What happens in the panel, told to those who look: pages read again what changed, instead of asking every second. */
import { randomUUID } from 'node:crypto';

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

interface Kept extends NewEvent {
    readonly number: number;
}

/** What a listener wants. */
export interface Listening {
    readonly caller: Caller;
    /** Null: all topics. */
    readonly topics: ReadonlySet<string> | null;
    readonly lastEventId: string | null;
    readonly signal: AbortSignal;
}

/** Keeps the newest events once, for all listeners, and wakes those that wait. A slow listener costs no memory: it reads what is kept. */
export class PanelEvents {
    /** First part of each id: it differs between runs of the panel. */
    readonly #run = randomUUID().slice(0, 8);
    readonly #listeners = new Set<() => void>();
    #events: Kept[] = [];
    #last = 0;

    /** Tells an event. Costs nothing but one entry when no listener waits. */
    publish(event: NewEvent): void {
        this.#last += 1;
        this.#events.push({ ...event, number: this.#last });
        if (this.#events.length >= 2 * kept) {
            this.#events = this.#events.slice(-kept); // half at a time: taking one away each time would move all others
        }
        this.#listeners.forEach((wake) => wake());
    }

    /** How many listen now. */
    get listeners(): number {
        return this.#listeners.size;
    }

    /**
     * The events from now on, or since `lastEventId`. When events were missed, a `gap` comes first: the listener reads again what it shows.
     */
    async *listen({ caller, topics, lastEventId, signal }: Listening): AsyncGenerator<PanelEvent> {
        let at = this.#startAfter(lastEventId);
        let wake = (): void => undefined;
        const ring = (): void => wake();
        this.#listeners.add(ring);
        signal.addEventListener('abort', ring, { once: true });
        try {
            if (at === null) {
                at = this.#last;
                yield { event: 'gap', id: this.#idOf(at), data: { missed: null } };
            }
            while (!signal.aborted) {
                const first = Math.max(1, this.#last - this.#events.length + 1);
                if (at + 1 < first) {
                    yield { event: 'gap', id: this.#idOf(first - 1), data: { missed: first - 1 - at } };
                    at = first - 1;
                    continue;
                }
                const next: Kept | undefined = this.#events[at + 1 - first];
                if (next === undefined) {
                    await new Promise<void>((resolve) => {
                        wake = resolve;
                    });
                    continue;
                }
                at = next.number;
                if ((topics === null || topics.has(next.event)) && next.isVisible(caller)) {
                    // The data of an event are those of its topic.
                    yield { event: next.event, id: this.#idOf(at), data: next.data } as PanelEvent;
                }
            }
        } finally {
            this.#listeners.delete(ring);
            signal.removeEventListener('abort', ring);
        }
    }

    /** The number of the last event that the listener knows; null when that cannot be told. */
    #startAfter(lastEventId: string | null): number | null {
        if (lastEventId === null) {
            return this.#last;
        }
        const [run, number] = lastEventId.split('.');
        const known = /^\d{1,15}$/.test(number ?? '') ? Number(number) : Infinity;
        return run === this.#run && known <= this.#last ? known : null;
    }

    #idOf(number: number): string {
        return `${this.#run}.${number}`;
    }
}
