/** Who may grant what. */
import type { Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import type { Capabilities } from '../../runtime/generation.ts';

/**
 * Nobody gives what they do not have, and an API token gives nothing.
 *
 * @throws FORBIDDEN 40300, STEP_UP_REQUIRED 40301
 */
export function requireAuthority(actor: Caller, grants: Capabilities): void {
    if (actor.kind === 'system') {
        return;
    }
    if (actor.tokenId !== null) {
        throw fail.FORBIDDEN({ permission: 'session' }, { message: 'An API token cannot grant anything' });
    }
    if (!actor.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
    const lacking = permissionsBehind(grants).find((permission) => !actor.can(permission));
    if (lacking !== undefined) {
        throw fail.FORBIDDEN({ permission: lacking });
    }
}

/** What a person would need to do the same. Folders, sockets and programs reach the machine itself, as only `hosts:unsafe` does. */
function permissionsBehind({
    hosts,
    certificates,
    files = [],
    sockets = [],
    exec = [],
    users = [],
    direct = [],
    taps = [],
    collect = [],
    pages
}: Capabilities): readonly string[] {
    const machine = [files, sockets, exec, users, direct].some((list) => list.length > 0) || pages === true;
    return [
        ...(hosts === undefined ? [] : hosts === 'read' ? ['hosts:read'] : ['hosts:read', 'hosts:write']),
        ...(certificates === undefined
            ? []
            : certificates === 'read'
              ? ['certificates:read']
              : ['certificates:read', 'certificates:write']),
        ...(machine ? ['hosts:unsafe'] : []),
        ...[...taps, ...collect].flatMap((hook) =>
            behindHooks
                .filter(([prefix]) => hook === '*' || hook.startsWith(prefix))
                .map(([, permission]) => permission)
        )
    ];
}

/** Who changes, refuses or watches what others do could do so in person. What the engine is given by a plugin can be anything that it understands. */
const behindHooks: readonly (readonly [prefix: string, permission: string])[] = [
    ['audit.', 'audit:read'],
    ['settings.', 'settings:read'],
    ['host.', 'hosts:write'],
    ['engine.', 'hosts:unsafe'],
    ['auth.', 'users:write'],
    ['export.', 'export:run'],
    ['import.', 'import:run'],
    ['backup.', 'export:run']
];
