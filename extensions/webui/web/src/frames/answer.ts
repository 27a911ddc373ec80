/** What the bridge answers to a page: the panel's envelope, or an error of JSON-RPC. */
import { ApiFailure } from '../api/failure.ts';

/** An answer of the API as a page gets it. */
export interface PageAnswer {
    readonly status: number;
    readonly code: number;
    readonly message: string;
    readonly data: unknown;
    readonly etag: string | null;
    readonly total: number | null;
    readonly next: string | null;
}

/** Numbers of the bridge's own errors; they stand in the SDK's docs. */
const codes = {
    NO_METHOD: -32_601,
    WRONG_PARAMS: -32_602,
    INTERNAL: -32_603,
    NOT_ALLOWED: -32_000,
    CANCELLED: -32_001,
    TOO_MANY: -32_002,
    UNREACHABLE: -32_003
} as const;

/** A refusal of the bridge itself. */
export class BridgeError extends Error {
    readonly reason: keyof typeof codes;

    constructor(reason: keyof typeof codes, message: string) {
        super(message);
        this.reason = reason;
    }
}

const mostBytes = 64 * 1024 * 1024;

/** Reads a response for a page. @param isFile - its bytes are the data; else it is an envelope @throws BridgeError TOO_MANY */
export async function readAnswer(response: Response, isFile = false): Promise<PageAnswer> {
    const { status, headers } = response;
    const total = headers.get('x-total-count');
    const about = {
        status,
        etag: headers.get('etag')?.replace(/^"(.*)"$/, '$1') ?? null,
        total: total === null ? null : Number(total),
        next: nextOf(headers.get('link'))
    };
    if (!isFile) {
        const { code, message, data } = (await response.json()) as Pick<
            PageAnswer,
            'code' | 'message' | 'data'
        >;
        return { ...about, code, message, data };
    }
    if (Number(headers.get('content-length') ?? 0) > mostBytes) {
        await response.body?.cancel();
        throw new BridgeError('TOO_MANY', `More than ${mostBytes} bytes: use download`);
    }
    return { ...about, code: 0, message: 'ok', data: await response.blob() };
}

/** A failure as the result of a request, or as its error. */
export function failed(
    error: unknown
): { readonly result: PageAnswer } | { readonly error: { code: number; message: string; data: unknown } } {
    if (error instanceof ApiFailure && error.status !== 0) {
        const { status, code, message, data } = error;
        return { result: { status, code, message, data, etag: null, total: null, next: null } };
    }
    const reason = reasonOf(error);
    const message = error instanceof Error ? error.message : String(error);
    return { error: { code: codes[reason], message, data: { reason } } };
}

function reasonOf(error: unknown): keyof typeof codes {
    if (error instanceof BridgeError) {
        return error.reason;
    }
    if (error instanceof RangeError) {
        return 'TOO_MANY';
    }
    if (error instanceof ApiFailure) {
        return 'UNREACHABLE';
    }
    return error instanceof DOMException && error.name === 'AbortError' ? 'CANCELLED' : 'INTERNAL';
}

/** The cursor in the `Link` to the next page. */
function nextOf(link: string | null): string | null {
    const [, path] = /<([^>]+)>;\s*rel="?next"?/.exec(link ?? '') ?? [];
    return path === undefined ? null : new URL(path, location.origin).searchParams.get('cursor');
}
