/** The log of a plugin under test. */
import type { Logger } from '@portico/core/plugin-runtime';

/** A line of the log. */
export interface LogLine {
    readonly level: 'debug' | 'info' | 'warn' | 'error';
    readonly message: string;
    readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps every line, and shows bugs of the plugin on standard error: their answer says no more than 50000. */
export class TestLog implements Logger {
    readonly lines: LogLine[] = [];
    readonly #quiet: boolean;

    constructor(quiet: boolean) {
        this.#quiet = quiet;
    }

    debug(message: string, fields?: object): void {
        this.#write('debug', message, fields);
    }

    info(message: string, fields?: object): void {
        this.#write('info', message, fields);
    }

    warn(message: string, fields?: object): void {
        this.#write('warn', message, fields);
    }

    error(message: string, fields?: object): void {
        this.#write('error', message, fields);
    }

    child(): Logger {
        return this;
    }

    #write(level: LogLine['level'], message: string, fields: object = {}): void {
        const line: LogLine = { level, message, fields: { ...fields } };
        this.lines.push(line);
        const { stack } = (line.fields['error'] ?? {}) as { readonly stack?: unknown };
        if (level === 'error' && typeof stack === 'string' && !this.#quiet) {
            process.stderr.write(`${message}: ${stack}\n`);
        }
    }
}

const nothing = (): void => undefined;

/** For the panel's own lines, which say nothing about the plugin. */
export const silence: Logger = {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: nothing,
    child: () => silence
};
