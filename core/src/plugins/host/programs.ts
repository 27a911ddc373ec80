/** Programs that a plugin runs: as arguments and never through a shell, in an environment made from scratch, as a group that ends with the plugin. */
import { spawn as start, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { errors, type Child, type ExecOptions, type ExecResult, type Exit, type SpawnOptions } from '@portico/sdk';
import { boundaryErrors, type Owned, type Scope } from '@portico/sdk/host';
import type { Grants } from './grants.ts';
import { findAccount, type MachineAccount } from './machine-accounts.ts';
import { marker, ProcessGroup } from './process-group.ts';
import { findProgram, fixedPath } from './program-path.ts';

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
    readonly group: ProcessGroup;
    readonly exited: Promise<Exit>;
    readonly program: string;
    readonly user: string | null;
    kill(): Promise<void>;
}

const execSeconds = 60;
const longestSeconds = 86_400;
const outputBytes = 1024 * 1024;
/** How long pipes may stay open after the program itself has ended: a descendant may hold them. */
const pipeGraceMs = 500;
const refusedNames = /^(PATH|NODE_OPTIONS|LD_.*|PORTICO_.*)$/;
const limitFlags = { memoryBytes: '--as', cpuSeconds: '--cpu', processes: '--nproc', openFiles: '--nofile', fileBytes: '--fsize' } as const;

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
        const [out, err] = [collect(child.stdout as Readable, maxOutputBytes), collect(child.stderr as Readable, maxOutputBytes)];
        child.stdin?.end(stdin ?? '');
        const exit = await running.exited;
        await Promise.race([Promise.all([out.done, err.done]), wait(pipeGraceMs, undefined, { ref: false })]);
        await running.kill();
        child.stdout?.destroy();
        child.stderr?.destroy();
        return { ...exit, stdout: out.text(), stderr: err.text(), truncated: out.truncated() || err.truncated() };
    }

    async spawn(file: string, args: readonly string[], options: SpawnOptions = {}): Promise<Child> {
        if (options.pty !== undefined) {
            throw errors.toolMissing('a terminal (node-pty)', 'npm install node-pty');
        }
        const running = await this.#start(file, args, options);
        const { child, group, exited } = running;
        return {
            pid: child.pid,
            stdin: Writable.toWeb(child.stdin as Writable) as WritableStream<Uint8Array>,
            stdout: Readable.toWeb(child.stdout as Readable) as never,
            stderr: Readable.toWeb(child.stderr as Readable) as never,
            exited,
            kill: async (signal = 'SIGTERM') => void group.signal(signal),
            resize: async () => {
                throw new TypeError('Only a terminal has a size');
            },
            async [Symbol.asyncDispose]() {
                await running.kill();
                await exited;
            }
        };
    }

    /** Ends what runs under a grant that is gone. */
    async revoke(): Promise<void> {
        const { grants } = this.#options;
        const gone = [...this.#running].filter(({ program, user }) => !grants.has('exec', program) || (user !== null && !grants.has('users', user)));
        await Promise.all(gone.map((running) => running.kill()));
    }

    async #start(file: string, args: readonly string[], options: SpawnOptions): Promise<Running> {
        const { grants, scope, folder } = this.#options;
        check(file, args, options);
        grants.require('exec', file);
        const account = options.user === undefined ? null : await this.#account(options.user);
        const path = await findProgram(file);
        if (path === null) {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        const limited = await withLimits(path, args, options.limits ?? {});
        const mark = randomUUID();
        options.signal?.throwIfAborted();
        const child = start(limited.path, limited.args, {
            cwd: options.cwd ?? folder,
            env: { ...options.env, PATH: fixedPath, HOME: options.env?.['HOME'] ?? account?.home ?? folder, LANG: options.env?.['LANG'] ?? 'C.UTF-8', ...(process.env['TZ'] === undefined ? {} : { TZ: process.env['TZ'] }), [marker]: mark },
            detached: true,
            shell: false,
            stdio: ['pipe', 'pipe', 'pipe'],
            ...(account === null ? {} : { uid: account.uid, gid: account.gid })
        });
        child.stdin.on('error', () => undefined);
        const failed = once(child, 'error').then(([error]) => error as NodeJS.ErrnoException);
        if (child.pid === undefined) {
            const error = await failed;
            throw error.code === 'ENOENT' ? errors.notFound(`There is no folder ${options.cwd ?? folder}`) : error;
        }
        failed.catch(() => undefined);
        return this.#own(child as Running['child'], mark, file, options, scope);
    }

    #own(child: Running['child'], mark: string, program: string, options: SpawnOptions, scope: Scope): Running {
        this.#options.used(program, child.spawnargs.slice(1), options.user ?? null);
        const group = new ProcessGroup(child, mark);
        let timedOut = false;
        let ending: Promise<void> | null = null;
        const kill = (): Promise<void> => ending ??= group.end().finally(() => forget());
        const timer = options.timeoutSeconds === undefined ? undefined : setTimeout(() => {
            timedOut = true;
            void kill().catch(() => undefined);
        }, options.timeoutSeconds * 1000);
        const aborted = (): void => void kill().catch(() => undefined);
        options.signal?.addEventListener('abort', aborted, { once: true });
        const exited = new Promise<Exit>((resolve) => {
            child.once('exit', (code, signal) => {
                clearTimeout(timer);
                options.signal?.removeEventListener('abort', aborted);
                if (!group.alive) {
                    forget();
                }
                resolve({ code, signal, timedOut });
            });
        });
        const owned: Owned = scope.own('process', `${program} (${child.pid})`, async () => {
            await kill();
            await exited;
        });
        const running: Running = { child, group, exited, program, user: options.user ?? null, kill };
        const forget = (): void => {
            owned.drop();
            this.#running.delete(running);
        };
        this.#running.add(running);
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
            throw boundaryErrors.CAPABILITY_MISSING({ plugin: this.#options.grants.plugin, capability: `users: ${user}` }, { message: `Only a panel that runs as root can run programs as ${user}` });
        }
        return account;
    }
}

function check(file: unknown, args: unknown, options: SpawnOptions): void {
    if (typeof file !== 'string' || !Array.isArray(args) || [file, ...args as unknown[]].some((each) => typeof each !== 'string' || each.includes('\0'))) {
        throw new TypeError('A program and its arguments are texts without zero bytes');
    }
    const name = Object.keys(options.env ?? {}).find((key) => refusedNames.test(key) || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key));
    if (name !== undefined) {
        throw new TypeError(`The environment variable ${JSON.stringify(name)} is not a plugin's to set`);
    }
    const { timeoutSeconds, cwd } = options;
    if (timeoutSeconds !== undefined && !(timeoutSeconds > 0 && timeoutSeconds <= longestSeconds)) {
        throw new TypeError(`timeoutSeconds is more than 0 and at most ${longestSeconds}`);
    }
    if (cwd !== undefined && !cwd.startsWith('/')) {
        throw new TypeError('cwd is an absolute path');
    }
}

/** prlimit sets what Node cannot, and becomes the program. */
async function withLimits(path: string, args: readonly string[], limits: NonNullable<SpawnOptions['limits']>): Promise<{ readonly path: string; readonly args: readonly string[] }> {
    const flags = Object.entries(limits).filter(([, value]) => value !== undefined).map(([name, value]) => {
        if (!Number.isInteger(value) || value < 0) {
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

/** Reads to the end, and keeps what fits. */
function collect(stream: Readable, limit: number): { readonly done: Promise<void>; text(): string; truncated(): boolean } {
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
