/** The programs of a test's machine: each answers as the test says, or is the real one. None runs that the test did not name. */
import { PassThrough, Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { machinePrograms, type ProgramCommand, type RunningProgram } from '@portico/core/plugin-runtime';
import { errors, type ExecOptions, type Exit, type SpawnOptions, type Usage } from '@portico/sdk';

/** One use of a program. */
export interface ProgramCall {
    readonly file: string;
    readonly args: readonly string[];
    readonly options: ExecOptions & SpawnOptions;
    /** What is written to its standard input. */
    readonly stdin: AsyncIterable<Uint8Array>;
    /** Aborts when it is killed. */
    readonly signal: AbortSignal;
}

/** What a program does. A text is its standard output, and it ends well. */
export type ProgramAnswer =
    | string
    | {
          readonly code?: number;
          /** What `child.usage()` tells when the plugin asked for a control group. */
          readonly usage?: Usage;
          /** The kernel ended it for want of memory: it has no exit code then. */
          readonly limit?: 'memory';
          readonly stdout?: string | Uint8Array | AsyncIterable<string | Uint8Array>;
          readonly stderr?: string | Uint8Array;
      };

type Script = (call: ProgramCall) => ProgramAnswer | Promise<ProgramAnswer>;

/** What the test says of programs, and what the plugin did with them. */
export class TestPrograms {
    /** Every use that was let through, in order. */
    readonly calls: Omit<ProgramCall, 'stdin' | 'signal'>[] = [];
    readonly #scripts = new Map<string, Script | 'real' | 'missing'>();
    readonly #isReal: boolean;

    /** @param isReal - programs of which the test says nothing are the machine's own @internal */
    constructor(isReal = false) {
        this.#isReal = isReal;
    }

    /** Says what a program answers, each time it runs. */
    answer(file: string, answer: ProgramAnswer | Script): void {
        this.#scripts.set(file, typeof answer === 'function' ? answer : () => answer);
    }

    /** Runs the machine's own program of that name. */
    real(file: string): void {
        this.#scripts.set(file, 'real');
    }

    /** This machine does not have it: TOOL_MISSING 50302. */
    missing(file: string): void {
        this.#scripts.set(file, 'missing');
    }

    /** Starts what the test said. @internal */
    async start(command: ProgramCommand): Promise<RunningProgram> {
        const { file, args, options } = command;
        const script = this.#scripts.get(file) ?? (this.#isReal ? 'real' : undefined);
        if (script === undefined) {
            throw new Error(
                `The plugin runs ${file}, of which the test says nothing: programs.answer('${file}', …), programs.real('${file}') or programs.missing('${file}')`
            );
        }
        if (script === 'missing') {
            throw errors.toolMissing(file, `install ${file.split('/').at(-1)}`);
        }
        options.signal?.throwIfAborted();
        this.calls.push({ file, args, options });
        return script === 'real' ? machinePrograms.start(command) : new ScriptedProgram(command, script);
    }
}

let lastPid = 100_000;

class ScriptedProgram implements RunningProgram {
    readonly pid = (lastPid += 1);
    readonly stdin: Writable;
    readonly stdout = new PassThrough();
    readonly stderr = new PassThrough();
    readonly exited: Promise<Omit<Exit, 'timedOut'>>;
    readonly #killed = new AbortController();
    #usage: Usage | null = null;

    constructor({ file, args, options }: ProgramCommand, script: Script) {
        const stdin = new PassThrough();
        stdin.on('error', () => undefined);
        this.stdin = stdin;
        const { signal } = this.#killed;
        const killed = new Promise<Omit<Exit, 'timedOut'>>((resolve) =>
            signal.addEventListener('abort', () => resolve({ code: null, signal: String(signal.reason) }))
        );
        const answered = (async () => {
            const answer = await script({ file, args, options, stdin, signal });
            const {
                code = 0,
                stdout = '',
                stderr = '',
                usage = { cpuSeconds: 0, memoryPeakBytes: 0 },
                limit
            } = typeof answer === 'string' ? { stdout: answer } : answer;
            await Promise.all([write(stdout, this.stdout, signal), write(stderr, this.stderr, signal)]);
            this.#usage = options.limits?.group === undefined ? null : usage;
            return limit === undefined ? { code, signal: null } : { code: null, signal: 'SIGKILL', limit };
        })().catch((error: unknown) => {
            this.stderr.end(String(error));
            return { code: 1, signal: null };
        });
        this.exited = Promise.race([killed, answered]);
        void this.exited.then(() => [this.stdout.end(), this.stderr.end()]);
    }

    signal(name: NodeJS.Signals): void {
        this.#killed.abort(name);
    }

    resize(): void {
        // Nothing here looks at the size.
    }

    usage(): Usage | null {
        return this.#usage;
    }

    async kill(): Promise<void> {
        this.signal('SIGTERM');
        await this.exited;
    }

    abort(): Promise<void> {
        return this.kill();
    }

    async discard(): Promise<void> {
        await this.kill();
        [this.stdin, this.stdout, this.stderr].forEach((stream) => stream.destroy());
    }

    async settled(): Promise<boolean> {
        await this.exited;
        return true;
    }
}

async function write(
    source: string | Uint8Array | AsyncIterable<string | Uint8Array>,
    target: Writable,
    signal: AbortSignal
): Promise<void> {
    const parts = typeof source === 'string' || source instanceof Uint8Array ? [source] : source;
    await pipeline(Readable.from(parts), target, { signal }).catch((error: unknown) => {
        if (!signal.aborted) {
            throw error;
        }
    });
}
