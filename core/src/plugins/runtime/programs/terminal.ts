/**
 * A terminal for one program. Only the pair of descriptors comes from the library `node-pty`: its own function to start a program keeps the
 * groups of root, and leaves every terminal open in every child that the panel starts (tried). The panel's end of the pair goes at once
 * to two `cat` programs that copy input and output, with no turn of the event loop in which another child could inherit it. The program
 * itself starts like any other.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fchownSync, fstatSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Readable, Writable } from 'node:stream';

import { errors } from '@portico/sdk';

import type { MachineAccount } from './machine-accounts.ts';
import { findProgram } from './path.ts';

/** The used functions of the library's native part. */
interface Native {
    open(
        columns: number,
        rows: number
    ): { readonly master: number; readonly slave: number; readonly pty: string };
    resize(fd: number, columns: number, rows: number): void;
}

/** Columns and rows, each 1 to 65,535. */
export interface TerminalSize {
    readonly columns: number;
    readonly rows: number;
}

/** What a terminal needs of the machine: the native library and the paths of two programs. */
export interface TerminalTools {
    readonly native: Native;
    readonly cat: string;
    readonly sh: string;
}

type Showing = ChildProcess & { readonly stdout: Readable };
type Typing = ChildProcess & { readonly stdin: Writable };

const require = createRequire(import.meta.url);
const { O_NOCTTY, O_RDWR } = constants;
/** The kernel keeps columns and rows in two bytes each. */
const most = 65_535;

/** Finds what a terminal needs. @throws TOOL_MISSING 50302 on a machine or platform without terminals */
export async function terminalTools(): Promise<TerminalTools> {
    let native: Native;
    try {
        native = (
            require('@lydell/node-pty/requireBinary.js') as { requireBinary(file: string): Native }
        ).requireBinary('pty.node');
    } catch {
        throw errors.toolMissing(
            'a terminal (@lydell/node-pty for this platform)',
            'npm install @lydell/node-pty'
        );
    }
    const [cat, sh] = [await findProgram('cat'), await findProgram('sh')];
    if (cat === null || sh === null) {
        throw errors.toolMissing('cat and sh', 'apt-get install coreutils dash');
    }
    return { native, cat, sh };
}

/** One open terminal: a program at one end of a pair of pseudo-terminals; at the other end, what is typed and shown. */
export class Terminal {
    readonly #tools: TerminalTools;
    readonly #path: string;
    readonly #shown: Showing;
    readonly #typed: Typing;
    readonly #closed: Promise<void>;
    /** The program's end of the pair; null once the program has it. */
    #line: number | null;

    /**
     * Opens the terminal.
     * @param account - owner of the terminal; null for the panel's own account
     * @throws TypeError for an invalid size
     */
    constructor(tools: TerminalTools, size: TerminalSize, account: MachineAccount | null) {
        checkSize(size);
        this.#tools = tools;
        const { master, slave, pty } = tools.native.open(size.columns, size.rows);
        try {
            this.#path = pty;
            try {
                // Node's openSync sets close-on-exec, so other children do not inherit it; the library does not set it.
                this.#line = openSync(pty, O_RDWR | O_NOCTTY);
            } finally {
                closeSync(slave);
            }
            if (account !== null) {
                fchownSync(this.#line, account.uid, fstatSync(this.#line).gid);
            }
            const options = { cwd: '/', env: {}, detached: true } as const;
            this.#shown = spawn(tools.cat, [], { ...options, stdio: [master, 'pipe', 'ignore'] }) as Showing;
            this.#typed = spawn(tools.cat, [], { ...options, stdio: ['pipe', master, 'ignore'] }) as Typing;
        } finally {
            closeSync(master);
        }
        this.#typed.stdin.on('error', () => undefined);
        this.#closed = Promise.all(
            [this.#shown, this.#typed].map(
                (copying) =>
                    new Promise<void>((resolve) => {
                        // A program that could not be started emits `error` and never `close`.
                        copying.once('error', () => resolve()).once('close', () => resolve());
                    })
            )
        ).then(() => undefined);
    }

    /** What the program shows; it ends when no process has the terminal open any more. */
    get output(): Readable {
        return this.#shown.stdout;
    }

    /** Input for the program, as if it was typed. */
    get input(): Writable {
        return this.#typed.stdin;
    }

    /** The three streams of the program. */
    get stdio(): [number, number, number] {
        const line = this.#line ?? -1;
        return [line, line, line];
    }

    /** The program's command behind a fixed script that opens the terminal: a session leader gets the first terminal that it opens as its controlling terminal. */
    command(
        path: string,
        args: readonly string[]
    ): { readonly path: string; readonly args: readonly string[] } {
        return { path: this.#tools.sh, args: ['-c', ': <>"$0" && exec "$@"', this.#path, path, ...args] };
    }

    /** Closes the panel's copy of the program's end. Call it when the program runs or could not be started. */
    handOver(): void {
        if (this.#line !== null) {
            closeSync(this.#line);
            this.#line = null;
        }
    }

    /** Changes the size. Call it only while the program runs: later the name may belong to another terminal. @throws TypeError for an invalid size */
    resize(size: TerminalSize): void {
        checkSize(size);
        const line = openSync(this.#path, O_RDWR | O_NOCTTY);
        try {
            this.#tools.native.resize(line, size.columns, size.rows);
        } finally {
            closeSync(line);
        }
    }

    /** Ends the input; the output can still be read. */
    hangUp(): void {
        this.#typed.kill('SIGKILL');
    }

    /** Resolves when input and output have ended and the output has been read. */
    get closed(): Promise<void> {
        return this.#closed;
    }

    /** Closes everything, and resolves when both copying programs have ended. Unread output is lost. */
    async close(): Promise<void> {
        this.handOver();
        this.#shown.kill('SIGKILL');
        this.#typed.kill('SIGKILL');
        this.#shown.stdout.destroy();
        this.#typed.stdin.destroy();
        await this.#closed;
    }
}

function checkSize({ columns, rows }: TerminalSize): void {
    if ([columns, rows].some((each) => !Number.isInteger(each) || each < 1 || each > most)) {
        throw new TypeError(`A terminal has 1 to ${most} columns and rows`);
    }
}
