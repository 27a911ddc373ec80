/** Fields of bodies that say when a task does not start though it is due. */
import { joi } from '@portico/sdk';

import { weekdays } from '../../schedule/blackouts.ts';

const time = () => joi.string().pattern(/^([01]\d|2[0-3]):[0-5]\d$/, 'time of day, HH:MM');
const dayWords = {
    mon: 'Monday',
    tue: 'Tuesday',
    wed: 'Wednesday',
    thu: 'Thursday',
    fri: 'Friday',
    sat: 'Saturday',
    sun: 'Sunday'
} as const;

/** Times of the week. */
export const blackoutsField = joi
    .array()
    .items(
        joi.object({
            days: joi
                .array()
                .items(joi.choice(dayWords))
                .unique()
                .min(1)
                .default([...weekdays])
                .label('Days')
                .description('On which it begins; default: all'),
            from: time().required().label('From'),
            to: time()
                .required()
                .label('Until')
                .description('Not later than `from`: on the day after; the same time: for a whole day')
        })
    )
    .max(50)
    .label('Blackouts')
    .description('Times of the week, in the time zone of the task, at which its schedule starts nothing');
/** What becomes of due times in blackouts. */
export const blackoutPolicyField = joi
    .choice({ skip: 'It is left out', delay: 'It starts at the end of the blackout' })
    .label('When it is due in a blackout');
/** The field `jitterSeconds` of a task: the longest delay that is added by chance. */
export const jitterField = joi
    .number()
    .integer()
    .min(0)
    .max(3_600)
    .label('Jitter')
    .unit('second')
    .description('It starts by so much later at most, by chance, so that many machines do not start at once');
