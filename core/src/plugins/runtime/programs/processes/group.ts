/** The control group of a program: who refuses it, and how a program waits until it is in it. */
import { createFailure, type GroupLimits } from '@portico/sdk';

import {
    type ControlGroup,
    GroupUnavailable
} from '../../../../platform/process/control-group/control-group.ts';
import type { ControlGroups } from '../../../../platform/process/control-group/control-groups.ts';
import type { Command } from '../options.ts';

/** The descriptor on which a program waits until it is in its group. */
export const waitingOn = 3;

/**
 * Makes the control group of a program; null when none was asked for, or when it would only measure and the machine allows none.
 *
 * @throws TOOL_MISSING 50302 when a limit was asked for and the panel can write no control group
 */
export async function makeGroup(
    groups: ControlGroups,
    limits: GroupLimits | undefined
): Promise<ControlGroup | null> {
    if (limits === undefined) {
        return null;
    }
    try {
        return await groups.create(limits);
    } catch (error) {
        if (!(error instanceof GroupUnavailable)) {
            throw error;
        }
        if (Object.values(limits).every((limit) => limit === undefined)) {
            return null;
        }
        const install =
            'run the panel as root, or delegate control groups to it (systemd: Delegate=yes, DelegateSubgroup=panel)';
        throw createFailure(
            {
                code: 50302,
                reason: 'TOOL_MISSING',
                message: `The panel can write no control group for these limits: ${error.message}`,
                data: { tool: 'control groups', install }
            },
            error
        );
    }
}

/**
 * The command behind a fixed script that waits for a line on its fourth descriptor: what the program starts is then in the group, too. A
 * shell adds variables to the environment; the program gets only those of `env`.
 */
export function waiting({ path, args }: Command, env: Readonly<Record<string, string>> = {}): Command {
    const added = ['PWD', 'OLDPWD', 'SHLVL', '_'].filter((name) => !Object.hasOwn(env, name));
    const script = `read -r PORTICO_GO <&${waitingOn} && unset PORTICO_GO ${added.join(' ')} && exec "$@" ${waitingOn}<&-`;
    return { path: '/bin/sh', args: ['-c', script, 'sh', path, ...args] };
}
