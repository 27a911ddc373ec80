/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    NOT_UNDOABLE: { code: 40952, message: 'The change cannot be taken back: {why}' },
    BUSY: { code: 40953, message: 'An answer of this conversation is under way' },
    LIMIT_REACHED: {
        code: 42950,
        message: 'The limit {limit} is reached; it allows more in {retryAfter} seconds'
    },
    MODEL_FAILED: { code: 50250, message: 'The model did not answer: {why}' },
    NO_PROVIDER: { code: 50350, message: 'No provider is set up and enabled' }
});
