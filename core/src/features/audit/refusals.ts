/** Bounds how many entries refusals cause: equal ones become two entries a minute, and callers who are not logged in share a budget. */
import { Mutex } from '@portico/sdk';

import { callerOf } from '../../platform/address/caller.ts';
import type { AuditEntry } from '../../server/http/ports.ts';

/** Entries that anonymous callers may cause in a window, the summary included. */
const anonymousEntries = 600;
/** How many different refusals of known actors are told apart in a window. */
const knownKeys = 5_000;

/** What {@link Refusals} needs. */
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
    /** How many equal ones came after the first. */
    count: number;
}

/** Writes the first of equal refusals at once, and one entry with the count of the others when the window ends. */
export class Refusals {
    readonly #options: RefusalsOptions;
    #seen = new Map<string, Repeated>();
    /** What is left of the budget of anonymous callers; one entry is kept for the summary. */
    #budget = anonymousEntries - 1;
    #summary: Repeated | null = null;
    #timer: NodeJS.Timeout | null = null;
    readonly #flushes = new Mutex();

    constructor(options: RefusalsOptions) {
        this.#options = options;
    }

    /** Resolves when the entry is written, or is counted for the end of the window. */
    async add(entry: AuditEntry): Promise<void> {
        this.#timer ??= setTimeout(() => void this.flush(), this.#options.windowMs).unref();
        const anonymous =
            entry.actor.id === null && entry.actor.tokenId === null && entry.actor.plugin === null;
        const key = anonymous
            ? `${entry.code} ${callerOf(entry.ip ?? '')}`
            : `${entry.code} ${entry.actor.id} ${entry.actor.tokenId} ${entry.actor.plugin} ${entry.actor.mandateId}`;
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

    /** Ends the window: writes an entry for each count. Counts that cannot be written stay for the next window. */
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
            // The entry with the count is charged now, although it is written at the end of the window.
            this.#budget -= 1;
            seen.count = 1;
        } else {
            this.#overflow(seen.entry);
        }
    }

    /** Counts a refusal in the one summary entry, which names no actor. */
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
