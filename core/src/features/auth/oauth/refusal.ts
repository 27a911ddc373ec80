/** What the OAuth server refuses, in the words of its protocol: the endpoints for clients answer without the envelope. */

/** RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2; RFC 8707, section 2. */
export type RefusalCode =
    | 'access_denied'
    | 'invalid_client'
    | 'invalid_client_metadata'
    | 'invalid_grant'
    | 'invalid_redirect_uri'
    | 'invalid_request'
    | 'invalid_scope'
    | 'invalid_target'
    | 'temporarily_unavailable'
    | 'unsupported_grant_type'
    | 'unsupported_response_type';

/** A refusal that a client gets as `{ error, error_description }`. */
export class OAuthRefusal extends Error {
    readonly error: RefusalCode;

    constructor(error: RefusalCode, description: string) {
        super(description);
        this.error = error;
    }

    /** HTTP status: 401 where the client is not known, else 400 (RFC 6749, section 5.2). */
    get status(): number {
        return this.error === 'invalid_client' ? 401 : 400;
    }
}
