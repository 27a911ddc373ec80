/** What answers show of runs. */
import { joi } from '@portico/sdk';

import type { RunRow } from '../entities.ts';
import type { SourceResult } from '../runs/sources.ts';
import { timeOf } from './common.ts';

/** A run in an answer. */
export const runSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    planId: joi.number().integer().required().label('Plan'),
    trigger: joi
        .choice({ manual: 'By hand', schedule: 'By the clock', missed: 'Made up for', retry: 'Tried again' })
        .required()
        .label('Started by'),
    state: joi
        .choice({
            queued: 'Waits',
            running: 'Runs',
            succeeded: 'Succeeded',
            incomplete: 'Incomplete',
            failed: 'Failed',
            cancelled: 'Cancelled',
            interrupted: 'Cut off'
        })
        .required()
        .label('State')
        .meta({ ui: { column: 1 } }),
    dryRun: joi.boolean().required().label('Only a try'),
    attempt: joi.number().integer().required().label('Try'),
    startedAt: joi.string().required().label('Started'),
    finishedAt: joi.string().allow(null).required().label('Ended'),
    snapshotId: joi.string().allow(null).required().label('Snapshot'),
    message: joi.string().allow(null).required().label('Message'),
    sources: joi.array().items(joi.any()).required().label('Sources')
});

/** Shapes a run for an answer. */
export function runView(run: RunRow) {
    const { id, planId, trigger, state, dryRun, snapshotId, message, startedAt, finishedAt, sources } = run;
    return {
        id,
        planId,
        trigger,
        state,
        dryRun: Boolean(dryRun),
        attempt: run.attempt,
        startedAt: new Date(startedAt).toISOString(),
        finishedAt: timeOf(finishedAt),
        snapshotId,
        message,
        sources: JSON.parse(sources) as SourceResult[]
    };
}
