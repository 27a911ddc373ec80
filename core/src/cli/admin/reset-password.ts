/** `portico admin reset-password`: gives an account a new password, also when no admin can log in. */
import { type Command, jsonOption } from '../command/command.ts';
import { readPassword } from '../command/secret-input.ts';
import type { Client } from '../panel/client.ts';
import { findUser } from '../panel/find-user.ts';
import { withPanel } from '../panel/with-panel.ts';

interface ResetAccount {
    readonly id: number;
    readonly username: string;
    readonly password: string | null;
}

/** The command `admin reset-password`. */
export const adminResetPassword: Command = {
    name: 'admin reset-password',
    positionals: ['[username]'],
    summary: 'Give an account a new password, and enable it',
    details: [
        'Without a name, the account is "admin". A random password is written to standard output. It is shown only once, and must be changed at the first login. The account is enabled, its waiting times after failed logins are reset, and all its sessions end. Its API tokens stay valid.'
    ],
    options: {
        'password-stdin': {
            type: 'boolean',
            description:
                'Read the new password from standard input; it then need not be changed at the first login'
        },
        'disable-totp': { type: 'boolean', description: 'Remove the second factor as well' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const username = positionals[0] ?? 'admin';
        const password = flag('password-stdin') ? await readPassword() : undefined;
        const secondFactor = flag('disable-totp');
        const account = await withPanel<ResetAccount>(config, {
            online: (client) => reset(client, username, password, secondFactor),
            offline: (offline) =>
                offline.console.resetPassword(offline.call(), username, { password, secondFactor })
        });
        output.say(
            account.password === null
                ? `${account.username} has the new password; all sessions of ${account.username} have ended.`
                : `All sessions of ${account.username} have ended. This is the new password; it is shown only once and must be changed at the first login:`
        );
        output.result(
            {
                id: account.id,
                username: account.username,
                password: account.password,
                mustChangePassword: account.password !== null
            },
            account.password
        );
        return 0;
    }
};

async function reset(
    client: Client,
    username: string,
    given: string | undefined,
    secondFactor: boolean
): Promise<ResetAccount> {
    const user = await findUser(client, username);
    const { randomPassword } = await import('../../features/users/console.ts');
    const made = given === undefined ? randomPassword() : null;
    const path = `/api/users/${user.id}`;
    // The second factor goes first: when the password is shown, everything is done.
    if (secondFactor && user.totpEnabled) {
        await client.call('DELETE', `${path}/totp`);
    }
    await client.call('PUT', path, {
        password: given ?? made,
        disabled: false,
        mustChangePassword: made !== null
    });
    return { id: user.id, username: user.username, password: made };
}
