/** Programs that a plugin runs. They need a grant, and they end with the plugin. */
import { Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

import type { Child, ExecOptions, ExecResult, Exit, SpawnOptions } from '@portico/sdk';
import type { Grants, Scope } from '@portico/sdk/host';

import type { ProgramsPort, RunningProgram } from './machine.ts';
import { checkProgram } from './options.ts';

/** What the programs of one plugin need. */
export interface ProgramsOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    readonly machine: ProgramsPort;
    /** The working folder of programs unless their options say otherwise. */
    readonly folder: string;
    /** Records a use. */
    used(file: string, args: readonly string[], user: string | null): void;
}

/** A running program with its name and account, which its grant names. */
interface OwnedProgram extends Omit<RunningProgram, 'exited'> {
    readonly file: string;
    readonly user: string | null;
    readonly exited: Promise<Exit>;
}

const execSeconds = 60;
const outputBytes = 1024 * 1024;
/** How long `exec` waits for the end of output after the program has ended: a descendant may hold the pipes open. */
const pipeGraceMs = 500;

/** The programs of one generation. */
export class Programs {
    readonly #options: ProgramsOptions;
    readonly #running = new Set<OwnedProgram>();

    constructor(options: ProgramsOptions) {
        this.#options = options;
    }

    /** Runs a program to its end, at most 60 s unless the options say otherwise. */
    async exec(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
        const { stdin, maxOutputBytes = outputBytes, ...rest } = options;
        const program = await this.#start(file, args, { timeoutSeconds: execSeconds, ...rest });
        const [out, err] = [
            new Output(program.stdout, maxOutputBytes),
            new Output(program.stderr, maxOutputBytes)
        ];
        program.stdin.end(stdin ?? '');
        const exit = await program.exited;
        await Promise.race([Promise.all([out.done, err.done]), wait(pipeGraceMs, undefined, { ref: false })]);
        await program.discard();
        return { ...exit, stdout: out.text, stderr: err.text, truncated: out.isCut || err.isCut };
    }

    /** Starts a program and returns its streams. */
    async spawn(file: string, args: readonly string[], options: SpawnOptions = {}): Promise<Child> {
        const program = await this.#start(file, args, options);
        const { pid, stdin, stdout, stderr, exited } = program;
        return {
            pid,
            stdin: Writable.toWeb(stdin) as WritableStream<Uint8Array>,
            stdout: Readable.toWeb(stdout) as Child['stdout'],
            stderr: Readable.toWeb(stderr) as Child['stderr'],
            exited,
            kill: async (signal = 'SIGTERM') => program.signal(signal),
            resize: async (columns, rows) => program.resize(columns, rows),
            usage: async () => program.usage(),
            [Symbol.asyncDispose]: () => program.discard()
        };
    }

    /** Ends the programs whose grant no longer exists. */
    async revoke(): Promise<void> {
        const { grants } = this.#options;
        const gone = [...this.#running].filter(
            ({ file, user }) => !grants.has('exec', file) || (user !== null && !grants.has('users', user))
        );
        await Promise.all(gone.map((program) => program.discard()));
    }

    async #start(file: string, args: readonly string[], options: SpawnOptions): Promise<OwnedProgram> {
        const { grants, machine, folder } = this.#options;
        checkProgram(file, args, options);
        grants.require('exec', file);
        if (options.user !== undefined) {
            grants.require('users', options.user);
        }
        const program = await machine.start({ plugin: grants.plugin, file, args, options, folder });
        this.#options.used(file, args, options.user ?? null);
        return this.#own(program, file, options);
    }

    #own(program: RunningProgram, file: string, options: SpawnOptions): OwnedProgram {
        let timedOut = false;
        const kill = (): void => void program.kill().catch(() => undefined);
        const timer =
            options.timeoutSeconds === undefined
                ? undefined
                : setTimeout(() => {
                      timedOut = true;
                      kill();
                  }, options.timeoutSeconds * 1000);
        const abort = (): void => void program.abort().catch(() => undefined);
        options.signal?.addEventListener('abort', abort, { once: true });
        // The signal may have aborted while the program was moved into its control group.
        if (options.signal?.aborted === true) {
            abort();
        }
        const exited = program.exited.then((exit): Exit => {
            clearTimeout(timer);
            options.signal?.removeEventListener('abort', abort);
            return { ...exit, timedOut };
        });
        const discard = (): Promise<void> => program.discard().finally(forget);
        const held = this.#options.scope.own('process', `${file} (${program.pid})`, discard);
        const owned: OwnedProgram = {
            pid: program.pid,
            stdin: program.stdin,
            stdout: program.stdout,
            stderr: program.stderr,
            file,
            user: options.user ?? null,
            exited,
            signal: (name) => program.signal(name),
            resize: (columns, rows) => program.resize(columns, rows),
            usage: () => program.usage(),
            kill: () => program.kill(),
            abort: () => program.abort(),
            settled: () => program.settled(),
            discard
        };
        const forget = (): void => {
            held.drop();
            this.#running.delete(owned);
        };
        this.#running.add(owned);
        void program.settled().then(
            (isOver) => isOver && forget(),
            () => undefined
        );
        return owned;
    }
}

/** Reads a stream to its end and keeps its first bytes, up to the limit. */
class Output {
    /** Resolves when the stream is closed. */
    readonly done: Promise<void>;
    isCut = false;
    readonly #chunks: Buffer[] = [];

    constructor(stream: Readable, limit: number) {
        let kept = 0;
        stream.on('data', (chunk: Buffer) => {
            const room = chunk.subarray(0, limit - kept);
            this.isCut ||= room.length < chunk.length;
            if (room.length > 0) {
                kept += room.length;
                this.#chunks.push(room);
            }
        });
        this.done = new Promise<void>((resolve) => stream.once('close', resolve));
        stream.on('error', () => undefined);
    }

    get text(): string {
        return new TextDecoder().decode(Buffer.concat(this.#chunks));
    }
}
