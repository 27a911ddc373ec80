/** How a client of a protected resource learns where to get a token, and what its token lacks. */
import type { Request } from '@hapi/hapi';
import type { Failure } from '@portico/sdk';

import type { HttpPorts } from '../ports.ts';
import type { RequestState } from '../request/state.ts';
import { isProtectedResource, type Route } from '../route.ts';

/** The `WWW-Authenticate` of a refusal at a protected resource (RFC 6750, section 3; RFC 9728, section 5.1); nothing elsewhere. */
export function challengeOf(
    request: Request,
    { code, reason }: Failure,
    ports: HttpPorts
): Readonly<Record<string, string>> {
    const route = (request.route.settings.plugins as { portico?: Route } | undefined)?.portico;
    if (route === undefined || !isProtectedResource(route)) {
        return {};
    }
    const isUnknown = Math.floor(code / 100) === 401;
    const caller = (request.app as RequestState).call?.actor;
    const lacksScope =
        reason === 'FORBIDDEN' && caller?.resource !== undefined && !caller.can(String(route.access));
    if (!isUnknown && !lacksScope) {
        return {};
    }
    const parts = [
        ...(reason === 'UNAUTHENTICATED'
            ? []
            : isUnknown
              ? ['error="invalid_token"']
              : ['error="insufficient_scope"', `scope="${String(route.access)}"`]),
        `resource_metadata="${ports.origin(request.raw.req.headers.host)}/.well-known/oauth-protected-resource${request.path}"`
    ];
    return { 'www-authenticate': `Bearer ${parts.join(', ')}` };
}
