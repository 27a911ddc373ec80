/** A call that nobody made over HTTP: the panel's own work, and the command line's on a folder whose panel does not run. */
import { randomUUID } from 'node:crypto';

import { isReply } from '@portico/sdk';

import type { Call, Caller } from '../../../platform/call.ts';
import type { Recorder } from '../ports.ts';

const system: Caller = Object.freeze({
    kind: 'system',
    id: null,
    username: null,
    role: null,
    tokenId: null,
    permissions: Object.freeze([]),
    key: 'system',
    can: () => true,
    sessionId: null,
    plugin: null,
    fresh: true
});

/** Makes one call of the system. It may everything; what it changes goes on record like any other change. `userAgent` says who stands behind it, where somebody does. */
export function createSystemCall(
    recorder: Pick<Recorder, 'record'>,
    signal: AbortSignal = new AbortController().signal,
    userAgent: string | null = null
): Call {
    const id = randomUUID();
    return {
        id,
        actor: system,
        ip: null,
        userAgent,
        ifMatch: null,
        signal,
        async complete(
            tx,
            { reply, action = 'update', resource = 'panel', resourceId = null, before, after }
        ) {
            await recorder.record(tx, {
                actor: { id: null, username: null, tokenId: null, plugin: null },
                action,
                resource,
                resourceId,
                before,
                after,
                outcome: 'success',
                status: isReply(reply) ? reply.status : null,
                code: 0,
                ip: null,
                userAgent,
                requestId: id
            });
            return reply;
        }
    };
}
