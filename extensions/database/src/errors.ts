/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    NOT_MANAGED: { code: 40950, message: 'The panel does not run this server' },
    CANCELLED: { code: 40951, message: 'The statement was cancelled' },
    SQL_FAILED: { code: 42250, message: 'The server refused it: {message}' },
    READ_ONLY: { code: 42251, message: 'This console only reads: {why}' },
    CLIENT_TOO_OLD: {
        code: 42252,
        message: '{tool} {clientVersion} is older than the server, which is {serverVersion}'
    },
    CLIENT_COMMAND: { code: 42253, message: 'Line {line} holds a command for a client program: {command}' },
    LOGIN_FAILED: { code: 42254, message: 'No login: {message}' },
    SERVER_OFFLINE: { code: 50350, message: 'The server cannot be reached: {message}' },
    QUERY_TIMEOUT: { code: 50450, message: 'The statement took longer than {seconds} s and was stopped' }
});
