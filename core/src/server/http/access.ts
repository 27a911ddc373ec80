/** Which callers a route is for. */
import type { Caller } from '../../platform/call.ts';
import { fail } from '../../platform/errors.ts';
import { effectOf, type Route } from './route.ts';

/**
 * Holds a caller with an account against what a route declares.
 * @throws FORBIDDEN 40300
 */
export function requireAccess(caller: Caller, route: Route): void {
    if (typeof route.access !== 'string') {
        return;
    }
    if (route.sessionOnly === true && caller.tokenId !== null) {
        throw fail.FORBIDDEN({ permission: 'session' }, { message: 'An API token cannot do this' });
    }
    if (route.access !== 'authenticated' && !caller.can(route.access)) {
        throw fail.FORBIDDEN({ permission: route.access });
    }
    if (caller.role === 'viewer' && route.ownAccount !== true && effectOf(route) !== 'read') {
        throw fail.FORBIDDEN({ permission: route.access }, { message: 'The role viewer only reads' });
    }
}
