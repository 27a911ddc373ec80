/** Programs in a sandbox that bubblewrap makes. */
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute } from 'node:path';

import { errors } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';
import { problemOfWritable, type Sandbox } from '../../tasks/input/sandbox-input.ts';
import type { Account } from './accounts.ts';

/** A program with its arguments. */
export interface Program {
    readonly file: string;
    readonly args: readonly string[];
}

/** A program as it is started. */
export interface SandboxedProgram extends Program {
    /** Takes the place of that of the task; null: it stays. */
    readonly cwd: string | null;
    /** Variables that take the place of others. */
    readonly env: Readonly<Record<string, string>>;
}

/** What a sandbox is made for. */
export interface SandboxOptions {
    /** Null: none. */
    readonly sandbox: Sandbox | null;
    readonly account: Account;
    /** The file of the script that runs; null of a command. */
    readonly script: string | null;
    /** Working folder of the task; null: the home. */
    readonly cwd: string | null;
}

const tool = 'bwrap';
/** How bubblewrap is installed. */
export const sandboxInstall = 'apt-get install bubblewrap';
/** Always empty: homes, temporary files, sockets and keys of running services. */
const emptied = ['/tmp', '/var/tmp', '/run', '/home', '/root', '/dev/shm'];
/** Homes of service accounts that hold programs or system files, not what belongs to the account. */
const systemFolders = /^\/($|(bin|boot|dev|etc|lib|lib32|lib64|proc|sbin|sys|usr)(\/|$))/;
/** Names are still resolved where the network is shared. */
const resolver = '/run/systemd/resolve/stub-resolv.conf';

/** Wraps a program, where there is a sandbox. @throws TOOL_MISSING 50302 without bubblewrap, VALIDATION_FAILED 40001 for a folder that became one of the panel's */
export async function inSandbox(
    ctx: Ctx,
    program: Program,
    options: SandboxOptions
): Promise<SandboxedProgram> {
    const { sandbox, account, script, cwd } = options;
    if (sandbox === null) {
        return { ...program, cwd: null, env: {} };
    }
    const own = await ownFolders(ctx);
    const writable = await writableFolders(sandbox, own);
    const hidden = await reachable([...emptied, ...privateHome(account.home), ...own], account);
    const home = hidden.includes(account.home) || isBelow(account.home, hidden) ? account.home : '/tmp';
    const args = [
        ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
        ...(sandbox.network ? ['--share-net'] : []),
        ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
        ...hidden.flatMap((folder) => ['--tmpfs', folder]),
        ...(home === '/tmp' ? [] : ['--dir', home]),
        ...(sandbox.network ? ['--ro-bind-try', resolver, resolver] : []),
        ...writable.flatMap((folder) => ['--bind', folder, folder]),
        ...(script === null ? [] : ['--ro-bind', script, script]),
        ...['--chdir', cwd ?? home, '--', program.file, ...program.args]
    ];
    return { file: tool, args, cwd: '/', env: { HOME: home, TMPDIR: '/tmp' } };
}

/** Proves that this machine can make a sandbox, as the account. @throws TOOL_MISSING 50302 */
export async function trySandbox(ctx: Ctx, sandbox: Sandbox, account: Account): Promise<void> {
    const { file, args } = await inSandbox(
        ctx,
        { file: 'true', args: [] },
        { sandbox: { ...sandbox, writable: [] }, account, script: null, cwd: '/' }
    );
    const { code, stderr } = await ctx.exec(file, [...args], {
        cwd: '/',
        ...(account.own ? {} : { user: account.name })
    });
    if (code !== 0) {
        throw errors.toolMissing(`a working ${tool} (${stderr.trim().slice(0, 200)})`, sandboxInstall);
    }
}

/** The folders of the panel, by every name that they have. */
export async function ownFolders(ctx: Ctx): Promise<readonly string[]> {
    const folders = [...(await ctx.panel.folders()), ctx.dataDir];
    const real = await Promise.all(folders.map((folder) => realpath(folder).catch(() => folder)));
    return [...new Set([...folders, ...real])];
}

/** The folders by their real paths: a link must not lead into the panel. */
async function writableFolders({ writable }: Sandbox, own: readonly string[]): Promise<readonly string[]> {
    const real = await Promise.all(writable.map((folder) => realpath(folder)));
    for (const folder of real) {
        const problem = problemOfWritable(folder, own);
        if (problem !== null) {
            throw errors.invalid([{ path: 'sandbox.writable', message: `${folder} ${problem}` }]);
        }
    }
    return real;
}

function privateHome(home: string): string[] {
    return systemFolders.test(home) || !isAbsolute(home) ? [] : [home];
}

/** Folders that there are and that the account can get to; the others it cannot see anyway. Outer folders come first, without those inside them. */
async function reachable(folders: readonly string[], account: Account): Promise<readonly string[]> {
    const real = await Promise.all(folders.map((folder) => realpath(folder).catch(() => null)));
    const sorted = [...new Set(real)].filter((each) => each !== null);
    const kept: string[] = [];
    for (const folder of sorted.sort((one, other) => one.length - other.length)) {
        if (!isBelow(folder, kept) && (await canEnter(dirname(folder), account))) {
            kept.push(folder);
        }
    }
    return kept;
}

function isBelow(path: string, folders: readonly string[]): boolean {
    return folders.some((folder) => path.startsWith(`${folder}/`));
}

/** Whether an account may pass through a folder and all above it, by their permission bits. */
async function canEnter(folder: string, { own, uid, gid }: Account): Promise<boolean> {
    if (own) {
        return access(folder, constants.X_OK).then(
            () => true,
            () => false
        );
    }
    const { mode, uid: owner, gid: group } = await stat(folder);
    const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
    return (mode & bit) !== 0 && (folder === '/' || canEnter(dirname(folder), { own, uid, gid } as Account));
}
