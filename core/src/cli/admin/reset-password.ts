/** `portico admin reset-password`: opens an account again when nobody can log in. */
import { type Command, jsonOption } from '../command/command.ts';
import { readPassword } from '../command/secret-input.ts';
import type { Client } from '../panel/client.ts';
import { findUser } from '../panel/find-user.ts';
import { reach } from '../panel/with-panel.ts';

interface Opened {
    readonly id: number;
    readonly username: string;
    readonly password: string | null;
}

export const adminResetPassword: Command = {
    name: 'admin reset-password',
    positionals: ['[username]'],
    summary: 'Give an account a new password, and let it in again',
    details: [
        'Without a name it is the account "admin". A random password is made and written to standard output, this once; it must be changed at the first login. The account is enabled, its waiting times after failed logins are forgotten, and all its sessions end. Its API tokens stay.'
    ],
    options: {
        'password-stdin': {
            type: 'boolean',
            description: 'Take the new password from standard input, and do not ask for a change of it'
        },
        'disable-totp': { type: 'boolean', description: 'Take the second factor away as well' },
        ...jsonOption
    },
    async run({ config, output, positionals, flag }) {
        const username = positionals[0] ?? 'admin';
        const password = flag('password-stdin') ? await readPassword() : undefined;
        const secondFactor = flag('disable-totp');
        const opened = await reach<Opened>(config, {
            online: (client) => reset(client, username, password, secondFactor),
            offline: (offline) =>
                offline.console.resetPassword(offline.call(), username, { password, secondFactor })
        });
        output.say(
            opened.password === null
                ? `${opened.username} has the new password; all sessions of ${opened.username} have ended.`
                : `The new password of ${opened.username}, shown this once; it must be changed at the first login. All sessions of ${opened.username} have ended.`
        );
        output.result(
            {
                id: opened.id,
                username: opened.username,
                password: opened.password,
                mustChangePassword: opened.password !== null
            },
            opened.password
        );
        return 0;
    }
};

async function reset(
    client: Client,
    username: string,
    given: string | undefined,
    secondFactor: boolean
): Promise<Opened> {
    const user = await findUser(client, username);
    const { randomPassword } = await import('../../features/users/console.ts');
    const made = given === undefined ? randomPassword() : null;
    const path = `/api/users/${user.id}`;
    // The second factor first: once the password is told, everything is done.
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
