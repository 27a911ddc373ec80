/** Problem documents of CAs (RFC 7807, RFC 8555, section 6.7). */

/** A CA's problem document, or one of our own in the same shape: its type then begins with `urn:portico:error:`. */
export interface Problem {
    readonly type: string;
    readonly title?: string;
    readonly detail: string;
    readonly status?: number;
    readonly instance?: string;
    readonly identifier?: { readonly type: string; readonly value: string };
    readonly subproblems?: readonly Problem[];
}

/** A failed request or order at a CA. */
export class AcmeFailure extends Error {
    readonly problem: Problem;
    /** The earliest time of the next attempt, milliseconds since 1970; null when the CA named none. */
    readonly retryAt: number | null;

    constructor(problem: Problem, retryAt: number | null = null, cause?: unknown) {
        super(problem.detail, cause === undefined ? undefined : { cause });
        this.name = 'AcmeFailure';
        this.problem = problem;
        this.retryAt = retryAt;
    }
}

const acme = 'urn:ietf:params:acme:error:';
const longest = 2_000;
const mostSubproblems = 20;

/** A problem of our own. */
export function ownProblem(type: string, detail: string): Problem {
    return { type: `urn:portico:error:${type}`, detail: textOf(detail) };
}

/** Whether a problem has this ACME error type, as `badNonce` (RFC 8555, section 6.7). */
export function isOfType(problem: Problem, type: string): boolean {
    return problem.type === acme + type;
}

/** Reads a problem that a CA sent. Unknown fields are dropped, texts are cut to 2,000 characters. */
export function readProblem(sent: unknown, fallback: string): Problem {
    const { type, title, detail, status, instance, identifier, subproblems } = (
        typeof sent === 'object' && sent !== null ? sent : {}
    ) as Readonly<Record<string, unknown>>;
    const of = identifier as { readonly type?: unknown; readonly value?: unknown } | null | undefined;
    return {
        type: typeof type === 'string' ? textOf(type) : 'about:blank',
        ...(typeof title === 'string' ? { title: textOf(title) } : {}),
        detail: typeof detail === 'string' && detail !== '' ? textOf(detail) : fallback,
        ...(typeof status === 'number' ? { status } : {}),
        ...(typeof instance === 'string' ? { instance: textOf(instance) } : {}),
        ...(typeof of?.type === 'string' && typeof of.value === 'string'
            ? { identifier: { type: textOf(of.type), value: textOf(of.value) } }
            : {}),
        ...(Array.isArray(subproblems) && subproblems.length > 0
            ? { subproblems: subproblems.slice(0, mostSubproblems).map((each) => readProblem(each, '')) }
            : {})
    };
}

/** When a Retry-After header lets one try again, in milliseconds since 1970. */
export function retryTime(header: string | undefined, now: number): number | null {
    if (header === undefined) {
        return null;
    }
    if (/^\d{1,9}$/.test(header.trim())) {
        return now + Number(header) * 1000;
    }
    const date = Date.parse(header);
    return Number.isNaN(date) ? null : date;
}

function textOf(text: string): string {
    return text
        .toWellFormed()
        .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
        .slice(0, longest);
}
