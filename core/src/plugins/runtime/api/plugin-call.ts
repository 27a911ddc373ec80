/** A call that a plugin makes for itself or for its caller, in the form that the panel's services take. */
import { randomUUID } from 'node:crypto';

import { isReply } from '@portico/sdk';

import { type Call, type Caller, recordedActor } from '../../../platform/call.ts';
import type { Recorder } from '../../../server/http/ports.ts';

/** The plugin itself: no user, and only what its grants amount to. */
export function pluginCaller(plugin: string, can: (permission: string) => boolean): Caller {
    return {
        kind: 'plugin',
        id: null,
        username: null,
        role: null,
        tokenId: null,
        permissions: [],
        key: `plugin:${plugin}`,
        can,
        sessionId: null,
        plugin,
        fresh: false
    };
}

/** For whom a plugin makes a call. */
export interface PluginCallOptions {
    readonly caller: Caller;
    readonly recorder: Pick<Recorder, 'record'>;
    readonly signal: AbortSignal;
    readonly ip?: string | null;
    readonly requestId?: string;
    /** The version that is meant. */
    readonly ifMatch?: string | null;
}

/** What it changes goes on record like any other change, with the plugin's name. */
export function createPluginCall({
    caller,
    recorder,
    signal,
    ip = null,
    requestId = randomUUID(),
    ifMatch = null
}: PluginCallOptions): Call {
    return {
        id: requestId,
        actor: caller,
        ip,
        userAgent: null,
        ifMatch,
        signal,
        async complete(
            tx,
            {
                reply,
                action = 'update',
                resource = caller.plugin ?? 'panel',
                resourceId = null,
                before,
                after
            }
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
                userAgent: null,
                requestId
            });
            return reply;
        }
    };
}
