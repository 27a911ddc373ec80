/** The command line of a sandbox: what a program in it sees, and what it may do. */

/** A folder or file that a program in the sandbox sees. */
export interface Bind {
    readonly source: string;
    readonly target: string;
    readonly writable?: boolean;
}

/** A program in a sandbox. */
export interface Sandboxed {
    /** Folder with the `passwd` and `group` that programs see. */
    readonly accounts: string;
    readonly binds: readonly Bind[];
    /** Inside the sandbox. */
    readonly cwd: string;
    readonly network: boolean;
    readonly command: readonly string[];
}

/** Where the checkout, or the release, lies inside the sandbox. */
export const appFolder = '/app';
/** Where the cache of the project lies inside the sandbox. */
export const cacheFolder = '/cache';

/** Of `/etc`, a program sees what names, certificates and times need. */
const readable = [
    '/etc/alternatives',
    '/etc/ssl',
    '/etc/ca-certificates',
    '/etc/resolv.conf',
    '/etc/hosts',
    '/etc/nsswitch.conf',
    '/etc/localtime',
    '/etc/ld.so.cache'
];

/**
 * Arguments of bwrap(1): namespaces of its own for processes, mounts, users, names and control groups, no right of the kernel, and nothing of the
 * machine but `/usr`. The environment is not here: it is that of bwrap, which passes it on.
 */
export function sandboxArgs({ accounts, binds, cwd, network, command }: Sandboxed): readonly string[] {
    return [
        '--unshare-all',
        ...(network ? ['--share-net'] : []),
        '--die-with-parent',
        '--new-session',
        '--cap-drop',
        'ALL',
        '--hostname',
        'sandbox',
        ...['--ro-bind', '/usr', '/usr'],
        ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
        ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
        ...readable.flatMap((path) => ['--ro-bind-try', path, path]),
        ...['passwd', 'group'].flatMap((name) => ['--ro-bind', `${accounts}/${name}`, `/etc/${name}`]),
        ...binds.flatMap(({ source, target, writable = false }) => [
            writable ? '--bind' : '--ro-bind',
            source,
            target
        ]),
        '--chdir',
        cwd,
        '--',
        ...command
    ];
}
