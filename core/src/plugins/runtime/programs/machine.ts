/** Starts programs of this machine: found on a fixed path, without a shell, in an environment made from scratch, and ended with all their descendants. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Readable, type Writable } from 'node:stream';

import { errors, type Exit, type SpawnOptions, type Usage } from '@portico/sdk';
import { boundaryErrors } from '@portico/sdk/host';

import type { ControlGroup } from '../../../platform/process/control-group/control-group.ts';
import { ControlGroups } from '../../../platform/process/control-group/control-groups.ts';
import { findAccount, type MachineAccount } from './machine-accounts.ts';
import { type Command, endingWithPanel, withAttributes } from './options.ts';
import { findProgram, fixedPath } from './path.ts';
import { PrivateFiles } from './private-files.ts';
import { makeGroup, waiting, waitingOn } from './processes/group.ts';
import { isolated } from './processes/isolation.ts';
import { marker, ProcessGroup } from './processes/process-group.ts';
import { lookAtProcess } from './processes/process-list.ts';
import { Terminal, type TerminalTools, terminalTools } from './terminal.ts';

/** A program to start. The caller has checked the plugin's grants. */
export interface ProgramCommand {
    readonly plugin: string;
    readonly file: string;
    readonly args: readonly string[];
    readonly options: SpawnOptions;
    /** Absolute path of its home, which is also its working folder unless the options say otherwise. */
    readonly folder: string;
}

/** A program that was started, with all its descendants. */
export interface RunningProgram {
    readonly pid: number;
    readonly stdin: Writable;
    readonly stdout: Readable;
    readonly stderr: Readable;
    /** How the program itself ended; descendants may still run. */
    readonly exited: Promise<Omit<Exit, 'timedOut'>>;
    signal(name: NodeJS.Signals): void;
    /** @throws TypeError when it has no terminal */
    resize(columns: number, rows: number): void;
    /** What it used with its descendants; null without a control group. */
    usage(): Usage | null;
    /** Ends the program and its descendants. Their output can still be read. @throws Error that names the processes that do not end */
    kill(): Promise<void>;
    /** The same at the abort of its signal: a terminal closes first, so that nothing that was typed ahead is run. */
    abort(): Promise<void>;
    /** Ends the program and its descendants and closes the streams. */
    discard(): Promise<void>;
    /** Resolves when the program has ended and its output is closed; with false when a descendant still runs. */
    settled(): Promise<boolean>;
}

/** Starts programs; tests replace it. */
export interface ProgramsPort {
    /** Starts a program. @throws TOOL_MISSING 50302 when the machine has no such program; NOT_FOUND 40400 without the account or folder */
    start(command: ProgramCommand): Promise<RunningProgram>;
}

/** How long the processes of a terminal may take to end after a hang-up: its user is gone, or may not go on. */
const terminalPatienceMs = 400;

type StartedChild = ChildProcess & { readonly pid: number };

/** The programs of this machine. */
export class MachinePrograms implements ProgramsPort {
    readonly #groups: ControlGroups;
    readonly #files: PrivateFiles;

    constructor(groups = new ControlGroups(), files = new PrivateFiles()) {
        this.#groups = groups;
        this.#files = files;
    }

    async start(command: ProgramCommand): Promise<RunningProgram> {
        const { plugin, file, args, options } = command;
        const account = options.user === undefined ? null : await accountOf(options.user, plugin);
        const path = await findProgram(file);
        if (path === null) {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        const attributed = await withAttributes(
            { path, args },
            { umask: options.umask, limits: options.limits }
        );
        const isolate = options.isolate !== undefined;
        const prepared = {
            command: isolate ? await isolated(attributed, account) : await endingWithPanel(attributed),
            account,
            changesAccount: !isolate,
            tools: options.pty === undefined ? null : await terminalTools()
        };
        await this.#files.sweep();
        await using undo = new AsyncDisposableStack();
        const group = await makeGroup(this.#groups, options.limits?.group);
        undo.defer(async () => void (await group?.remove()));
        const files = await this.#write(options.privateFiles, account);
        undo.defer(() => files?.remove());
        options.signal?.throwIfAborted();
        const folder = files?.folder ?? command.folder;
        const started = await startProgram({ ...command, folder }, { ...prepared, group });
        undo.move();
        return new MachineProgram({ ...started, group, files });
    }

    async #write(
        files: SpawnOptions['privateFiles'] = {},
        account: MachineAccount | null
    ): Promise<ProgramFiles | null> {
        if (Object.keys(files).length === 0) {
            return null;
        }
        const folder = await this.#files.write(files, account);
        return { folder, remove: () => this.#files.remove(folder) };
    }
}

/** The programs of this machine. */
export const machinePrograms: ProgramsPort = new MachinePrograms();

/** What a program is started with. */
interface Prepared {
    readonly command: Command;
    /** Null for the panel's own account. */
    readonly account: MachineAccount | null;
    /** Null without a terminal. */
    readonly tools: TerminalTools | null;
    /** False when the command itself changes to the account. */
    readonly changesAccount: boolean;
    readonly group: ControlGroup | null;
}

/** The private files of one program. */
interface ProgramFiles {
    readonly folder: string;
    remove(): Promise<void>;
}

/** A program that runs, and what belongs to it. */
interface Started {
    readonly child: StartedChild;
    readonly terminal: Terminal | null;
    readonly mark: string;
    /** In ticks of the machine's clock. */
    readonly startedAt: number;
}

async function startProgram(
    { options, folder }: ProgramCommand,
    { command, account, changesAccount, tools, group }: Prepared
): Promise<Started> {
    const mark = randomUUID();
    // No `await` from here to the start of the program: another child could inherit the terminal (see `terminal.ts`).
    const terminal =
        tools === null || options.pty === undefined ? null : new Terminal(tools, options.pty, account);
    const shown = terminal?.command(command.path, command.args) ?? command;
    const { path, args } = group === null ? shown : waiting(shown, options.env);
    const child = spawn(path, args, {
        cwd: options.cwd ?? folder,
        env: {
            ...(terminal === null ? {} : { TERM: 'xterm-256color' }),
            ...(process.env['TZ'] === undefined ? {} : { TZ: process.env['TZ'] }),
            ...options.env,
            PATH: fixedPath,
            HOME: options.env?.['HOME'] ?? account?.home ?? folder,
            LANG: options.env?.['LANG'] ?? 'C.UTF-8',
            [marker]: mark
        },
        detached: true,
        shell: false,
        stdio: [
            ...(terminal?.stdio ?? (['pipe', 'pipe', 'pipe'] as const)),
            ...(group === null ? [] : ['pipe' as const])
        ],
        ...(account === null || !changesAccount ? {} : { uid: account.uid, gid: account.gid })
    });
    // Nothing has waited for it yet, so it is there also when it has ended already.
    const startedAt = lookAtProcess(child.pid ?? 0)?.started ?? 0;
    terminal?.handOver();
    child.stdin?.on('error', () => undefined);
    const failed = once(child, 'error').then(([error]) => error as NodeJS.ErrnoException);
    if (child.pid === undefined) {
        const error = await failed;
        await terminal?.close();
        throw error.code === 'ENOENT'
            ? errors.notFound(`There is no folder ${options.cwd ?? folder}`)
            : error;
    }
    failed.catch(() => undefined);
    const started = { child: child as StartedChild, terminal, mark, startedAt };
    if (group !== null) {
        await enter(group, started);
    }
    return started;
}

/** Moves a program that waits into its group, and lets it go on. */
async function enter(group: ControlGroup, { child, terminal, mark, startedAt }: Started): Promise<void> {
    const gate = child.stdio[waitingOn] as Writable;
    gate.on('error', () => undefined);
    try {
        await group.add(child.pid);
        gate.end('\n');
    } catch (error) {
        await new ProcessGroup(child, mark, startedAt).end('SIGKILL');
        await terminal?.close();
        throw error;
    }
}

/** What ends with a program. */
interface Belongings {
    readonly group: ControlGroup | null;
    readonly files: ProgramFiles | null;
}

class MachineProgram implements RunningProgram {
    readonly pid: number;
    readonly stdin: Writable;
    readonly stdout: Readable;
    readonly stderr: Readable;
    readonly exited: Promise<Omit<Exit, 'timedOut'>>;
    readonly #terminal: Terminal | null;
    readonly #group: ProcessGroup;
    /** Null without limits of the whole group. */
    readonly #control: ControlGroup | null;
    readonly #closed: Promise<unknown>;
    #hasEnded = false;
    #ending: Promise<void> | null = null;

    constructor({ child, terminal, mark, startedAt, group, files }: Started & Belongings) {
        this.pid = child.pid;
        this.stdin = terminal?.input ?? (child.stdin as Writable);
        this.stdout = terminal?.output ?? (child.stdout as Readable);
        this.stderr = child.stderr ?? Readable.from([]);
        this.#terminal = terminal;
        this.#group = new ProcessGroup(child, mark, startedAt);
        this.#control = group;
        this.exited = new Promise((resolve) => {
            child.once('exit', (code, signal) => {
                this.#hasEnded = true;
                const limit = group?.ranOutOfMemory() === true ? { limit: 'memory' as const } : {};
                const tell = (): void => resolve({ code, signal, ...limit });
                // The files are gone before the end is told. What cannot be removed now, the next start of the panel removes.
                void (files === null ? tell() : files.remove().then(tell, tell));
            });
        });
        this.#closed = Promise.all([once(child, 'close'), terminal?.closed]);
    }

    signal(name: NodeJS.Signals): void {
        this.#group.signal(name);
    }

    resize(columns: number, rows: number): void {
        if (this.#terminal === null) {
            throw new TypeError('Only a terminal has a size');
        }
        if (!this.#hasEnded) {
            this.#terminal.resize({ columns, rows });
        }
    }

    usage(): Usage | null {
        return this.#control?.usage() ?? null;
    }

    kill(): Promise<void> {
        return (this.#ending ??= this.#end());
    }

    async abort(): Promise<void> {
        await this.#terminal?.close();
        await this.kill();
    }

    async discard(): Promise<void> {
        try {
            await this.kill();
            await this.exited;
        } finally {
            await this.#control?.remove();
            await this.#terminal?.close();
            this.stdout.destroy();
            this.stderr.destroy();
        }
    }

    async settled(): Promise<boolean> {
        await this.exited;
        // With a terminal, descendants end with the program; without one, they may run until the plugin ends.
        const isOver =
            this.#terminal !== null || this.#ending !== null
                ? await this.kill().then(() => true)
                : !(await this.#group.left()) && (await this.#control?.remove()) !== false;
        await this.#closed;
        return isOver;
    }

    async #end(): Promise<void> {
        try {
            await (this.#terminal === null
                ? this.#group.end()
                : this.#group.end('SIGHUP', terminalPatienceMs));
        } finally {
            this.#terminal?.hangUp();
            // Descendants that cleared their environment and left the session are still in the control group.
            await this.#control?.kill();
            await this.#control?.remove();
        }
    }
}

/** The account that a program is to run as; null when that is the panel's own. @throws NOT_FOUND 40400, CAPABILITY_MISSING 50305 */
export async function accountOf(user: string, plugin: string): Promise<MachineAccount | null> {
    const account = await findAccount(user);
    if (account === null) {
        throw errors.notFound(`This machine has no account ${user}`);
    }
    if (process.getuid?.() === account.uid) {
        return null;
    }
    if (process.getuid?.() !== 0) {
        throw boundaryErrors.CAPABILITY_MISSING(
            { plugin, capability: `users: ${user}` },
            { message: `Only a panel that runs as root can run programs as ${user}` }
        );
    }
    return account;
}
