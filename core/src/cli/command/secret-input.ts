/** A password from standard input: in an argument, every process of the machine could read it. */
import { Complaint, misuse } from './command-error.ts';

const longest = 4096;

/** All of standard input but its last line break. @throws Complaint of misuse when nobody pipes anything in */
export async function readPassword(
    input: NodeJS.ReadStream | AsyncIterable<Buffer> = process.stdin
): Promise<string> {
    if ('isTTY' in input && input.isTTY) {
        throw misuse(
            '--password-stdin reads what is piped in, so that no password is shown on the screen: put one in a file that only you can read, and add `< file`'
        );
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of input as AsyncIterable<Buffer>) {
        size += chunk.length;
        chunks.push(chunk);
        if (size > longest) {
            throw new Complaint('The password on standard input is too long');
        }
    }
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let password: string;
    try {
        password = text.decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
    } catch {
        throw new Complaint('The password on standard input is not UTF-8');
    }
    if (password === '' || /[\n\0]/.test(password)) {
        throw misuse(
            password === ''
                ? '--password-stdin: there is nothing on standard input'
                : '--password-stdin: a password is one line'
        );
    }
    return password;
}
