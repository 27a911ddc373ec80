/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    APPEND_ONLY: {
        code: 40950,
        message: 'The repository takes new snapshots only; nothing in it is removed'
    },
    LOCKED: { code: 40951, message: 'Another program has locked the repository: {message}' },
    PASSWORD_WRONG: { code: 42250, message: 'The password does not open the repository' },
    NOT_A_REPOSITORY: { code: 42251, message: 'There is no repository of restic at that place' },
    HOST_KEY: { code: 42253, message: 'The machine that answers does not have the key hostKey' },
    TARGET_REFUSED: { code: 42252, message: 'The target refused: {message}' },
    RUN_FAILED: { code: 50351, message: 'The run is {state}: {message}' },
    CHECK_FAILED: { code: 50352, message: 'The repository is not whole: {message}' },
    DRILL_FAILED: { code: 50353, message: 'The snapshot does not come back: {message}' },
    RESTIC_FAILED: { code: 50355, message: 'restic failed: {message}' },
    RESTORE_INCOMPLETE: { code: 50354, message: 'Not everything was restored: {message}' },
    COMMAND_FAILED: { code: 50356, message: 'The command {which} the run {message}' },
    TARGET_UNREACHABLE: { code: 50350, message: 'The target does not answer: {message}' }
});
