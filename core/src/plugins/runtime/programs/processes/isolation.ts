/** Programs without a network: in a network namespace of their own, and without any capability of the kernel. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { createFailure, errors } from '@portico/sdk';

import type { MachineAccount } from '../machine-accounts.ts';
import { type Command, endWithPanel } from '../options.ts';
import { findProgram } from '../path.ts';

/** Whether the machine let this process make a network namespace. */
let allowed = false;

/**
 * The command in a namespace of its own. `unshare` makes the namespace, `setpriv` then changes to the account and gives up all rights,
 * and each becomes the next (exec).
 *
 * @param account - null for the panel's own
 * @throws TOOL_MISSING 50302 without these programs, and where the machine allows no such namespace
 */
export async function isolated({ path, args }: Command, account: MachineAccount | null): Promise<Command> {
    const [unshare, setpriv] = [await findProgram('unshare'), await findProgram('setpriv')];
    if (unshare === null || setpriv === null) {
        throw errors.toolMissing('unshare and setpriv', 'apt-get install util-linux');
    }
    // Another account than root needs a user namespace first, in which it may make the other one.
    const space = [...(process.getuid?.() === 0 ? [] : ['--user', '--map-current-user']), '--net', '--'];
    await mustBeAllowed(unshare, space);
    const rights = [
        endWithPanel,
        '--no-new-privs',
        '--inh-caps=-all',
        '--ambient-caps=-all',
        '--bounding-set=-all'
    ];
    const identity =
        account === null ? [] : [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'];
    return { path: unshare, args: [...space, setpriv, ...identity, ...rights, '--', path, ...args] };
}

async function mustBeAllowed(unshare: string, space: readonly string[]): Promise<void> {
    if (allowed) {
        return;
    }
    try {
        await promisify(execFile)(unshare, [...space, 'true'], { timeout: 5_000, env: {} });
        allowed = true;
    } catch (error) {
        throw createFailure(
            {
                code: 50302,
                reason: 'TOOL_MISSING',
                message: 'The panel may make no network namespace for this program',
                data: {
                    tool: 'network namespaces',
                    install:
                        'run the panel as root, or allow user namespaces (sysctl user.max_user_namespaces)'
                }
            },
            error
        );
    }
}
