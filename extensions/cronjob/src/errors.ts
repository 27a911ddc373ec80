/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    TRIGGER_REFUSED: { code: 40150, message: 'There is no such trigger, or its proof is wrong' },
    CHAIN_CYCLE: { code: 40950, message: 'The chain would come back to the task {task}' },
    TOO_MANY_TRIGGERS: {
        code: 42950,
        message: 'This trigger was called too often; it takes the next call in {retryAfter} s'
    },
    NOT_ROOT: { code: 40350, message: 'Only a panel that runs as root can run tasks as {user}' },
    ENDING: { code: 50350, message: 'The plugin is stopping and starts no more runs' }
});
