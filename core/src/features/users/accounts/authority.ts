/** Who may give what to whom: nobody gives what they do not have, and nobody touches the account of somebody who has more. */
import type { Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';

/** @throws FORBIDDEN 40300 with the first permission that the actor does not have */
export function requireAll(actor: Caller, permissions: Iterable<string>): void {
    for (const permission of permissions) {
        if (!holds(actor, permission)) {
            throw fail.FORBIDDEN({ permission });
        }
    }
}

/**
 * Authority is given only by somebody who is there: a session that proved itself lately, never an API token.
 *
 * @throws FORBIDDEN 40300, STEP_UP_REQUIRED 40301
 */
export function requireProof(actor: Caller): void {
    if (actor.kind === 'system') {
        return;
    }
    if (actor.tokenId !== null) {
        throw fail.FORBIDDEN({ permission: 'session' }, { message: 'An API token cannot do this' });
    }
    if (!actor.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
}

/** An admin in person has everything, also what belongs to a plugin that is not running now. */
function holds(actor: Caller, permission: string): boolean {
    return (
        actor.kind === 'system' ||
        (actor.role === 'admin' && actor.tokenId === null && actor.kind === 'user') ||
        actor.can(permission)
    );
}
