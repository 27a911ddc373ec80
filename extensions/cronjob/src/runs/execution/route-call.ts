/** Runs that call a route of the panel, in the name of the person who authorized the task. */
import { isFailure } from '@portico/sdk';

import type { RouteWork } from '../../tasks/input/work-input.ts';
import { emptyResult, type RunResult } from '../results/result.ts';
import type { RequestRun } from './request.ts';

/** The mandate was revoked or has expired, or its giver is disabled. */
const revoked = 40103;
const notAuthorized = {
    ...emptyResult,
    state: 'failed',
    reason: 'NOT_AUTHORIZED',
    message: 'A person who may call this route must authorize the task'
} as const;

/** Calls a route and, where it starts a task, waits for that task. @param mandate - null: the task was not authorized */
export async function callRoute(
    { id, params, query, payload }: RouteWork,
    mandate: number | null,
    { ctx, output, signal }: RequestRun
): Promise<RunResult> {
    if (mandate === null) {
        return notAuthorized;
    }
    try {
        const answer = await ctx.mandates.use(mandate, (actor) =>
            ctx.api.call(actor, {
                id,
                params,
                query,
                ...(payload === null ? {} : { payload }),
                signal,
                follow: ({ text }) => text !== null && output.add(`${text}\n`)
            })
        );
        output.add(`${answer.status} ${answer.message}\n${JSON.stringify(answer.data, null, 2) ?? ''}\n`);
        const { status } = answer;
        return answer.code === 0
            ? { ...emptyResult, state: 'succeeded', status }
            : {
                  ...emptyResult,
                  state: 'failed',
                  status,
                  reason: answer.code === revoked ? notAuthorized.reason : 'ROUTE_FAILED',
                  message: `${answer.code}: ${answer.message}`
              };
    } catch (error) {
        if (isFailure(error) && error.code === revoked) {
            return notAuthorized;
        }
        throw error;
    }
}
