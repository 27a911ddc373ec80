import { said } from '../words/t.ts';

/** A refusal of the panel, as its envelope says it, in the user's language where it has the words. */
export class ApiFailure extends Error {
    readonly status: number;
    /** HTTP status × 100 plus a detail; 0 when the panel did not answer. */
    readonly code: number;
    readonly reason: string;
    readonly data: Readonly<Record<string, unknown>>;
    readonly requestId: string | null;

    constructor(
        status: number,
        envelope: { code: number; message: string; data: unknown },
        requestId: string | null
    ) {
        super(said(envelope.message));
        this.status = status;
        this.code = envelope.code;
        this.data = (envelope.data ?? {}) as Record<string, unknown>;
        this.reason = String(this.data['reason'] ?? '');
        this.requestId = requestId;
    }

    /** The messages at fields of the body, by path: `upstreams.0.address`. Empty when the refusal names none. */
    get fields(): Readonly<Record<string, string>> {
        const errors = Array.isArray(this.data['errors']) ? this.data['errors'] : [];
        return Object.fromEntries(
            errors.map((each: { path?: unknown; message?: unknown }) => [
                (Array.isArray(each.path) ? each.path.join('.') : String(each.path ?? '')).replace(
                    /^body\.?/,
                    ''
                ),
                said(String(each.message ?? ''))
            ])
        );
    }
}

/** The refusal of a panel that cannot be reached. */
export function unreachable(): ApiFailure {
    return new ApiFailure(0, { code: 0, message: 'The panel does not answer', data: {} }, null);
}
