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

/** Refuses a caller whose session did not prove itself lately, where the route asks for that. @throws STEP_UP_REQUIRED 40301 */
export function requireFresh(caller: Pick<Caller, 'fresh'>, route: Pick<Route, 'stepUp'>): void {
    if (route.stepUp === true && !caller.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
}
