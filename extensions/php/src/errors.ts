/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    SWITCH_RUNNING: { code: 40950, message: 'The site is being switched from {from} to {to}' },
    PHP_REJECTED: { code: 42250, message: 'PHP refuses this configuration; nothing was changed' },
    RELEASE_UNKNOWN: { code: 42251, message: 'There is no PHP-FPM {release} on this machine' },
    SWITCH_REVERTED: { code: 42252, message: 'The new release was taken back: {evidence}' },
    TOOL_FAILED: { code: 42253, message: '{tool} failed: {why}' },
    NOT_ROOT: {
        code: 50350,
        message: 'The panel does not run as root, so it cannot make accounts and folders for sites'
    },
    SITE_DOWN: { code: 50351, message: 'The site does not answer: {why}' }
});
