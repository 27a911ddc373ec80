/** Attempts to get at what a site must not reach, made by programs that run as the account of the site, or as that of the engine. */
import { isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** What a program could do as an account. */
export interface AccountAttempts {
    readonly uid: number;
    readonly groups: readonly number[];
    /** Of the given paths, those that it could read or list. */
    readonly read: readonly string[];
    /** Of the given sockets, those that it could connect to. */
    readonly connected: readonly string[];
}

const seconds = 15;

/** PHP on the command line, without any INI file: what it cannot do, the system forbids. */
const script = `
$input = json_decode(stream_get_contents(STDIN), true);
$read = [];
foreach ($input['paths'] as $path) {
    if (is_dir($path) ? @scandir($path) !== false : (@fopen($path, 'r') !== false)) { $read[] = $path; }
}
$connected = [];
foreach ($input['sockets'] as $path) {
    if (@stream_socket_client('unix://' . $path, $code, $text, 2) !== false) { $connected[] = $path; }
}
$status = file_get_contents('/proc/self/status');
preg_match('/^Uid:\\s+(\\d+)/m', $status, $uid);
preg_match('/^Groups:[ \\t]*(.*)$/m', $status, $groups);
echo json_encode([
    'uid' => (int) $uid[1],
    'groups' => array_map('intval', preg_split('/\\s+/', trim($groups[1]), -1, PREG_SPLIT_NO_EMPTY)),
    'read' => $read,
    'connected' => $connected,
]);
`;

/** Tries as an account. @throws TOOL_MISSING 50302; Error when the program fails */
export async function tryAs(
    ctx: Ctx,
    cli: string,
    user: string,
    { paths = [], sockets = [] }: { readonly paths?: readonly string[]; readonly sockets?: readonly string[] }
): Promise<AccountAttempts> {
    const { code, stdout, stderr } = await ctx.exec(cli, ['-n', '-r', script], {
        user,
        cwd: '/',
        stdin: JSON.stringify({ paths, sockets }),
        timeoutSeconds: seconds
    });
    if (code !== 0) {
        throw new Error(`${cli} ended with ${code ?? 'a signal'}: ${stderr.slice(0, 500)}`);
    }
    return JSON.parse(stdout) as AccountAttempts;
}

/** Which of these names lie below a folder. */
export async function existing(
    ctx: Ctx,
    folder: string,
    names: readonly string[]
): Promise<readonly string[]> {
    const files = ctx.files(folder);
    const found = await Promise.all(
        names.map((name) =>
            files.stat(name).then(
                () => name,
                (error: unknown) => {
                    if (isFailure(error)) {
                        return null;
                    }
                    throw error;
                }
            )
        )
    );
    return found.filter((name) => name !== null);
}
