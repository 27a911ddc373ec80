/** The ways in which only this plugin fails. */
import { defineErrors } from '@portico/sdk';

export const failures = defineErrors({
    NOT_ROOT: { code: 40350, message: 'Only a panel that runs as root runs tasks as {user}' },
    ENDING: { code: 50350, message: 'The plugin is ending: nothing is started any more' }
});
