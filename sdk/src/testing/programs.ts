/** Programs in a test: each answers as the test says, or is the machine's own. None runs that the test did not name. */
import { spawn as start } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';

import type { Grants } from '../boundary/grants.ts';
import type { Scope } from '../boundary/scope.ts';
import { errors } from '../plugin-errors.ts';
import type { Child, ExecOptions, ExecResult, Exit, SpawnOptions } from '../process.ts';

/** One use of a program. */
export interface ProgramCall {
    readonly file: string;
    readonly args: readonly string[];
    readonly options: ExecOptions & SpawnOptions;
    /** What is written to its standard input; whole for `exec`. */
    readonly stdin: AsyncIterable<Uint8Array>;
    /** Aborts when it is killed. */
    readonly signal: AbortSignal;
}

/** What a program does. A text is its standard output, and it ends well. */
export type ProgramAnswer =
    | string
    | {
          readonly code?: number;
          readonly stdout?: string | Uint8Array | AsyncIterable<string | Uint8Array>;
          readonly stderr?: string | Uint8Array;
      };
type Script = 'real' | 'missing' | ((call: ProgramCall) => ProgramAnswer | Promise<ProgramAnswer>);

const refusedNames = /^(PATH|NODE_OPTIONS|LD_.*|PORTICO_.*)$/;
const execSeconds = 60;

/** What the test says of programs, and what the plugin did with them. */
export class ProgramsFake {
    /** Every use that was let through, in order. */
    readonly calls: Omit<ProgramCall, 'stdin' | 'signal'>[] = [];
    readonly #scripts = new Map<string, Script>();

    /** Says what a program answers, each time it runs. */
    answer(
        file: string,
        answer: ProgramAnswer | ((call: ProgramCall) => ProgramAnswer | Promise<ProgramAnswer>)
    ): void {
        this.#scripts.set(file, typeof answer === 'function' ? answer : () => answer);
    }

    /** Runs the machine's own program of that name, as the test's own user. */
    real(file: string): void {
        this.#scripts.set(file, 'real');
    }

    /** This machine does not have it: TOOL_MISSING 50302. */
    missing(file: string): void {
        this.#scripts.set(file, 'missing');
    }

    scriptOf(file: string): Script {
        const script = this.#scripts.get(file);
        if (script === undefined) {
            throw new Error(
                `The plugin runs ${file}, of which the test says nothing: programs.answer('${file}', …), programs.real('${file}') or programs.missing('${file}')`
            );
        }
        return script;
    }
}

/** The doors `exec` and `spawn` over what the test says. */
export function createProgramDoors(
    programs: ProgramsFake,
    { grants, scope, folder }: { readonly grants: Grants; readonly scope: Scope; readonly folder: string }
): {
    readonly exec: (file: string, args: readonly string[], options?: ExecOptions) => Promise<ExecResult>;
    readonly spawn: (file: string, args: readonly string[], options?: SpawnOptions) => Promise<Child>;
} {
    const spawn = async (
        file: string,
        args: readonly string[],
        options: ExecOptions & SpawnOptions = {}
    ): Promise<Child> => {
        check(file, args, options);
        grants.require('exec', file);
        if (options.user !== undefined) {
            grants.require('users', options.user);
        }
        const script = programs.scriptOf(file);
        if (script === 'missing') {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        options.signal?.throwIfAborted();
        programs.calls.push({ file, args, options });
        const child =
            script === 'real'
                ? await realChild(file, args, options, folder)
                : scriptedChild(file, args, options, script);
        const owned = scope.own('process', `${file} (${child.pid})`, async () => {
            await child.kill('SIGKILL');
            await child.exited;
        });
        void child.exited.then(() => owned.drop());
        const abort = (): void => void child.kill('SIGKILL');
        options.signal?.addEventListener('abort', abort, { once: true });
        void child.exited.then(() => options.signal?.removeEventListener('abort', abort));
        return child;
    };
    return {
        spawn,
        async exec(file, args, options = {}) {
            const { stdin = '', maxOutputBytes = 1024 * 1024, ...rest } = options;
            const child = await spawn(file, args, { timeoutSeconds: execSeconds, ...rest });
            const feed = child.stdin.getWriter();
            void feed
                .write(typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin)
                .then(() => feed.close())
                .catch(() => undefined);
            const [exit, stdout, stderr] = await Promise.all([
                child.exited,
                collect(child.stdout, maxOutputBytes),
                collect(child.stderr, maxOutputBytes)
            ]);
            return {
                ...exit,
                stdout: stdout.text,
                stderr: stderr.text,
                truncated: stdout.truncated || stderr.truncated
            };
        }
    };
}

function check(file: unknown, args: unknown, { env = {}, cwd }: SpawnOptions): void {
    if (
        typeof file !== 'string' ||
        !Array.isArray(args) ||
        [file, ...(args as unknown[])].some((each) => typeof each !== 'string' || each.includes('\0'))
    ) {
        throw new TypeError('A program and its arguments are texts without zero bytes');
    }
    const name = Object.keys(env).find(
        (key) => refusedNames.test(key) || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)
    );
    if (name !== undefined) {
        throw new TypeError(`The environment variable ${JSON.stringify(name)} is not a plugin's to set`);
    }
    if (cwd !== undefined && !cwd.startsWith('/')) {
        throw new TypeError('cwd is an absolute path');
    }
}

let pids = 100_000;

function scriptedChild(
    file: string,
    args: readonly string[],
    options: ExecOptions & SpawnOptions,
    script: Exclude<Script, string>
): Child {
    const killed = new AbortController();
    const input = new TransformStream<Uint8Array, Uint8Array>(
        undefined,
        new CountQueuingStrategy({ highWaterMark: 1024 }),
        new CountQueuingStrategy({ highWaterMark: 1024 })
    );
    const answering = (async () => {
        const answer = await script({ file, args, options, stdin: input.readable, signal: killed.signal });
        return typeof answer === 'string' ? { stdout: answer } : answer;
    })();
    const aborted = new Promise<NodeJS.Signals>((resolve) =>
        killed.signal.addEventListener('abort', () => resolve(killed.signal.reason as NodeJS.Signals), {
            once: true
        })
    );
    const done = Promise.withResolvers<undefined>();
    const out = streamOf(
        (async function* () {
            try {
                const { stdout = '' } = await Promise.race([answering, aborted.then(() => ({ stdout: '' }))]);
                yield* bytesOf(stdout, killed.signal);
            } finally {
                done.resolve(undefined);
            }
        })()
    );
    const err = streamOf(
        (async function* () {
            const { stderr = '' } = await Promise.race([answering, aborted.then(() => ({ stderr: '' }))]);
            yield* bytesOf(stderr, killed.signal);
        })()
    );
    let timedOut = false;
    const timer =
        options.timeoutSeconds === undefined
            ? undefined
            : setTimeout(() => {
                  timedOut = true;
                  killed.abort('SIGKILL');
              }, options.timeoutSeconds * 1000);
    const exited = (async (): Promise<Exit> => {
        try {
            const signal = await Promise.race([answering.then(() => done.promise), aborted]);
            return signal === undefined
                ? { code: ((await answering) as { code?: number }).code ?? 0, signal: null, timedOut }
                : { code: null, signal, timedOut };
        } finally {
            clearTimeout(timer);
        }
    })();
    exited.catch(() => undefined);
    pids += 1;
    return {
        pid: pids,
        stdin: input.writable,
        stdout: out,
        stderr: err,
        exited,
        kill: async (signal = 'SIGTERM') => killed.abort(signal),
        resize: async () => undefined,
        async [Symbol.asyncDispose]() {
            killed.abort('SIGKILL');
            await exited;
        }
    };
}

async function realChild(
    file: string,
    args: readonly string[],
    options: SpawnOptions,
    folder: string
): Promise<Child> {
    const child = start(file, [...args], {
        cwd: options.cwd ?? folder,
        env: { ...options.env, PATH: process.env['PATH'] ?? '', HOME: folder, LANG: 'C.UTF-8' },
        detached: true,
        shell: false,
        stdio: ['pipe', 'pipe', 'pipe']
    });
    child.stdin.on('error', () => undefined);
    if (child.pid === undefined) {
        const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
        throw error.code === 'ENOENT' ? errors.toolMissing(file, `install ${file}`) : error;
    }
    const { pid } = child;
    const kill = (signal: NodeJS.Signals): void => {
        try {
            process.kill(-pid, signal);
        } catch {
            // The group is gone already.
        }
    };
    let timedOut = false;
    const timer =
        options.timeoutSeconds === undefined
            ? undefined
            : setTimeout(() => {
                  timedOut = true;
                  kill('SIGKILL');
              }, options.timeoutSeconds * 1000);
    const exited = once(child, 'exit').then(([code, signal]): Exit => {
        clearTimeout(timer);
        return { code: code as number | null, signal: signal as string | null, timedOut };
    });
    return {
        pid,
        exited,
        stdin: Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
        stdout: Readable.toWeb(child.stdout) as never,
        stderr: Readable.toWeb(child.stderr) as never,
        kill: async (signal = 'SIGTERM') => kill(signal),
        resize: async () => undefined,
        async [Symbol.asyncDispose]() {
            kill('SIGKILL');
            await exited;
        }
    };
}

async function* bytesOf(
    source: string | Uint8Array | AsyncIterable<string | Uint8Array>,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    for await (const part of typeof source === 'string' || source instanceof Uint8Array ? [source] : source) {
        if (signal.aborted) {
            return;
        }
        if (part.length > 0) {
            yield typeof part === 'string' ? new TextEncoder().encode(part) : part;
        }
    }
}

function streamOf(parts: AsyncGenerator<Uint8Array>): Child['stdout'] {
    return ReadableStream.from(parts) as Child['stdout'];
}

async function collect(
    stream: AsyncIterable<Uint8Array>,
    limit: number
): Promise<{ readonly text: string; readonly truncated: boolean }> {
    const chunks: Uint8Array[] = [];
    let seen = 0;
    for await (const chunk of stream) {
        const room = Math.max(0, limit - seen);
        seen += chunk.length;
        chunks.push(chunk.subarray(0, room));
    }
    return { text: new TextDecoder().decode(Buffer.concat(chunks)), truncated: seen > limit };
}
