/** Who sent a request: the bearer of a token, the holder of a ticket, or a plugin on behalf of its caller. */
import type { Request } from '@hapi/hapi';

import type { Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import type { HttpPorts } from '../ports.ts';
import { isProtectedResource, type Route } from '../route.ts';
import type { RequestState } from './state.ts';
import { ticketOf } from './ticket.ts';

/** Who sent a request, and the token that says so; null for a ticket and for a plugin. */
export interface Identity {
    readonly caller: Caller;
    readonly bearer: string | null;
}

/** Finds out who sent a request; without a promise where none is needed. @throws UNAUTHENTICATED 40100 and what {@link Authenticator} throws */
export function identify(request: Request, route: Route, ports: HttpPorts): Identity | Promise<Identity> {
    const { authorization, 'user-agent': userAgent } = request.raw.req.headers;
    const state = request.app as RequestState;
    if (route.ticketed !== undefined) {
        const ticket = String((request.params as Record<string, unknown>)[route.ticketed.param]);
        return route.ticketed.take(ticket).then(({ caller, data }) => {
            state.ticketData = data;
            return { caller, bearer: null };
        });
    }
    if (state.caller !== undefined) {
        return { caller: state.caller, bearer: null };
    }
    const bearer =
        authorization === undefined ? null : (/^Bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1] ?? null);
    if (typeof route.access !== 'string') {
        return { caller: ports.authenticator.anonymous, bearer };
    }
    const from = { ip: state.ip, userAgent: userAgent ?? null };
    const ticket = state.ticket ?? ticketOf(request.raw.req);
    if (ticket !== null && authorization === undefined && request.method === 'get') {
        return ports.authenticator
            .ticket(ticket, request.raw.req.url ?? request.path, from)
            .then((caller) => ({ caller, bearer: null }));
    }
    if (bearer === null) {
        throw fail.UNAUTHENTICATED();
    }
    const admit = (caller: Caller): Identity => {
        requireResource(caller, route, request.path);
        return { caller, bearer };
    };
    const found = ports.authenticator.bearer(bearer, from);
    return found instanceof Promise ? found.then(admit) : admit(found);
}

/** A token of OAuth opens the resource that it was given for, and nothing else: no route of the core, and none of another plugin. */
function requireResource({ resource }: Caller, route: Route, path: string): void {
    if (
        resource !== undefined &&
        !(isProtectedResource(route) && (path === resource || path.startsWith(`${resource}/`)))
    ) {
        throw fail.TOKEN_INVALID(null, { message: 'The token is for another resource' });
    }
}
