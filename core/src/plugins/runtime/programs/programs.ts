/** Programs that a plugin runs: as arguments and never through a shell, in an environment made from scratch, as a group that ends with the plugin. */
import { type ChildProcess, spawn as start } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

import {
    type Child,
    errors,
    type ExecOptions,
    type ExecResult,
    type Exit,
    type SpawnOptions
} from '@portico/sdk';
import { boundaryErrors, type Grants, type Owned, type Scope } from '@portico/sdk/host';

import { findAccount, type MachineAccount } from './machine-accounts.ts';
import { checkProgram, withLimits } from './options.ts';
import { findProgram, fixedPath } from './path.ts';
import { marker, ProcessGroup } from './process-group.ts';
import { Terminal, terminalTools } from './terminal.ts';

export interface ProgramsOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    /** Where programs run unless they say otherwise. */
    readonly folder: string;
    /** Puts a use on record. */
    used(file: string, args: readonly string[], user: string | null): void;
}

interface Running {
    readonly child: ChildProcess & { readonly pid: number };
    readonly terminal: Terminal | null;
    readonly group: ProcessGroup;
    readonly exited: Promise<Exit>;
    readonly program: string;
    readonly user: string | null;
    /** Ends everybody; what was said before can still be read. */
    kill(): Promise<void>;
    /** Ends everybody, and nothing is read any more. */
    discard(): Promise<void>;
}

const execSeconds = 60;
const outputBytes = 1024 * 1024;
/** How long pipes may stay open after the program itself has ended: a descendant may hold them. */
const pipeGraceMs = 500;

export class Programs {
    readonly #options: ProgramsOptions;
    readonly #running = new Set<Running>();

    constructor(options: ProgramsOptions) {
        this.#options = options;
    }

    async exec(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
        const { stdin, maxOutputBytes = outputBytes, ...rest } = options;
        const running = await this.#start(file, args, { timeoutSeconds: execSeconds, ...rest });
        const { child } = running;
        const [out, err] = [
            collect(child.stdout as Readable, maxOutputBytes),
            collect(child.stderr as Readable, maxOutputBytes)
        ];
        child.stdin?.end(stdin ?? '');
        const exit = await running.exited;
        await Promise.race([Promise.all([out.done, err.done]), wait(pipeGraceMs, undefined, { ref: false })]);
        await running.discard();
        return {
            ...exit,
            stdout: out.text(),
            stderr: err.text(),
            truncated: out.truncated() || err.truncated()
        };
    }

    async spawn(file: string, args: readonly string[], options: SpawnOptions = {}): Promise<Child> {
        const running = await this.#start(file, args, options);
        const { child, terminal, group, exited } = running;
        let hasEnded = false;
        void exited.then(() => {
            hasEnded = true;
        });
        return {
            pid: child.pid,
            stdin: Writable.toWeb(terminal?.input ?? (child.stdin as Writable)) as WritableStream<Uint8Array>,
            stdout: Readable.toWeb(terminal?.output ?? (child.stdout as Readable)) as never,
            stderr: Readable.toWeb(child.stderr ?? Readable.from([])) as never,
            exited,
            kill: async (signal = 'SIGTERM') => void group.signal(signal),
            async resize(columns, rows) {
                if (terminal === null) {
                    throw new TypeError('Only a terminal has a size');
                }
                if (!hasEnded) {
                    terminal.resize({ columns, rows });
                }
            },
            [Symbol.asyncDispose]: () => running.discard()
        };
    }

    /** Ends what runs under a grant that is gone. */
    async revoke(): Promise<void> {
        const { grants } = this.#options;
        const gone = [...this.#running].filter(
            ({ program, user }) =>
                !grants.has('exec', program) || (user !== null && !grants.has('users', user))
        );
        await Promise.all(gone.map((running) => running.discard()));
    }

    async #start(file: string, args: readonly string[], options: SpawnOptions): Promise<Running> {
        const { grants, scope, folder } = this.#options;
        checkProgram(file, args, options);
        grants.require('exec', file);
        const account = options.user === undefined ? null : await this.#account(options.user);
        const path = await findProgram(file);
        if (path === null) {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        const limited = await withLimits(path, args, options.limits ?? {});
        const tools = options.pty === undefined ? null : await terminalTools();
        const mark = randomUUID();
        options.signal?.throwIfAborted();
        // From here to the start of the program nothing waits: see the terminal.
        const terminal =
            tools === null || options.pty === undefined ? null : new Terminal(tools, options.pty, account);
        const command = terminal?.command(limited.path, limited.args) ?? limited;
        const child = start(command.path, command.args, {
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
            stdio: terminal?.stdio ?? ['pipe', 'pipe', 'pipe'],
            ...(account === null ? {} : { uid: account.uid, gid: account.gid })
        });
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
        this.#options.used(file, args, options.user ?? null);
        return this.#own(child as Running['child'], terminal, mark, file, options, scope);
    }

    #own(
        child: Running['child'],
        terminal: Terminal | null,
        mark: string,
        program: string,
        options: SpawnOptions,
        scope: Scope
    ): Running {
        const group = new ProcessGroup(child, mark);
        let timedOut = false;
        let ending: Promise<void> | null = null;
        const kill = (): Promise<void> =>
            (ending ??= group
                .end(terminal === null ? 'SIGTERM' : 'SIGHUP')
                .finally(() => terminal?.hangUp()));
        const timer =
            options.timeoutSeconds === undefined
                ? undefined
                : setTimeout(() => {
                      timedOut = true;
                      void kill().catch(() => undefined);
                  }, options.timeoutSeconds * 1000);
        const aborted = (): void => void kill().catch(() => undefined);
        options.signal?.addEventListener('abort', aborted, { once: true });
        const exited = new Promise<Exit>((resolve) => {
            child.once('exit', (code, signal) => {
                clearTimeout(timer);
                options.signal?.removeEventListener('abort', aborted);
                resolve({ code, signal, timedOut });
            });
        });
        const closed = Promise.all([once(child, 'close'), terminal?.closed]);
        const discard = async (): Promise<void> => {
            try {
                await kill();
                await exited;
            } finally {
                await terminal?.close();
                child.stdout?.destroy();
                child.stderr?.destroy();
                forget();
            }
        };
        const owned: Owned = scope.own('process', `${program} (${child.pid})`, discard);
        const running: Running = {
            child,
            terminal,
            group,
            exited,
            program,
            user: options.user ?? null,
            kill,
            discard
        };
        const forget = (): void => {
            owned.drop();
            this.#running.delete(running);
        };
        this.#running.add(running);
        // Who is left when the program itself is gone: in a terminal nobody stays, elsewhere it is the plugin's until its end.
        const settle = async (): Promise<void> => {
            await exited;
            const isOver =
                terminal !== null || ending !== null ? await kill().then(() => true) : !(await group.left());
            await closed;
            if (isOver) {
                forget();
            }
        };
        void settle().catch(() => undefined);
        return running;
    }

    async #account(user: string): Promise<MachineAccount | null> {
        this.#options.grants.require('users', user);
        const account = await findAccount(user);
        if (account === null) {
            throw errors.notFound(`This machine has no account ${user}`);
        }
        if (process.getuid?.() === account.uid) {
            return null;
        }
        if (process.getuid?.() !== 0) {
            throw boundaryErrors.CAPABILITY_MISSING(
                { plugin: this.#options.grants.plugin, capability: `users: ${user}` },
                { message: `Only a panel that runs as root can run programs as ${user}` }
            );
        }
        return account;
    }
}

/** Reads to the end, and keeps what fits. */
function collect(
    stream: Readable,
    limit: number
): { readonly done: Promise<void>; text(): string; truncated(): boolean } {
    const chunks: Buffer[] = [];
    let kept = 0;
    let dropped = false;
    stream.on('data', (chunk: Buffer) => {
        const room = chunk.subarray(0, limit - kept);
        dropped ||= room.length < chunk.length;
        if (room.length > 0) {
            kept += room.length;
            chunks.push(room);
        }
    });
    const done = new Promise<void>((resolve) => stream.once('close', resolve));
    stream.on('error', () => undefined);
    return { done, text: () => new TextDecoder().decode(Buffer.concat(chunks)), truncated: () => dropped };
}
