/** What the plugin under test answered. */
import { createFailure } from '../errors.ts';
import { failureWire } from './envelope.ts';

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

/** Reads a response to its end. */
export async function answerOf<T>(response: Response): Promise<TestAnswer<T>> {
    const bytes = new Uint8Array(await response.arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    const isJson =
        response.headers.get('content-type')?.startsWith('application/json') === true && text !== '';
    const {
        code = null,
        message = '',
        data = null
    } = (isJson ? JSON.parse(text) : {}) as { code?: number; message?: string; data?: unknown };
    const reason =
        code !== null && code !== 0 ? ((data as { reason?: string } | null)?.reason ?? null) : null;
    return {
        status: response.status,
        code,
        reason,
        message,
        data: data as T,
        headers: response.headers,
        text,
        bytes
    };
}

/** A failing answer as what can be thrown. */
export function failureOf({ code, reason, message, data, status }: TestAnswer): Error {
    return createFailure({
        code: code ?? status * 100,
        reason: reason ?? 'UNKNOWN',
        message,
        data: data as Readonly<Record<string, unknown>> | null
    });
}

/** What a thrown thing is as an answer: for what is refused before it begins. */
export async function refusalOf(error: unknown): Promise<Error> {
    const { status, headers, body } = failureWire(error);
    return failureOf(
        await answerOf(
            new Response(body, { status, headers: { ...headers, 'content-type': 'application/json' } })
        )
    );
}
