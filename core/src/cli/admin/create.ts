/** `portico admin create`: another account, when nobody can log in to make one. */
import type { UserView } from '../../features/users/users.ts';
import { type Command, jsonOption } from '../command/command.ts';
import { misuse } from '../command/command-error.ts';
import { readPassword } from '../command/secret-input.ts';
import { reach } from '../panel/with-panel.ts';

export const adminCreate: Command = {
    name: 'admin create',
    positionals: ['<username>'],
    summary: 'Create an account that may everything',
    details: [
        'A random password is made and written to standard output, this once; it must be changed at the first login.'
    ],
    options: {
        role: {
            type: 'string',
            value: 'role',
            description: 'Another role than admin, such as operator or viewer'
        },
        'password-stdin': {
            type: 'boolean',
            description: 'Take the password from standard input, and do not ask for a change of it'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, text, flag }) {
        const { randomPassword } = await import('../../features/users/console.ts');
        const { usernamePattern } = await import('../../features/users/schema.ts');
        const [username = ''] = positionals;
        if (!usernamePattern.test(username)) {
            throw misuse(
                'a user name has 3 to 64 letters, digits, dots, dashes, underscores or @, and begins with a letter or digit'
            );
        }
        const role = text('role') ?? 'admin';
        const made = flag('password-stdin') ? null : randomPassword();
        const user = {
            username,
            role,
            password: made ?? (await readPassword()),
            mustChangePassword: made !== null
        };
        const { id } = await reach<UserView>(config, {
            online: async (client) => (await client.call<UserView>('POST', '/api/users', user)).data,
            offline: async (offline) => (await offline.users.create(offline.call(), user)).data
        });
        output.say(
            made === null
                ? `${username} is there, with the role ${role}.`
                : `The password of ${username} (role ${role}), shown this once; it must be changed at the first login.`
        );
        output.result({ id, username, role, password: made, mustChangePassword: made !== null }, made);
        return 0;
    }
};
