/** Deploy keys, in the form of OpenSSH. */
import { errors } from '@portico/sdk';

import type { Folders } from '../releases/folders.ts';
import type { Ctx } from '../settings.ts';
import { keyFile } from './credentials.ts';

/** A pair of keys. */
export interface KeyPair {
    readonly privateKey: string;
    readonly publicKey: string;
}

/** Makes a pair of keys, or finds the public one of a private key. @throws VALIDATION_FAILED 40001 for a key that is none; TOOL_MISSING 50302 */
export async function makeKey(ctx: Ctx, folders: Folders, given: string | null): Promise<KeyPair> {
    if (given !== null) {
        const privateKey = `${given.replaceAll('\r\n', '\n').trim()}\n`;
        const { code, stdout } = await ctx.exec('ssh-keygen', ['-y', '-P', '', '-f', keyFile], {
            privateFiles: { [keyFile]: privateKey },
            timeoutSeconds: 10
        });
        if (code !== 0) {
            throw errors.invalid([
                { path: 'privateKey', message: 'It is no private key without a passphrase' }
            ]);
        }
        return { privateKey, publicKey: stdout.trim() };
    }
    await folders.prepare();
    const draft = `keys-${crypto.randomUUID()}`;
    await folders.files.createFolder(draft, { mode: 0o700 });
    try {
        const path = folders.absolute(`${draft}/${keyFile}`);
        const { code, stderr } = await ctx.exec(
            'ssh-keygen',
            ['-q', '-t', 'ed25519', '-N', '', '-C', 'portico-deploy', '-f', path],
            { timeoutSeconds: 10, cwd: '/' }
        );
        if (code !== 0) {
            throw new Error(`ssh-keygen ended with ${code ?? 'a signal'}: ${stderr.trim()}`);
        }
        return {
            privateKey: await read(folders, `${draft}/${keyFile}`),
            publicKey: (await read(folders, `${draft}/${keyFile}.pub`)).trim()
        };
    } finally {
        await folders.remove(draft);
    }
}

async function read(folders: Folders, path: string): Promise<string> {
    const file = await folders.files.open(path);
    try {
        return await file.readFile('utf8');
    } finally {
        await file.close();
    }
}
