/** What the words of restic, ssh and rclone mean. They are those of restic 0.14 to 0.17. */
import { errors, type Exit } from '@portico/sdk';

import { fail } from '../errors.ts';
import { hide } from '../targets/target.ts';

const meanings: readonly (readonly [RegExp, (message: string) => Error])[] = [
    [/wrong password or no key found/, () => fail.PASSWORD_WRONG()],
    // First: it names times and processes, whose numbers could be taken for answers of a server.
    [/already locked/, (message) => fail.LOCKED({ message })],
    [/no space left on device|disk quota exceeded|insufficient storage/i, () => errors.storageFull()],
    [
        /Host key verification failed|HOST IDENTIFICATION HAS CHANGED|host key is known|knownhosts: key/,
        () => fail.HOST_KEY()
    ],
    [
        /permission denied|access ?denied|SignatureDoesNotMatch|InvalidAccessKeyId|unable to authenticate|\b40[13]\b[^\n]*(Unauthorized|Forbidden|response)|response \(40[13]\)|(Unauthorized|Forbidden)\b/i,
        (message) => fail.TARGET_REFUSED({ message })
    ],
    [
        /dial tcp|connection (refused|reset|timed out|closed)|no such host|could not resolve|i\/o timeout|TLS handshake|x509:|server misbehaving|no route to host|network is unreachable|unexpected EOF|response (?:unexpected: )?\(?5\d\d\b|\b50[0234]:? (?:Internal|Bad|Service|Gateway|Slow)/i,
        (message) => fail.TARGET_UNREACHABLE({ message })
    ],
    [
        /no matching ID found|no snapshot found|not found in snapshot|path .* not found|cannot dump file/,
        () => errors.notFound('There is no such snapshot, or nothing at that path in it')
    ],
    [/config file already exists|already initialized/, () => errors.conflict('path')],
    [
        /Is there a repository at|unable to open config file|repository does not exist/,
        () => fail.NOT_A_REPOSITORY()
    ]
];

/** The error for what a program said when it failed. @param secrets - texts that the message must not show */
export function failureOf(said: string, exit: Exit, secrets: readonly string[]): Error {
    const lines = hide(said, secrets)
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    const message = (
        lines.find((line) => /^Fatal:|already locked/.test(line)) ??
        lines.findLast((line) => !line.startsWith('Is there a repository')) ??
        `restic ended with ${exit.code ?? exit.signal ?? 'no code'}`
    )
        .replace(/^Fatal: /, '')
        .slice(0, 1_000);
    if (exit.timedOut) {
        return fail.TARGET_UNREACHABLE({ message: 'it took too long' });
    }
    const text = lines.join('\n');
    const [, make] = meanings.find(([pattern]) => pattern.test(text)) ?? [];
    return make?.(message) ?? fail.RESTIC_FAILED({ message });
}
