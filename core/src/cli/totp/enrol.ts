/** `portico totp enrol`: begins to set up a second factor, with a QR code in the terminal. */
import { renderUnicodeCompact } from 'uqr';

import { type Command, jsonOption } from '../command/command.ts';
import { readPassword } from '../command/secret-input.ts';
import { asUser } from '../panel/log-in.ts';
import { withRunningPanel } from '../panel/with-panel.ts';

interface Enrolment {
    readonly secret: string;
    readonly uri: string;
}

/** The command `totp enrol`. */
export const totpEnrol: Command = {
    name: 'totp enrol',
    positionals: ['<username>'],
    summary: 'Get a secret for a second factor, as a QR code in the terminal',
    details: [
        'The password is read from standard input. Nothing changes until a code of the authenticator app is given: portico totp confirm <username> --code 123456.'
    ],
    options: { ...jsonOption },
    async run({ config, output, positionals: [username = ''] }) {
        const password = await readPassword();
        const { secret, uri } = await withRunningPanel(config, (client) =>
            asUser(
                client,
                username,
                password,
                async (own) => (await own.call<Enrolment>('POST', '/api/auth/totp', { password })).data
            )
        );
        output.say(
            `Scan this with an authenticator app, or type the secret into it. Then: portico totp confirm ${username} --code 123456`
        );
        output.result({ secret, uri }, `${renderUnicodeCompact(uri, { border: 2 })}\n${secret}`);
        return 0;
    }
};
