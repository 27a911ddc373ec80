/** `ctx.api.call`: a JSON route as the plugin's caller. */
import type { ApiAnswer } from '@portico/sdk';

import { admitCall, answerOf, type Calling, isAnswer, type PlainCall, send } from './request.ts';

/** Calls a route. What it answers, failures included, is the answer. */
export async function callRoute(
    by: Calling,
    call: PlainCall,
    signal: AbortSignal | null
): Promise<ApiAnswer> {
    const admitted = admitCall(by, call);
    if (isAnswer(admitted)) {
        return admitted;
    }
    const response = await send(by, admitted, call, signal);
    return isAnswer(response) ? response : answerOf(response);
}
