/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const pluginErrors = defineErrors({
    SESSION_REQUIRED: { code: 40352, message: 'Only a user who is logged in can approve, not an API token' },
    APPROVAL_CLOSED: {
        code: 40950,
        message: 'The approval is {state}: it can be decided once, and not any more'
    },
    APPROVAL_MISMATCH: {
        code: 40951,
        message: 'The approval is for another call than the one that was shown'
    },
    NOT_UNDOABLE: { code: 40952, message: 'The change cannot be taken back: {why}' },
    BUSY: { code: 40953, message: 'An answer of this conversation is under way' },
    LIMIT_REACHED: {
        code: 42950,
        message: 'The limit {limit} is reached; it allows more in {retryAfter} seconds'
    },
    MODEL_FAILED: { code: 50250, message: 'The model did not answer: {why}' },
    NO_PROVIDER: { code: 50350, message: 'No provider is set up and enabled' }
});
