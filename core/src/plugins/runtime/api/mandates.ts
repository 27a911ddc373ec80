/** What a plugin may do with mandates: be given one by the person who asks, act by it, and end it. */
import { randomUUID } from 'node:crypto';

import type { Grants, HostApi } from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { createInternalCall } from '../../../server/http/request/internal-call.ts';
import type { Callers, CallersOptions } from './callers.ts';
import { findOwnRoute, findRoute, mayCall } from './catalogue.ts';
import { type Held, onBehalf } from './handles.ts';

type Options = Pick<CallersOptions, 'ports' | 'plugin' | 'handles'> & { readonly grants: Grants };
type Given = Parameters<HostApi['giveMandate']>[0];

/** How long one use may act in the giver's name. */
const longestUseMs = 24 * 60 * 60_000;
const longestTitle = 100;
const mostRoutes = 100;

/** The members of the host API that `ctx.mandates` calls. */
export function mandatesApi(
    options: Options,
    callers: Callers
): Pick<HostApi, 'giveMandate' | 'useMandate' | 'endMandate'> {
    const { ports, plugin, handles } = options;
    return {
        async giveMandate({ handle, ...given }) {
            const { held, caller } = callers.holder(handle);
            requirePresence(held, caller);
            requireShape(given);
            given.routes.forEach((id) => requireRoute(options, caller, id));
            const { title, routes, expiresAt } = given;
            const call = createInternalCall({
                caller: onBehalf(caller, plugin, held.depth),
                recorder: ports.http.recorder,
                signal: AbortSignal.abort(),
                ip: held.ip,
                id: held.requestId
            });
            return ports.mandates.give(call, {
                plugin,
                title,
                routes: [...routes],
                expiresAt: expiresAt?.getTime() ?? null
            });
        },
        async useMandate({ id, run }) {
            const caller = ports.mandates.use(plugin, id);
            const asker = handles.begin({
                caller,
                ip: null,
                requestId: `mandate-${randomUUID()}`,
                audit: null
            });
            const expire = setTimeout(() => handles.end(asker.handle), longestUseMs).unref();
            try {
                await run(asker);
            } finally {
                clearTimeout(expire);
                handles.end(asker.handle);
            }
        },
        endMandate: ({ id }) => ports.mandates.end(callers.callOf(callers.own()), plugin, id)
    };
}

/**
 * A mandate outlives its giver's session, so the giver must be there, and have proven it lately, in a route that asks for that.
 * @throws FORBIDDEN 40300, STEP_UP_REQUIRED 40301, TypeError for a route without `stepUp`
 */
function requirePresence(held: Held, caller: Caller): void {
    if (caller.kind !== 'user' || caller.tokenId !== null || caller.sessionId === null) {
        throw fail.FORBIDDEN(
            { permission: 'session' },
            { message: 'Only a user who is logged in can give a mandate' }
        );
    }
    if (held.stepUp !== true) {
        throw new TypeError(
            'ctx.mandates.give belongs in a route with stepUp: true, with the actor of its request'
        );
    }
    if (held.caller.plugin !== null || !held.caller.fresh || !caller.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
}

/** @throws VALIDATION_FAILED 40001 */
function requireShape({ title, routes, expiresAt }: Omit<Given, 'handle'>): void {
    if (typeof title !== 'string' || title.trim() === '' || title.length > longestTitle) {
        throw invalid({ path: 'title', message: `title must have 1 to ${longestTitle} characters` });
    }
    if (
        !Array.isArray(routes) ||
        routes.length === 0 ||
        routes.length > mostRoutes ||
        routes.some((id) => typeof id !== 'string') ||
        new Set(routes).size !== routes.length
    ) {
        throw invalid({
            path: 'routes',
            message: `routes must be 1 to ${mostRoutes} different ids of routes`
        });
    }
    if (expiresAt !== null && !(expiresAt instanceof Date && Number.isFinite(expiresAt.getTime()))) {
        throw invalid({ path: 'expiresAt', message: 'expiresAt must be a date' });
    }
}

/** @throws NOT_FOUND 40400, FORBIDDEN 40300, CAPABILITY_MISSING 50305 */
function requireRoute({ ports, grants, plugin }: Options, caller: Caller, id: string): void {
    const own = findOwnRoute(ports, plugin, id);
    const entry = own ?? findRoute(ports, plugin, id);
    if (entry === undefined) {
        throw fail.NOT_FOUND(null, { message: `There is no route ${id} that a plugin may call` });
    }
    if (own === undefined && !grants.api(id, entry.info.effect)) {
        throw grants.missing(`api: ${id}`);
    }
    if (entry.route.sessionOnly === true || !mayCall(caller, entry.route)) {
        throw fail.FORBIDDEN(
            { permission: entry.info.permission ?? 'session' },
            { message: `The route ${id} cannot be called by mandate, or not by this user` }
        );
    }
}
