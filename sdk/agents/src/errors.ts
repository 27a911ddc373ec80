/** The failures of approvals, which every plugin that uses them answers by the same codes. */
import { defineErrors } from '@portico/sdk';

/** The error table of approvals. */
export const agentErrors = defineErrors({
    SESSION_REQUIRED: {
        code: 40352,
        message: 'Only a person who is logged in can approve; an API token cannot'
    },
    APPROVAL_CLOSED: { code: 40950, message: 'This approval was decided, used, or has expired' },
    APPROVAL_MISMATCH: {
        code: 40951,
        message: 'The approval is for another call than the one that was shown'
    }
});
