/** Checks that an admin may grant capabilities to a plugin. */
import type { Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import type { Capabilities } from '../../runtime/generation/generation.ts';

/**
 * Refuses grants that the actor could not use in person. An API token cannot grant anything.
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

/** The permissions that a person needs to do the same. Folders, sockets and programs reach the machine itself, which only `hosts:unsafe` allows. */
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
    logs = [],
    panel = [],
    services,
    pages
}: Capabilities): readonly string[] {
    const machine =
        [files, sockets, exec, users, direct].some((list) => list.length > 0) ||
        services === true ||
        pages === true;
    return [
        ...(hosts === undefined ? [] : hosts === 'read' ? ['hosts:read'] : ['hosts:read', 'hosts:write']),
        ...(certificates === undefined
            ? []
            : certificates === 'read'
              ? ['certificates:read']
              : ['certificates:read', 'certificates:write']),
        ...(machine ? ['hosts:unsafe'] : []),
        ...(logs.length > 0 ? ['engine:logs'] : []),
        ...panel.map((part) => behindPanel[part]),
        ...[...taps, ...collect].flatMap((hook) =>
            behindHooks
                .filter(([prefix]) => hook === '*' || hook.startsWith(prefix))
                .map(([, permission]) => permission)
        )
    ];
}

/** The permission behind each entry of the capability `panel`. */
const behindPanel = {
    listeners: 'engine:read',
    folders: 'engine:read',
    rehearse: 'export:run'
} as const satisfies Record<NonNullable<Capabilities['panel']>[number], string>;

/** The permission behind each group of hooks. `engine.` hooks can put any configuration into the engine, so they need `hosts:unsafe`. */
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
