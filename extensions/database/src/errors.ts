/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    CANCELLED: { code: 40951, message: 'The statement was cancelled' },
    SQL_FAILED: { code: 42250, message: 'The server refused it: {message}' },
    READ_ONLY: { code: 42251, message: 'This console only reads: {why}' },
    LOGIN_FAILED: { code: 42254, message: 'No login: {message}' },
    SERVER_OFFLINE: { code: 50350, message: 'The server cannot be reached: {message}' },
    QUERY_TIMEOUT: { code: 50450, message: 'The statement took longer than {seconds} s and was stopped' }
});
