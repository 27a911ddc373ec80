/** The last lines that the panel's log has of each plugin: what the plugin says itself, and what the panel says of it. In memory; the log itself has all of them. */
import type { Log } from '../../../platform/log/log.ts';

/** How serious a line is, the least first. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
/** How serious a line is. */
export type LogLevel = (typeof logLevels)[number];

/** One line, as the API shows it. */
export interface PluginLine {
    readonly at: string;
    readonly level: LogLevel;
    readonly message: string;
    /** What else the line says; empty when that is too long. */
    readonly fields: Readonly<Record<string, unknown>>;
}

/** What is read of a plugin's lines. */
export interface LogReading {
    /** How many of the kept lines come first. */
    readonly lines: number;
    /** No less serious lines than these. */
    readonly level: LogLevel;
    /** Whether to go on with each further line. */
    readonly follow: boolean;
    /** The number of the last line that the reader has; it then gets all after it. Null: none. */
    readonly after: number | null;
    readonly signal: AbortSignal;
}

/** A line with its number; numbers grow from start to start of the panel. */
export type NumberedLine = PluginLine & { readonly number: number };

interface Kept {
    readonly line: NumberedLine;
    readonly size: number;
}

interface Shelf {
    readonly kept: Kept[];
    size: number;
}

const mostLines = 1_000;
const mostBytes = 512 * 1024;
const longestMessage = 4 * 1024;
const longestFields = 8 * 1024;
/** Lines of a plugin name it so; all others are not parsed. */
const mark = '"plugin":"';

/** Keeps the last lines of each plugin, at most 1,000 and 512 KiB. */
export class PluginLogs {
    readonly #shelves = new Map<string, Shelf>();
    #number = Date.now() * 1_000;
    #waiting: (() => void)[] = [];

    /** @param log - whose lines are kept from now on */
    constructor(log: Pick<Log, 'onLine'>) {
        log.onLine((line) => this.#add(line));
    }

    /** Keeps a line of the panel's log, if it is of a plugin. Never throws. */
    #add(text: string): void {
        if (!text.includes(mark)) {
            return;
        }
        const line = readLine(text);
        if (line === null) {
            return;
        }
        const { plugin, ...rest } = line;
        const shelf = this.#shelves.get(plugin) ?? { kept: [], size: 0 };
        this.#shelves.set(plugin, shelf);
        this.#number += 1;
        const size = text.length;
        shelf.kept.push({ line: { number: this.#number, ...rest }, size });
        shelf.size += size;
        while (shelf.kept.length > mostLines || (shelf.size > mostBytes && shelf.kept.length > 1)) {
            shelf.size -= shelf.kept.shift()?.size ?? 0;
        }
        const waiting = this.#waiting;
        this.#waiting = [];
        waiting.forEach((wake) => wake());
    }

    /** The lines of a plugin: those that are kept, and with `follow` each further one until the signal aborts. */
    async *read(
        plugin: string,
        { lines, level, follow, after, signal }: LogReading
    ): AsyncGenerator<NumberedLine, void, undefined> {
        const least = logLevels.indexOf(level);
        const since = (number: number): NumberedLine[] =>
            (this.#shelves.get(plugin)?.kept ?? [])
                .map(({ line }) => line)
                .filter((line) => line.number > number && logLevels.indexOf(line.level) >= least);
        let last = after ?? 0;
        let next = after === null ? (lines === 0 ? [] : since(0).slice(-lines)) : since(after);
        if (after === null) {
            last = this.#number;
        }
        for (;;) {
            for (const line of next) {
                last = Math.max(last, line.number);
                yield line;
            }
            if (!follow || signal.aborted) {
                return;
            }
            next = since(last);
            if (next.length === 0) {
                await this.#more(signal);
                next = since(last);
            }
        }
    }

    /** Resolves with the next line of any plugin, or when the signal aborts. */
    async #more(signal: AbortSignal): Promise<void> {
        if (signal.aborted) {
            return;
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        const wake = (): void => resolve();
        this.#waiting.push(wake);
        signal.addEventListener('abort', wake, { once: true });
        await promise;
        signal.removeEventListener('abort', wake);
        this.#waiting = this.#waiting.filter((each) => each !== wake);
    }
}

function readLine(text: string): (PluginLine & { readonly plugin: string }) | null {
    let parsed: Readonly<Record<string, unknown>>;
    try {
        parsed = JSON.parse(text) as Readonly<Record<string, unknown>>;
    } catch {
        return null;
    }
    const { plugin, level, time, msg, version: _version, ...fields } = parsed;
    const known = logLevels.find((each) => each === level);
    if (typeof plugin !== 'string' || known === undefined) {
        return null;
    }
    return {
        plugin,
        at: String(time),
        level: known,
        message: String(msg ?? '').slice(0, longestMessage),
        fields: text.length > longestFields ? {} : fields
    };
}
