/** The errors that only this plugin has. Those of approvals are in `@portico/agents`. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    ORIGIN_REFUSED: {
        code: 40350,
        message: 'Pages of {origin} may not connect; an admin can list it in the setting origins'
    },
    HOST_REFUSED: {
        code: 40351,
        message: 'The panel is not known by the name {host}; an admin can list it in the setting hosts'
    },
    READ_ONLY_PROMPT: { code: 40900, message: 'The prompt {name} comes with {source} and cannot be changed' },
    APPROVAL_REQUIRED: {
        code: 42850,
        message:
            'This change waits for a person who approves it in the panel; make the same call again afterwards'
    },
    TOO_MANY_CALLS: { code: 42950, message: 'Too many calls; the next one may be made in {retryAfter} s' },
    TOO_MANY_SESSIONS: { code: 42951, message: 'Too many sessions are open' }
});
