/** The port of a type of channel: it makes one attempt to send one message. The dispatcher decides on retries. */
import type { Message } from './message.ts';

/** How one attempt ended. */
export interface Attempt {
    readonly ok: boolean;
    /** Status code of HTTP or SMTP; null when there was no answer. */
    readonly status: number | null;
    /** Why it failed, or which part failed; null otherwise. */
    readonly error: string | null;
    /** The beginning of the answer of the receiver. */
    readonly response: string | null;
    /** How long the receiver asks to wait, in milliseconds. */
    readonly retryAfterMs?: number;
    /** Whether the receiver refuses all further messages. */
    readonly gone?: boolean;
}

/** Sends with the fields and the secret of a channel. When it throws, the attempt has failed. */
export type Sender<F> = (
    fields: F,
    secret: string | null,
    message: Message,
    signal: AbortSignal
) => Promise<Attempt>;

/** Characters that are kept of the answer of a receiver. */
export const longestExcerpt = 1024;

/** The beginning of a text from outside, without control characters; null when it is empty. */
export function excerpt(text: string): string | null {
    const plain = text
        .replace(/(?![\n\t])\p{Cc}/gu, ' ')
        .toWellFormed()
        .trim();
    return plain === '' ? null : plain.slice(0, longestExcerpt);
}
