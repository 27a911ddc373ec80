/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    SOURCE_PINNED: {
        code: 40950,
        message: 'Address, kind and key of a source never change: add another source'
    },
    APP_CONSENT_REQUIRED: {
        code: 40951,
        message: 'Look at `plan`, and send its `consent` with the same request'
    },
    UNSIGNED_NOT_ACCEPTED: {
        code: 40952,
        message:
            'This app comes from a source without signatures: nothing proves who wrote it. Send `"acknowledgeUnsigned": true` to install it'
    },
    ARCHITECTURE: { code: 40953, message: 'This app does not run on {architecture}' },
    PORT_TAKEN: { code: 40954, message: 'The port {port} is taken by another program: choose another one' },
    INDEX_INVALID: { code: 42250, message: 'The catalogue is not valid: {why}' },
    SIGNATURE_INVALID: { code: 42251, message: 'The signature does not fit: {why}' },
    DIGEST_MISMATCH: { code: 42252, message: '{image}: {why}' },
    POLICY_REFUSED: {
        code: 42253,
        message:
            'The policy of containers refuses {what}. An admin can allow exactly that by an exception there for the stack of this app'
    },
    UNHEALTHY: { code: 42255, message: 'The app did not become healthy: {why}' },
    IMPORT_UNSUPPORTED: { code: 42256, message: 'This cannot be taken over: {why}' },
    SOURCE_UNREACHABLE: { code: 50250, message: 'The source gave no answer that can be used: {why}' }
});
