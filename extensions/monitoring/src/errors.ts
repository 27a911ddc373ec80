/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    TOO_MANY_POINTS: {
        code: 40050,
        message:
            'This span has {points} points at that step, and an answer has at most {limit}: ask for a longer step or a shorter span'
    },
    PROCESS_PROTECTED: { code: 40351, message: 'The process {pid} is protected: it is {reason}' },
    UNIT_PROTECTED: { code: 40352, message: 'The unit {name} is protected: {reason}' },
    UNIT_ACTION_FAILED: { code: 40971, message: 'systemd did not {action} {name}: {said}' },
    SYSTEMD_SILENT: { code: 50371, message: 'systemd did not answer: {said}' },
    JOURNAL_SILENT: { code: 50372, message: 'The journal cannot be read: {said}' },
    SIGNAL_REFUSED: { code: 40970, message: 'The machine refused the signal to the process {pid}: {said}' },
    TOO_MANY_RULES: { code: 40950, message: '{limit} rules exist, and no more are allowed' },
    TOO_MANY_CHECKS: { code: 40951, message: '{limit} checks exist, and no more are allowed' },
    TOO_MANY_SILENCES: { code: 40952, message: '{limit} silences exist, and no more are allowed' },
    TOO_MANY_EXPORTS: { code: 40953, message: '{limit} exports exist, and no more are allowed' },
    TOO_MANY_TRIES: {
        code: 42950,
        message: 'Too many tries by hand; the next one may be made in {retryAfter} s'
    },
    NO_SAMPLE: { code: 50350, message: 'Nothing has been measured yet' }
});
