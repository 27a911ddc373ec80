/** The engine's access log as a stream of records, for any number of readers. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { AccessRecord } from '@portico/sdk';

import type { Logger } from '../../platform/log/log.ts';
import { accessLogBytes } from '../render/compile/access-log.ts';
import { LogCursor } from './cursor.ts';
import type { Block } from './log-file.ts';
import { LogFolder, type LogPlace } from './log-folder.ts';

/** What the access log works with. */
export interface AccessLogOptions {
    /** Null while the engine has no folders on this machine. */
    place(): LogPlace | null;
    /** The id of the host that has a name, in lower case. */
    hostOf(name: string): number | undefined;
    /** Whether the engine is to write the log. */
    isOn(): boolean;
    /** Whether the engine that runs has it in its configuration. @throws when it does not answer */
    isWritten(): Promise<boolean>;
    readonly log: Pick<Logger, 'warn'>;
    /** Milliseconds between two looks at the end of the log; default 200. */
    readonly pollMs?: number;
    /** A reader that is more bytes behind misses records; default: half of what is kept. */
    readonly mostBehind?: number;
}

interface Reader {
    readonly cursor: LogCursor;
    /** Ends its pause. */
    wake: () => void;
}

/** Readers that are far behind are looked for at every fifth look at the end of the log. */
const catchUpEvery = 5;

/**
 * Reads what the engine writes. The log waits on the disk, so a reader that is slow costs no memory, and the engine waits for none; a panel
 * that is killed goes on where a reader says.
 */
export class AccessLog {
    readonly #options: AccessLogOptions;
    readonly #folder: LogFolder;
    readonly #readers = new Set<Reader>();
    /** Readers run in the context of their plugin; what the log holds is not the plugin's. */
    readonly #outside = AsyncLocalStorage.snapshot();
    #timer: NodeJS.Timeout | null = null;
    #looks = 0;
    #isEmpty = false;

    constructor(options: AccessLogOptions) {
        this.#options = options;
        this.#folder = new LogFolder(() => options.place());
    }

    isOn(): boolean {
        return this.#options.isOn();
    }

    /**
     * Records of this time on, or those to come, in batches that are never empty. Records are new objects for each reader. Ends when the
     * signal aborts.
     */
    async *follow({
        from,
        signal
    }: {
        readonly from: Date | null;
        readonly signal: AbortSignal;
    }): AsyncGenerator<readonly AccessRecord[], void, undefined> {
        const reader: Reader = { cursor: new LogCursor(this.#folder), wake: () => undefined };
        const { cursor } = reader;
        const end = (): void => {
            this.#leave(reader);
            cursor.close().catch((error: unknown) => this.#warn(error));
        };
        if (signal.aborted) {
            return;
        }
        // A reader that never asks again must not keep its file.
        signal.addEventListener('abort', end, { once: true });
        try {
            await this.#outside(() => cursor.begin(from?.getTime() ?? null));
            this.#outside(() => this.#enter(reader));
            while (!signal.aborted) {
                const block = await this.#outside(() => cursor.next());
                if (block === null) {
                    await this.#pause(reader, signal);
                    continue;
                }
                const records = this.#recordsOf(block, cursor, from);
                if (records.length > 0) {
                    yield records;
                }
            }
        } finally {
            signal.removeEventListener('abort', end);
            end();
        }
    }

    /** Removes what was recorded, once the log is off and the engine has closed it. Never rejects: the next call tries again. */
    async tidy(): Promise<void> {
        const options = this.#options;
        if (options.isOn()) {
            this.#isEmpty = false;
            return;
        }
        try {
            if (this.#isEmpty || (await options.isWritten())) {
                return;
            }
            await this.#folder.remove();
            this.#isEmpty = true;
            await Promise.all([...this.#readers].map(({ cursor }) => cursor.restart()));
        } catch (error) {
            options.log.warn('The access log could not be removed', { error });
        }
    }

    #enter(reader: Reader): void {
        this.#readers.add(reader);
        this.#timer ??= setInterval(() => this.#look(), this.#options.pollMs ?? 200).unref();
    }

    #leave(reader: Reader): void {
        this.#readers.delete(reader);
        reader.wake();
        if (this.#readers.size === 0 && this.#timer !== null) {
            clearInterval(this.#timer);
            this.#timer = null;
        }
    }

    /** All readers look at the same time, so that they find the same lines and these are parsed once. */
    #look(): void {
        this.#looks += 1;
        const isTime = this.#looks % catchUpEvery === 0;
        for (const { cursor, wake } of this.#readers) {
            wake();
            if (isTime) {
                cursor
                    .catchUp(this.#options.mostBehind ?? accessLogBytes / 2)
                    .catch((error: unknown) => this.#warn(error));
            }
        }
    }

    #pause(reader: Reader, signal: AbortSignal): Promise<void> {
        return new Promise((resolve) => {
            reader.wake = resolve;
            if (signal.aborted) {
                resolve();
            }
        });
    }

    #recordsOf(block: Block, cursor: LogCursor, from: Date | null): readonly AccessRecord[] {
        const ids = new Map<string, number | null>();
        const records: AccessRecord[] = [];
        const earliest = from?.getTime() ?? Number.NEGATIVE_INFINITY;
        for (const { at, name, ...visit } of block.visits) {
            if (at < earliest) {
                continue;
            }
            let hostId = ids.get(name);
            if (hostId === undefined) {
                hostId = this.#hostOf(name);
                ids.set(name, hostId);
            }
            records.push({ at: new Date(at), hostId, ...visit, dropped: cursor.takeMissed() });
        }
        return records;
    }

    /** By its own name, or by the wildcard above it. */
    #hostOf(name: string): number | null {
        const { hostOf } = this.#options;
        const dot = name.indexOf('.');
        return hostOf(name) ?? (dot < 0 ? null : (hostOf(`*${name.slice(dot)}`) ?? null));
    }

    #warn(error: unknown): void {
        this.#options.log.warn('The access log could not be read', { error });
    }
}
