/**
 * Entries that stand in no transaction of a change. Those of one turn of the event loop share a transaction, and so do all that come while
 * the one before them is written, because each transaction costs a write to the disk.
 */
import { setImmediate as turn } from 'node:timers/promises';

import type { AuditEntry } from '../../../server/http/ports.ts';

/** Gathers entries, and writes them in the order in which they came. */
export class AloneEntries {
    readonly #write: (entries: readonly AuditEntry[]) => Promise<void>;
    #waiting: AuditEntry[] = [];
    #next: Promise<void> | null = null;
    /** Ends when what was handed to the database is written, or could not be. */
    #last: Promise<unknown> = Promise.resolve();

    /** @param write - writes all or none */
    constructor(write: (entries: readonly AuditEntry[]) => Promise<void>) {
        this.#write = write;
    }

    /** Resolves when the entry is durable. Rejects with what its own write throws: an entry that cannot be written does not take others with it. */
    async add(entry: AuditEntry): Promise<void> {
        this.#waiting.push(entry);
        this.#next ??= this.#last.then(() => turn()).then(() => this.#flush());
        try {
            await this.#next;
        } catch {
            await this.#write([entry]);
        }
    }

    /** Resolves when all that was added before was handed to the database. */
    async close(): Promise<void> {
        await this.#next?.catch(() => undefined);
    }

    async #flush(): Promise<void> {
        const entries = this.#waiting;
        this.#waiting = [];
        this.#next = null;
        const written = this.#write(entries);
        this.#last = written.catch(() => undefined);
        await written;
    }
}
