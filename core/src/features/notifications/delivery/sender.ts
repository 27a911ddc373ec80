/** The port of a channel's type: it takes one message to its receiver, once. When to try again is not its business. */
import type { Message } from './message.ts';

/** How one attempt ended. */
export interface Attempt {
    readonly ok: boolean;
    /** Of HTTP or SMTP; null when it did not come that far. */
    readonly status: number | null;
    /** Why it failed, or what was not quite right; null otherwise. */
    readonly error: string | null;
    /** The beginning of what the other side said. */
    readonly response: string | null;
    /** The receiver asks not to be tried sooner. Milliseconds. */
    readonly retryAfterMs?: number;
    /** The receiver wants nothing more, ever. */
    readonly gone?: boolean;
}

/** Sends with a channel's fields and its secret. May throw: that is a failed attempt. */
export type Sender<F> = (
    fields: F,
    secret: string | null,
    message: Message,
    signal: AbortSignal
) => Promise<Attempt>;

/** Characters that are kept of what the other side said. */
export const longestExcerpt = 1024;

/** The beginning of a text from outside, fit to be kept and shown. */
export function excerpt(text: string): string | null {
    const plain = text
        .replace(/(?![\n\t])\p{Cc}/gu, ' ')
        .toWellFormed()
        .trim();
    return plain === '' ? null : plain.slice(0, longestExcerpt);
}
