/** A JSON route that is only tried. */
import type { Lifecycle, ResponseToolkit } from '@hapi/hapi';
import { isReply } from '@portico/sdk';

import { envelope, jsonType } from '../answer/envelope.ts';
import type { HttpCall } from '../request/http-call.ts';
import { type Rehearsal, Rehearsed } from '../request/rehearsal.ts';
import type { Route } from '../route.ts';

/**
 * Checks a call whose input was read, and runs the handler of a route that can be rehearsed up to its commit.
 * @throws what the route would answer as a failure
 */
export async function rehearse(
    route: Extract<Route, { kind: 'json' }>,
    call: HttpCall,
    rehearsal: Rehearsal,
    h: ResponseToolkit
): Promise<Lifecycle.ReturnValue> {
    await route.prepare?.(call);
    if (route.rehearses === true) {
        try {
            rehearsal.reply = dataOf(await route.handler(call));
        } catch (error) {
            if (!(error instanceof Rehearsed)) {
                throw error;
            }
            rehearsal.reply = dataOf(error.reply);
        }
        rehearsal.ran = true;
    }
    return h.response(envelope(0, 'ok', null)).type(jsonType);
}

function dataOf(answer: unknown): unknown {
    const data = isReply(answer) ? answer.data : answer;
    return data === undefined ? null : JSON.parse(JSON.stringify(data));
}
