/** The options of a program: which are refused, and how limits are set. */
import { errors, type GroupLimits, type SpawnOptions } from '@portico/sdk';

import { findProgram } from './path.ts';

const longestSeconds = 86_400;
const refusedNames = /^(PATH|NODE_OPTIONS|LD_.*|PORTICO_.*)$/;
const leastOfGroup = { memoryBytes: 1024 * 1024, cpuPercent: 1, processes: 1 } as const;
const mostFiles = 16;
const mostFileBytes = 1024 * 1024;
/** A name without a folder; neither `.` nor `..`. */
const fileForm = /^(?!\.{1,2}$)[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$/;
/** What `setpriv` is told. It must come after a change of the account, which clears it. */
export const endWithPanel = '--pdeathsig=KILL';
const limitFlags = {
    memoryBytes: '--as',
    cpuSeconds: '--cpu',
    processes: '--nproc',
    openFiles: '--nofile',
    fileBytes: '--fsize'
} as const;

/** Checks a program, its arguments and options. @throws TypeError that names what is wrong */
export function checkProgram(file: unknown, args: unknown, options: SpawnOptions): void {
    if (
        typeof file !== 'string' ||
        !Array.isArray(args) ||
        [file, ...(args as unknown[])].some((each) => typeof each !== 'string' || each.includes('\0'))
    ) {
        throw new TypeError('A program and its arguments are texts without zero bytes');
    }
    const name = Object.keys(options.env ?? {}).find(
        (key) => refusedNames.test(key) || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)
    );
    if (name !== undefined) {
        throw new TypeError(`The environment variable ${JSON.stringify(name)} is not a plugin's to set`);
    }
    const { timeoutSeconds, cwd, umask = 0 } = options;
    if (timeoutSeconds !== undefined && !(timeoutSeconds > 0 && timeoutSeconds <= longestSeconds)) {
        throw new TypeError(`timeoutSeconds is more than 0 and at most ${longestSeconds}`);
    }
    if (cwd !== undefined && !cwd.startsWith('/')) {
        throw new TypeError('cwd is an absolute path');
    }
    if (!(Number.isInteger(umask) && umask >= 0 && umask <= 0o777)) {
        throw new TypeError('umask is a whole number from 0 to 0o777');
    }
    checkGroup(options.limits?.group ?? {});
    checkPrivateFiles(options);
    if (options.isolate !== undefined && JSON.stringify(options.isolate) !== '{"network":false}') {
        throw new TypeError('isolate is { network: false }');
    }
}

function checkPrivateFiles({ privateFiles = {}, cwd }: SpawnOptions): void {
    const files = Object.entries(privateFiles) as [string, unknown][];
    if (files.length > 0 && cwd !== undefined) {
        throw new TypeError('privateFiles bring a working folder of their own: leave cwd out');
    }
    if (
        files.length > mostFiles ||
        files.some(([name, text]) => !fileForm.test(name) || typeof text !== 'string') ||
        Buffer.byteLength(files.map(([, text]) => text).join('')) > mostFileBytes
    ) {
        throw new TypeError(
            `privateFiles are at most ${mostFiles} texts by plain file name, ${mostFileBytes} bytes in all`
        );
    }
}

function checkGroup(limits: GroupLimits): void {
    for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
        const least = Object.hasOwn(leastOfGroup, name) ? leastOfGroup[name as keyof GroupLimits] : NaN;
        if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= least)) {
            throw new TypeError(
                `limits.group has memoryBytes from ${leastOfGroup.memoryBytes}, cpuPercent and processes from 1, as whole numbers`
            );
        }
    }
}

/** A program with its arguments. */
export interface Command {
    readonly path: string;
    readonly args: readonly string[];
}

/**
 * The command with what Node cannot set for a program: its umask, and the limits of its processes. `sh` with a fixed script and `prlimit` set them and
 * then become the program (exec). @throws TOOL_MISSING 50302 without prlimit
 */
export async function withAttributes(
    command: Command,
    {
        umask,
        limits = {}
    }: { readonly umask: number | undefined; readonly limits: SpawnOptions['limits'] | undefined }
): Promise<Command> {
    return withUmask(await withLimits(command, limits), umask);
}

/**
 * The command of a program that the kernel ends with the panel, also where that is killed: one that says nothing, as restic while it restores, would
 * not see that its pipes are closed, and go on. `setpriv` asks for it and then becomes the program (exec). A machine without `setpriv` does without.
 */
export async function endingWithPanel({ path, args }: Command): Promise<Command> {
    const setpriv = await findProgram('setpriv');
    return setpriv === null ? { path, args } : { path: setpriv, args: [endWithPanel, '--', path, ...args] };
}

function withUmask({ path, args }: Command, umask: number | undefined): Command {
    const script = 'umask "$1" && shift && exec "$@"';
    return umask === undefined
        ? { path, args }
        : { path: '/bin/sh', args: ['-c', script, 'portico-program', umask.toString(8), path, ...args] };
}

async function withLimits(
    { path, args }: Command,
    { group: _group, ...limits }: NonNullable<SpawnOptions['limits']>
): Promise<Command> {
    const flags = Object.entries(limits)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => {
            if (!Object.hasOwn(limitFlags, name) || !Number.isInteger(value) || value < 0) {
                throw new TypeError(`limits.${name} is a whole number`);
            }
            return `${limitFlags[name as keyof typeof limitFlags]}=${value}`;
        });
    if (flags.length === 0) {
        return { path, args };
    }
    const prlimit = await findProgram('prlimit');
    if (prlimit === null) {
        throw errors.toolMissing('prlimit', 'apt-get install util-linux');
    }
    return { path: prlimit, args: [...flags, '--', path, ...args] };
}
