/** Every way in which the core fails. The codes are part of the API: adding one is a minor change, renaming one a major. */
import { defineErrors } from '@portico/sdk';

/** The failures of the core: each makes an error with its code, reason and message. */
export const fail = defineErrors({
    BAD_REQUEST: { code: 40000, message: 'The request is malformed' },
    VALIDATION_FAILED: { code: 40001, message: 'The request does not have the documented shape' },
    UNAUTHENTICATED: { code: 40100, message: 'A bearer token is required' },
    TOKEN_INVALID: { code: 40101, message: 'The token is not one of ours' },
    TOKEN_EXPIRED: { code: 40102, message: 'The token has expired' },
    TOKEN_REVOKED: { code: 40103, message: 'The token has been revoked' },
    CREDENTIALS_INVALID: { code: 40110, message: 'The user name or the password is wrong' },
    CHALLENGE_REQUIRED: { code: 40111, message: 'A solved challenge is required' },
    CHALLENGE_INVALID: { code: 40112, message: 'The challenge is wrong, expired or already spent' },
    TOTP_REQUIRED: { code: 40113, message: 'A code of the second factor is required' },
    TOTP_INVALID: { code: 40114, message: 'The code of the second factor is wrong or already used' },
    FORBIDDEN: { code: 40300, message: 'The permission {permission} is required' },
    STEP_UP_REQUIRED: { code: 40301, message: 'This action needs the password or the second factor again' },
    PASSWORD_CHANGE_REQUIRED: { code: 40302, message: 'The password must be changed first' },
    TOTP_SETUP_REQUIRED: { code: 40303, message: 'A second factor must be set up first' },
    NOT_FOUND: { code: 40400, message: 'There is nothing of that name here' },
    PLUGIN_NOT_FOUND: { code: 40410, message: 'There is no plugin named {plugin}' },
    PLUGIN_DISABLED: { code: 40411, message: 'The plugin {plugin} is not running' },
    REQUEST_TIMEOUT: { code: 40800, message: 'The request did not arrive in time' },
    CONFLICT: { code: 40900, message: 'The {field} is taken' },
    IN_USE: { code: 40901, message: 'Something depends on it' },
    IDEMPOTENCY_MISMATCH: { code: 40902, message: 'The Idempotency-Key was used with another request' },
    IDEMPOTENCY_UNRESOLVED: {
        code: 40903,
        message: 'The first request with this Idempotency-Key has no known end'
    },
    CONSENT_REQUIRED: { code: 40910, message: 'The plugin asks for more than was granted' },
    BUSY: { code: 40904, message: 'The plugin {plugin} still has work under way' },
    DATA_AHEAD: {
        code: 40911,
        message: 'The data of {plugin} were changed since: going back would lose that'
    },
    REFUSED_BY_PLUGIN: { code: 40920, message: 'The plugin {plugin} refused' },
    VERSION_STALE: { code: 41200, message: 'The object has changed: its version is {version}' },
    PAYLOAD_TOO_LARGE: { code: 41300, message: 'The body is larger than {limit} bytes' },
    UNSUPPORTED_MEDIA_TYPE: { code: 41500, message: 'The body must be {accepts}' },
    ENGINE_REJECTED: { code: 42200, message: 'The proxy engine refused the configuration' },
    PACKAGE_REFUSED: { code: 42201, message: 'The package cannot be used' },
    RATE_LIMITED: { code: 42900, message: 'Too many attempts' },
    INTERNAL: { code: 50000, message: 'Something went wrong; the log has it under the request id' },
    CERTIFICATE_NOT_ISSUED: { code: 50200, message: 'The certificate was not issued' },
    NOT_READY: { code: 50300, message: 'The panel is not ready' },
    ENGINE_UNAVAILABLE: { code: 50301, message: 'The proxy engine does not answer' },
    TOOL_MISSING: { code: 50302, message: '{tool} is not installed' },
    PLUGIN_FAILED: { code: 50303, message: 'The plugin {plugin} has failed' },
    STORAGE_FULL: { code: 50700, message: 'There is no space left; nothing was changed' }
});

/** The stable name of one of the core's failures. */
export type Reason = keyof typeof fail;

/** One thing that is wrong with a body, a query or a path. */
export interface Invalid {
    /** Dotted, as `access.allow.0`. */
    readonly path: string;
    readonly message: string;
}

/** 40001 with all that is wrong. */
export function invalid(...errors: readonly Invalid[]): Error {
    return fail.VALIDATION_FAILED({ errors });
}
