/**
 * A terminal for one program. The library's own way to start a program keeps root's groups and leaves every terminal open in every child
 * that the panel starts (tried), so only the pair comes from it. Its far end goes at once to two copying programs, with no turn of the
 * event loop in which another child could inherit it; the program itself starts like any other.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fchownSync, fstatSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Readable, Writable } from 'node:stream';

import { errors } from '@portico/sdk';

import type { MachineAccount } from './machine-accounts.ts';
import { findProgram } from './path.ts';

/** The library's native part, as far as it is used. */
interface Native {
    open(
        columns: number,
        rows: number
    ): { readonly master: number; readonly slave: number; readonly pty: string };
    resize(fd: number, columns: number, rows: number): void;
}

export interface TerminalSize {
    readonly columns: number;
    readonly rows: number;
}

/** What opening a terminal needs of the machine. */
export interface TerminalTools {
    readonly native: Native;
    readonly cat: string;
    readonly sh: string;
}

type Showing = ChildProcess & { readonly stdout: Readable };
type Typing = ChildProcess & { readonly stdin: Writable };

const require = createRequire(import.meta.url);
const { O_NOCTTY, O_RDWR } = constants;
/** The size is two bytes wide in the kernel. */
const most = 65_535;

/** @throws TOOL_MISSING 50302 on a machine or platform without terminals */
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

export class Terminal {
    readonly #tools: TerminalTools;
    readonly #path: string;
    readonly #shown: Showing;
    readonly #typed: Typing;
    readonly #closed: Promise<void>;
    /** The program's end, until it has it. */
    #line: number | null;

    /** @throws TypeError for a size that no terminal has */
    constructor(tools: TerminalTools, size: TerminalSize, account: MachineAccount | null) {
        checkSize(size);
        this.#tools = tools;
        const { master, slave, pty } = tools.native.open(size.columns, size.rows);
        try {
            this.#path = pty;
            try {
                // Opened again, it closes by itself in other children, which what the library opened does not.
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
                        // One that could not be started says so, and never closes.
                        copying.once('error', () => resolve()).once('close', () => resolve());
                    })
            )
        ).then(() => undefined);
    }

    /** What the program shows; it ends when nobody has the terminal open any more. */
    get output(): Readable {
        return this.#shown.stdout;
    }

    /** What is typed. */
    get input(): Writable {
        return this.#typed.stdin;
    }

    /** The three streams of the program. */
    get stdio(): [number, number, number] {
        const line = this.#line ?? -1;
        return [line, line, line];
    }

    /** The program's own command behind a fixed script: whoever leads a session gets the terminal that it opens first as its own. */
    command(
        path: string,
        args: readonly string[]
    ): { readonly path: string; readonly args: readonly string[] } {
        return { path: this.#tools.sh, args: ['-c', ': <>"$0" && exec "$@"', this.#path, path, ...args] };
    }

    /** The program runs, or could not be started. */
    handOver(): void {
        if (this.#line !== null) {
            closeSync(this.#line);
            this.#line = null;
        }
    }

    /** Good as long as the program runs: afterwards the name may be another terminal's. @throws TypeError */
    resize(size: TerminalSize): void {
        checkSize(size);
        const line = openSync(this.#path, O_RDWR | O_NOCTTY);
        try {
            this.#tools.native.resize(line, size.columns, size.rows);
        } finally {
            closeSync(line);
        }
    }

    /** Nobody types any more; what was shown can still be read. */
    hangUp(): void {
        this.#typed.kill('SIGKILL');
    }

    /** Resolves when nobody can type or show anything any more, and what was shown has been read. */
    get closed(): Promise<void> {
        return this.#closed;
    }

    /** Resolves when nothing of it is left, read or not. */
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
