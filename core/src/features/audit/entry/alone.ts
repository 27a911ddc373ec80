/** Entries that stand in no transaction of a change: those of one turn of the event loop share a transaction, because each costs a write to the disk. */
import { setImmediate as turn } from 'node:timers/promises';

import type { AuditEntry } from '../../../server/http/ports.ts';

/** Gathers entries, and writes them in the order in which they came. */
export class AloneEntries {
    readonly #write: (entries: readonly AuditEntry[]) => Promise<void>;
    #waiting: AuditEntry[] = [];
    #next: Promise<void> | null = null;

    /** @param write - writes all or none */
    constructor(write: (entries: readonly AuditEntry[]) => Promise<void>) {
        this.#write = write;
    }

    /** Resolves when the entry is durable. Rejects with what its own write throws: an entry that cannot be written does not take others with it. */
    async add(entry: AuditEntry): Promise<void> {
        this.#waiting.push(entry);
        this.#next ??= turn().then(() => this.#flush());
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
        await this.#write(entries);
    }
}
