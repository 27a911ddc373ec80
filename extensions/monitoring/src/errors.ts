/** The ways of its own in which the plugin fails. */
import { defineErrors } from '@portico/sdk';

export const failures = defineErrors({
    TOO_MANY_POINTS: {
        code: 40050,
        message:
            'This span has {points} points at that step, and an answer has {limit} at most: ask for a longer step or a shorter span'
    },
    TOO_MANY_RULES: { code: 40950, message: '{limit} rules exist, and no more are allowed' },
    NO_SAMPLE: { code: 50350, message: 'Nothing has been measured yet' }
});
