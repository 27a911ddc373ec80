/** What a plugin under test answered. */
import { createFailure } from '@portico/sdk';

/** What a route answered; failures are answers too. */
export interface TestAnswer<T = unknown> {
    readonly status: number;
    /** 0, or the failure's code; null where the answer has no envelope. */
    readonly code: number | null;
    /** Of a failure, such as `NOT_FOUND`. */
    readonly reason: string | null;
    readonly message: string;
    /** The envelope's; null where the answer has none. */
    readonly data: T;
    readonly headers: Headers;
    /** The body as text. */
    readonly text: string;
    readonly bytes: Uint8Array;
}

/** An answer from its parts. */
export function answerOf<T>(status: number, headers: Headers, bytes: Uint8Array): TestAnswer<T> {
    const text = new TextDecoder().decode(bytes);
    const isJson = /^application\/json\b/.test(headers.get('content-type') ?? '') && text !== '';
    const body = (isJson ? JSON.parse(text) : {}) as { code?: number; message?: string; data?: unknown };
    const { code = null, message = '', data = null } = body;
    const isFailed = code !== null && code !== 0;
    const reason = isFailed ? ((data as { readonly reason?: string } | null)?.reason ?? null) : null;
    return { status, code, reason, message, data: data as T, headers, text, bytes };
}

/** A failing answer as what can be thrown. */
export function failureOfAnswer({ code, reason, message, data, status }: TestAnswer): Error {
    return createFailure({
        code: code ?? status * 100,
        reason: reason ?? 'UNKNOWN',
        message,
        data: data as Readonly<Record<string, unknown>> | null
    });
}
