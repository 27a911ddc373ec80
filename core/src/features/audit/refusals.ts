/** Refusals that are equal become two entries a minute, and those of strangers stay within a budget: the record tells of a flood and does not become one. */
import { callerOf } from '../../platform/caller-address.ts';
import { Mutex } from '../../platform/mutex.ts';
import type { AuditEntry } from '../../server/http/ports.ts';

/** Entries that strangers cause in a window, the summary included. */
const anonymousEntries = 600;
/** Different refusals of known actors that are kept apart in a window. */
const knownKeys = 5_000;

export interface RefusalsOptions {
    /** Writes entries with their counts, all or none. */
    readonly write: (
        entries: readonly { readonly entry: AuditEntry; readonly count: number }[]
    ) => Promise<void>;
    readonly failed: (error: unknown) => void;
    /** Length of the window in milliseconds. */
    readonly windowMs: number;
}

interface Repeated {
    readonly entry: AuditEntry;
    /** How many came after the first. */
    count: number;
}

export class Refusals {
    readonly #options: RefusalsOptions;
    #seen = new Map<string, Repeated>();
    /** What of the strangers' budget is left; one is kept for the summary. */
    #budget = anonymousEntries - 1;
    #summary: Repeated | null = null;
    #timer: NodeJS.Timeout | null = null;
    readonly #flushes = new Mutex();

    constructor(options: RefusalsOptions) {
        this.#options = options;
    }

    /** Resolves when the entry is written, or counted for the window's end. */
    async add(entry: AuditEntry): Promise<void> {
        this.#timer ??= setTimeout(() => void this.flush(), this.#options.windowMs).unref();
        const anonymous =
            entry.actor.id === null && entry.actor.tokenId === null && entry.actor.plugin === null;
        const key = anonymous
            ? `${entry.code} ${callerOf(entry.ip ?? '')}`
            : `${entry.code} ${entry.actor.id} ${entry.actor.tokenId} ${entry.actor.plugin}`;
        const seen = this.#seen.get(key);
        if (seen !== undefined) {
            this.#repeat(seen, anonymous);
            return;
        }
        if (anonymous ? this.#budget <= 0 : this.#seen.size >= knownKeys + anonymousEntries) {
            this.#overflow(entry);
            return;
        }
        this.#budget -= anonymous ? 1 : 0;
        this.#seen.set(key, { entry, count: 0 });
        await this.#options.write([{ entry, count: 1 }]);
    }

    /** Ends the window: what was counted becomes entries. Counts that cannot be written stay for the next window. */
    flush(): Promise<void> {
        return this.#flushes.run(() => this.#flush());
    }

    async close(): Promise<void> {
        await this.flush();
        clearTimeout(this.#timer ?? undefined);
    }

    #repeat(seen: Repeated, anonymous: boolean): void {
        if (seen.count > 0 || !anonymous) {
            seen.count += 1;
        } else if (this.#budget > 0) {
            // The entry with its count at the window's end is paid for now.
            this.#budget -= 1;
            seen.count = 1;
        } else {
            this.#overflow(seen.entry);
        }
    }

    /** Nobody's in particular: one entry for all that did not fit. */
    #overflow(entry: AuditEntry): void {
        this.#summary ??= {
            entry: {
                ...entry,
                actor: { id: null, username: null, tokenId: null, plugin: null },
                action: 'refuse',
                resource: 'panel',
                resourceId: null,
                before: null,
                after: null,
                ip: null,
                userAgent: null,
                requestId: null
            },
            count: 0
        };
        this.#summary.count += 1;
    }

    async #flush(): Promise<void> {
        clearTimeout(this.#timer ?? undefined);
        this.#timer = null;
        const seen = this.#seen;
        const summary = this.#summary;
        this.#seen = new Map();
        this.#summary = null;
        this.#budget = anonymousEntries - 1;
        const counted = [...seen.values(), ...(summary === null ? [] : [summary])].filter(
            ({ count }) => count > 0
        );
        if (counted.length === 0) {
            return;
        }
        try {
            await this.#options.write(counted);
        } catch (error) {
            this.#options.failed(error);
            this.#keep(counted, summary);
        }
    }

    #keep(counted: readonly Repeated[], summary: Repeated | null): void {
        for (const each of counted) {
            this.#overflow(summary === each ? each.entry : { ...each.entry });
            (this.#summary as Repeated).count += each.count - 1;
        }
        this.#timer ??= setTimeout(() => void this.flush(), this.#options.windowMs).unref();
    }
}
