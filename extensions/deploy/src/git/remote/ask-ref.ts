/** Asks a git server over HTTP which commit a name stands for, by version 2 of git's protocol: one request, where git itself needs two programs. */
import { readBytes } from '../answers.ts';
import { authorizationOf, type Credentials } from '../credentials.ts';
import { commitForm } from './refs.ts';

/** Where it is asked. */
interface Place {
    readonly address: { readonly url: string };
    readonly credentials: Credentials | null;
}

const seconds = 20;
const mostBytes = 2 ** 20;
const lengthDigits = 4;
const mediaType = 'application/x-git-upload-pack';

/** A line of the protocol: its length, which counts itself, and its text. */
const line = (text: string): string =>
    (Buffer.byteLength(text) + lengthDigits).toString(16).padStart(lengthDigits, '0') + text;
const [end, separator] = ['0000', '0001'];

/**
 * The commit that a name of a branch or tag stands for; null when the repository has none of that name.
 *
 * @throws Error for everything that is no answer of version 2: then git can be asked, which knows older servers and says what is wrong; TimeoutError
 */
export async function askRef(
    fetch: typeof globalThis.fetch,
    { address, credentials }: Place,
    ref: string,
    signal: AbortSignal
): Promise<string | null> {
    const answer = await fetch(`${address.url.replace(/\/+$/, '')}/git-upload-pack`, {
        method: 'POST',
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1_000)]),
        headers: {
            'git-protocol': 'version=2',
            'content-type': `${mediaType}-request`,
            accept: `${mediaType}-result`,
            ...authorizationOf(credentials)
        },
        body: `${line('command=ls-refs\n')}${separator}${line('peel\n')}${line(`ref-prefix ${ref}\n`)}${end}`
    });
    const body = answer.ok ? await readBytes(answer, mostBytes) : null;
    if (body === null || answer.headers.get('content-type') !== `${mediaType}-result`) {
        await answer.body?.cancel().catch(() => undefined);
        throw new Error(`The server does not list names (${answer.status})`);
    }
    for (const text of linesOf(body)) {
        const [commit = '', name, ...more] = text.trimEnd().split(' ');
        if (!commitForm.test(commit)) {
            throw new Error('The server lists no commits');
        }
        if (name === ref) {
            // A tag with a text of its own tells what it names, too.
            const [, peeled] = /^peeled:([0-9a-f]+)$/.exec(more.at(-1) ?? '') ?? [];
            return peeled ?? commit;
        }
    }
    return null;
}

/** The lines of an answer up to its end. @throws Error for an answer that is cut, or of another form */
function* linesOf(body: Buffer): Generator<string> {
    for (let at = 0; ;) {
        const length = Number.parseInt(body.toString('latin1', at, at + lengthDigits), 16);
        if (length === 0) {
            return;
        }
        if (!(length > lengthDigits) || at + length > body.length) {
            throw new Error('The answer is none of the protocol');
        }
        yield body.toString('utf8', at + lengthDigits, at + length);
        at += length;
    }
}
