/** Writes and removes the TXT records of challenges, at every kind of provider. */

/** One authorization to be proven. */
export interface Challenge {
    /** The name without `*.`. */
    readonly domain: string;
    /** The CA's token. */
    readonly token: string;
    /** What `_acme-challenge.<domain>` must say (RFC 8555, section 8.4). */
    readonly value: string;
}

/** The key behind the tokens: some writers compute the value themselves. */
export interface ChallengeKey {
    /** PEM, PKCS #8, of an ECDSA key on P-256. Never kept by a writer. */
    readonly pem: string;
}

/** The challenges of one order. */
export interface Work {
    readonly challenges: readonly Challenge[];
    readonly key: ChallengeKey;
    readonly signal: AbortSignal;
    log(text: string): void;
}

/**
 * Writes the records of challenges, calls back for each as soon as its record is there, and removes them in the end, whatever happens.
 * Some zones can hold one at a time only: then the second record is written when the first is gone.
 * Throws what a call threw, a failure of the writer, or the signal's reason.
 */
export interface ChallengeWriter {
    solve(work: Work, written: (challenge: Challenge) => Promise<void>): Promise<void>;
}

/** The name of the TXT record for a domain (RFC 8555, section 8.4). */
export function recordName(domain: string): string {
    return `_acme-challenge.${domain}`;
}

/** A record could not be written or removed. The message can be shown to the admin. */
export class WriterFailure extends Error {
    /** Stable, as `DNS_UPDATE_REFUSED`. */
    readonly reason: string;
    /** True when the provider refused the change: the record was not written. */
    readonly refused: boolean;

    constructor(
        reason: string,
        message: string,
        { cause, refused = false }: { readonly cause?: unknown; readonly refused?: boolean } = {}
    ) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'WriterFailure';
        this.reason = reason;
        this.refused = refused;
    }
}
