/** Why something outside could not be reached, or must not be. */

/** Stable names of the causes. */
export type OutboundReason =
    /** The URL, host or port is not one that may be asked for. */
    | 'URL_REFUSED'
    /** The address is private, special or this machine's own. */
    | 'ADDRESS_FORBIDDEN'
    | 'NAME_NOT_FOUND'
    | 'CONNECT_FAILED'
    /** No handshake, or the certificate is not valid for the name. */
    | 'TLS_FAILED'
    | 'TIMED_OUT'
    /** The answer, or its headers, are beyond the limit. */
    | 'TOO_LARGE'
    | 'REDIRECT_REFUSED'
    /** What came back is not HTTP. */
    | 'PROTOCOL_ERROR'
    /** The other side closed before it was done. */
    | 'CUT'
    /** The caller's signal aborted. */
    | 'ABORTED';

/** What every method of the outbound client throws; the message may be shown to the user who gave the address. */
export class OutboundFailure extends Error {
    readonly reason: OutboundReason;

    constructor(reason: OutboundReason, message: string, cause?: unknown) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'OutboundFailure';
        this.reason = reason;
    }
}
