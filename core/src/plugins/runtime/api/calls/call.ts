/** `ctx.api.call`: a JSON route as the plugin's caller. */
import type { ApiAnswer } from '@portico/sdk';

import { type Follower, followTask } from './follow.ts';
import { admitCall, answerOf, type Calling, isAnswer, type PlainCall, send } from './request.ts';

/** Calls a route. What it answers, failures included, is the answer. @throws the reason of `signal` */
export async function callRoute(
    by: Calling,
    call: PlainCall,
    signal: AbortSignal,
    follow?: Follower
): Promise<ApiAnswer> {
    const admitted = admitCall(by, call);
    if (isAnswer(admitted)) {
        return admitted;
    }
    if (follow === undefined) {
        const response = await send(by, admitted, call, { signal });
        return isAnswer(response) ? response : answerOf(response);
    }
    // A task that starts although the caller left meanwhile has to be found, to be cancelled.
    signal.throwIfAborted();
    const response = await send(by, admitted, call, { signal: null });
    return isAnswer(response) ? response : followTask(by, admitted.via, answerOf(response), follow, signal);
}
