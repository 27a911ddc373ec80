/** Limits on authority: an actor gives only permissions that it has, and changes only accounts that have no more than it has. */
import type { Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';

/** Requires that the actor has all of these permissions. @throws FORBIDDEN 40300 with the first one that it does not have */
export function requireAll(actor: Caller, permissions: Iterable<string>): void {
    for (const permission of permissions) {
        if (!holds(actor, permission)) {
            throw fail.FORBIDDEN({ permission });
        }
    }
}

/**
 * Requires a session whose user proved their identity a short time ago. An API token never can.
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

/** An admin in a session has every permission, also those of a plugin that does not run now. */
function holds(actor: Caller, permission: string): boolean {
    return (
        actor.kind === 'system' ||
        (actor.role === 'admin' && actor.tokenId === null && actor.kind === 'user') ||
        actor.can(permission)
    );
}
