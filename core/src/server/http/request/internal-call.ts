/** Calls that were not made over HTTP: the panel's own work, a plugin's, and the command line's on a folder whose panel does not run. */
import { randomUUID } from 'node:crypto';

import { isReply } from '@portico/sdk';

import { type Call, type Caller, recordedActor } from '../../../platform/call.ts';
import type { Recorder } from '../ports.ts';

/** The system, which may do everything. @param key - tells apart whom it acts for, where calls are counted or repeated */
export function systemCaller(key: string): Caller {
    return Object.freeze({
        kind: 'system',
        id: null,
        username: null,
        role: null,
        tokenId: null,
        permissions: Object.freeze([]),
        key,
        can: () => true,
        sessionId: null,
        plugin: null,
        fresh: true
    });
}

/** For whom a call is made, and who writes it to the audit log. */
export interface InternalCallOptions extends Partial<Pick<Call, 'id' | 'ip' | 'ifMatch' | 'route'>> {
    readonly caller?: Caller;
    readonly recorder: Pick<Recorder, 'record'>;
    readonly signal?: AbortSignal;
    /** The program behind it, if there is one. */
    readonly userAgent?: string | null;
    /** The action of audit entries that name none; default `update`. */
    readonly action?: string;
    /** The resource of audit entries that name none; default: the plugin behind the call, or `panel`. */
    readonly resource?: string;
}

const system = systemCaller('system');

/** Makes one call, by default of the system. Its changes go on record like all others. */
export function createInternalCall({
    id = randomUUID(),
    caller = system,
    recorder,
    signal = new AbortController().signal,
    ip = null,
    userAgent = null,
    ifMatch = null,
    action: usualAction = 'update',
    resource: usualResource = caller.plugin ?? 'panel',
    route
}: InternalCallOptions): Call {
    return {
        id,
        ...(route === undefined ? {} : { route }),
        actor: caller,
        ip,
        userAgent,
        ifMatch,
        signal,
        async complete(
            tx,
            { reply, action = usualAction, resource = usualResource, resourceId = null, before, after }
        ) {
            await recorder.record(tx, {
                actor: recordedActor(caller),
                action,
                resource,
                resourceId,
                before,
                after,
                outcome: 'success',
                status: isReply(reply) ? reply.status : null,
                code: 0,
                ip,
                userAgent,
                requestId: id
            });
            return reply;
        }
    };
}
