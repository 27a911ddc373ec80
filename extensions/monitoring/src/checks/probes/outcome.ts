/** What one try of a check saw. */

/** Milliseconds of each step; null for one that was not reached, or that the kind does not have. */
export interface Phases {
    name: number | null;
    connect: number | null;
    tls: number | null;
    firstByte: number | null;
}

/** The certificate that the other side showed. */
export interface SeenCertificate {
    readonly issuer: string;
    /** Milliseconds since 1970. */
    readonly notAfter: number;
}

/** What one try of a check saw. `unknown`: nothing can be said, since a program is missing. */
export interface Outcome {
    readonly state: 'up' | 'degraded' | 'down' | 'unknown';
    readonly latencyMs: number | null;
    /** Why it is not up: which step failed, and how; null for `up`. */
    readonly code: string | null;
    readonly message: string | null;
    readonly phases: Readonly<Phases>;
    readonly certificate: SeenCertificate | null;
}

/** Why a try is not good. `code` begins with the step that failed. */
export class ProbeFailure extends Error {
    readonly code: string;
    /** A problem that leaves the other side usable. */
    readonly isMild: boolean;

    constructor(code: string, message: string, isMild = false) {
        super(message);
        this.name = 'ProbeFailure';
        this.code = code;
        this.isMild = isMild;
    }
}
