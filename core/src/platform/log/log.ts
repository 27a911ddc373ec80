/** Structured logs: one JSON object a line. What must not be read there is masked by its key and, where a value is known to be secret, by the value. */
import { type Logger as Pino, pino } from 'pino';

import { LogOutput } from './output.ts';

/** Writes log entries of one part of the panel. */
export interface Logger {
    debug(message: string, fields?: object): void;
    info(message: string, fields?: object): void;
    warn(message: string, fields?: object): void;
    error(message: string, fields?: object): void;
    /** A logger that adds these fields to every line. */
    child(fields: object): Logger;
}

/** A logger that can make loggers for parts. */
export interface Log extends Logger {
    /** From now on this text never appears in the log. Short texts (under 8 characters) are left alone: they would mask by accident. */
    hide(secret: string): void;
    /** Calls back with each line as it is written, with secrets masked; must not throw. */
    onLine(listener: (line: string) => void): void;
    /** How many lines could not be written since the start; 0 where `write` is given. */
    lostLines(): number;
}

/** How a log is written. */
export interface LogOptions {
    readonly level: string;
    /** Where lines go; default: standard output. */
    readonly write?: (line: string) => void;
}

const mask = '[redacted]';
const secretKey =
    /pass(word|phrase)?|secret|token|authorization|cookie|credential|private.?key|^key$|totp|otp|recovery|altcha|ticket|mackey|\bhash$/i;
const deepest = 8;

/** Writes JSON lines; secrets in the fields are masked by name. */
export function createLog(options: LogOptions): Log {
    const hidden = new Set<string>();
    const output = options.write === undefined ? new LogOutput() : null;
    const out = options.write ?? ((line: string) => output?.write(line));
    const listeners: ((line: string) => void)[] = [];
    const logger = pino(
        {
            level: options.level,
            base: null,
            timestamp: () => `,"time":"${new Date().toISOString()}"`,
            formatters: {
                level: (label) => ({ level: label }),
                log: (fields) => maskKeys(fields, 0) as Record<string, unknown>
            }
        },
        {
            write(line: string) {
                const masked = maskValues(line, hidden);
                out(masked);
                listeners.forEach((listener) => listener(masked));
            }
        }
    );
    return Object.assign(wrap(logger), {
        hide(secret: string): void {
            if (secret.length >= 8) {
                hidden.add(secret);
            }
        },
        onLine: (listener: (line: string) => void) => void listeners.push(listener),
        lostLines: () => output?.lost ?? 0
    });
}

/** Masks what stands under a telling key, at any depth; errors become plain, without what a library hung on them. Never throws, whatever was thrown. */
export function maskKeys(value: unknown, depth = 0): unknown {
    try {
        return plainOf(value, depth);
    } catch {
        return '[cannot be shown]'; // a getter or a proxy that throws
    }
}

function plainOf(value: unknown, depth: number): unknown {
    if (value instanceof Error) {
        const { code, reason } = value as { code?: unknown; reason?: unknown };
        return {
            name: value.name,
            message: value.message,
            code,
            reason,
            stack: value.stack,
            ...(value.cause === undefined || depth >= deepest
                ? {}
                : { cause: maskKeys(value.cause, depth + 1) })
        };
    }
    if (typeof value !== 'object' || value === null || value instanceof Date) {
        return value;
    }
    if (depth >= deepest) {
        return '[too deep]';
    }
    if (Array.isArray(value)) {
        return value.map((item) => maskKeys(item, depth + 1));
    }
    return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [
            key,
            secretKey.test(key) && item !== null && item !== undefined ? mask : maskKeys(item, depth + 1)
        ])
    );
}

function maskValues(line: string, hidden: ReadonlySet<string>): string {
    let masked = line.replace(/[\u2028\u2029]/g, ' ');
    for (const secret of hidden) {
        const written = JSON.stringify(secret).slice(1, -1);
        if (masked.includes(written)) {
            masked = masked.replaceAll(written, mask);
        }
    }
    return masked;
}

function wrap(logger: Pino): Logger {
    return {
        debug: (message, fields = {}) => logger.debug(fields, message),
        info: (message, fields = {}) => logger.info(fields, message),
        warn: (message, fields = {}) => logger.warn(fields, message),
        error: (message, fields = {}) => logger.error(fields, message),
        child: (fields) => wrap(logger.child(maskKeys(fields) as object))
    };
}
