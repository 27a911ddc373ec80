/** Calls that were not made over HTTP: the panel's own work, and the command line's on a folder whose panel does not run. */
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

/** Makes one call of the system, which may do everything. Its changes go on record like all others. `userAgent` names the program behind it, if there is one. */
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
