/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const pluginErrors = defineErrors({
    NOT_ROOT: { code: 40350, message: 'Only a panel that runs as root can run tasks as {user}' },
    ENDING: { code: 50350, message: 'The plugin is stopping and starts no more runs' }
});
