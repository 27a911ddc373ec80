/** Reads a password from standard input, since every process of the machine could read it in an argument. */
import { CommandError, usageError } from './command-error.ts';

const longest = 4096;

/** Reads all of standard input without its last line break. @throws CommandError of wrong use when standard input is a terminal, or empty */
export async function readPassword(
    input: NodeJS.ReadStream | AsyncIterable<Buffer> = process.stdin
): Promise<string> {
    if ('isTTY' in input && input.isTTY) {
        throw usageError(
            '--password-stdin reads the password from a pipe or file, so that the screen does not show it: put it in a file that only you can read, and add `< file`'
        );
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of input as AsyncIterable<Buffer>) {
        size += chunk.length;
        chunks.push(chunk);
        if (size > longest) {
            throw new CommandError('The password on standard input is too long');
        }
    }
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let password: string;
    try {
        password = text.decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
    } catch {
        throw new CommandError('The password on standard input is not UTF-8');
    }
    if (password === '' || /[\n\0]/.test(password)) {
        throw usageError(
            password === ''
                ? '--password-stdin: standard input is empty'
                : '--password-stdin: a password must be one line'
        );
    }
    return password;
}
