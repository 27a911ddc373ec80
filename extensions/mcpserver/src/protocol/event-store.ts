/** The newest messages of one session, for clients that come back with `Last-Event-ID`. */
import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

interface Kept {
    readonly id: string;
    readonly stream: string;
    readonly message: JSONRPCMessage;
    readonly bytes: number;
    readonly at: number;
}

const mostEvents = 256;
const mostBytes = 1_048_576;
const keptMs = 300_000;

/** Keeps 256 messages, 1 MiB and five minutes at most, whichever ends first. */
export class SessionEvents implements EventStore {
    readonly #now: () => number;
    #kept: Kept[] = [];
    #bytes = 0;
    #last = 0;

    constructor(now: () => number = Date.now) {
        this.#now = now;
    }

    /** Adds a message, and says its id. */
    async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
        this.#last += 1;
        const id = `${this.#last}.${stream}`;
        const bytes = Buffer.byteLength(JSON.stringify(message));
        this.#kept.push({ id, stream, message, bytes, at: this.#now() });
        this.#bytes += bytes;
        this.#drop();
        return id;
    }

    /** The stream of a message that is kept. */
    async getStreamIdForEventId(id: string): Promise<string | undefined> {
        this.#drop();
        return this.#kept.find((event) => event.id === id)?.stream;
    }

    /** Sends what came after a message on its stream. */
    async replayEventsAfter(
        id: string,
        { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> }
    ): Promise<string> {
        this.#drop();
        const at = this.#kept.findIndex((event) => event.id === id);
        const stream = this.#kept[at]?.stream ?? '';
        for (const event of at === -1 ? [] : this.#kept.slice(at + 1)) {
            // A message without content only gives the stream an id to come back to.
            if (event.stream === stream && 'jsonrpc' in event.message) {
                await send(event.id, event.message);
            }
        }
        return stream;
    }

    #drop(): void {
        const oldest = this.#now() - keptMs;
        let first = 0;
        for (const { bytes, at } of this.#kept) {
            if (this.#kept.length - first <= mostEvents && this.#bytes <= mostBytes && at >= oldest) {
                break;
            }
            this.#bytes -= bytes;
            first += 1;
        }
        this.#kept = first === 0 ? this.#kept : this.#kept.slice(first);
    }
}
