/** `portico totp confirm`: switches the second factor on that `portico totp enrol` began. */
import { type Command, jsonOption } from '../command/command.ts';
import { readPassword } from '../command/secret-input.ts';
import { asUser } from '../panel/log-in.ts';
import { withRunningPanel } from '../panel/with-panel.ts';

/** The command `totp confirm`. */
export const totpConfirm: Command = {
    name: 'totp confirm',
    positionals: ['<username>'],
    summary: 'Switch the second factor on with a code of it',
    details: [
        'The password is read from standard input. The recovery codes are written to standard output. They are shown only once, and each of them stands for a code once.'
    ],
    options: {
        code: {
            type: 'string',
            value: 'digits',
            description: 'The code that the authenticator app shows now'
        },
        ...jsonOption
    },
    async run({ config, output, positionals: [username = ''], required }) {
        const code = required('code');
        const password = await readPassword();
        const { recoveryCodes } = await withRunningPanel(config, (client) =>
            asUser(
                client,
                username,
                password,
                async (own) =>
                    (await own.call<{ readonly recoveryCodes: string[] }>('PUT', '/api/auth/totp', { code }))
                        .data
            )
        );
        output.say(`${username} has a second factor. Keep these recovery codes where its device is not:`);
        output.result({ recoveryCodes }, recoveryCodes.join('\n'));
        return 0;
    }
};
