/** `portico admin create`: creates an account, also when no admin can log in. */
import type { UserView } from '../../features/users/users.ts';
import { type Command, jsonOption } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';
import { readPassword } from '../command/secret-input.ts';
import { withPanel } from '../panel/with-panel.ts';

/** The command `admin create`. */
export const adminCreate: Command = {
    name: 'admin create',
    positionals: ['<username>'],
    summary: 'Create an admin account, or one with another role',
    details: [
        'A random password is written to standard output. It is shown only once, and must be changed at the first login.'
    ],
    options: {
        role: {
            type: 'string',
            value: 'role',
            description: 'Another role than admin, such as operator or viewer'
        },
        'password-stdin': {
            type: 'boolean',
            description:
                'Read the password from standard input; it then need not be changed at the first login'
        },
        ...jsonOption
    },
    async run({ config, output, positionals, text, flag }) {
        const { randomPassword } = await import('../../features/users/console.ts');
        const { usernamePattern } = await import('../../features/users/schema.ts');
        const [username = ''] = positionals;
        if (!usernamePattern.test(username)) {
            throw usageError(
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
        const { id } = await withPanel<UserView>(config, {
            online: async (client) => (await client.call<UserView>('POST', '/api/users', user)).data,
            offline: async (offline) => (await offline.users.create(offline.call(), user)).data
        });
        output.say(
            made === null
                ? `The user ${username} was created with the role ${role}.`
                : `The user ${username} was created with the role ${role}. This is the password; it is shown only once and must be changed at the first login:`
        );
        output.result({ id, username, role, password: made, mustChangePassword: made !== null }, made);
        return 0;
    }
};
