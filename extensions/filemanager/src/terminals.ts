/** Terminals: a ticket for one shell, and the socket that carries it. */
import { type Child, errors, type Health, isFailure, joi, type Socket } from '@portico/sdk';

import { failures } from './errors.ts';
import type { Ctx } from './settings.ts';

/** Size of a terminal. */
export const terminalSize = joi.object({
    columns: joi.number().integer().min(1).max(1000).default(80),
    rows: joi.number().integer().min(1).max(500).default(24)
});

export interface TerminalSize {
    readonly columns: number;
    readonly rows: number;
}

/** How long a shell may take to end once its socket is gone. */
const graceMs = 2_000;

export class Terminals {
    readonly #ctx: Ctx;
    #open = 0;
    #proven = false;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Refuses before a ticket is issued what could not work afterwards. @throws TOOL_MISSING 50302, TOO_MANY_TERMINALS 42950 */
    async check(): Promise<void> {
        this.#refuseMore();
        if (!this.#proven) {
            await using child = await this.#spawn({ columns: 80, rows: 24 }, ['-c', 'exit 0']);
            await drained(child);
            this.#proven = true;
        }
    }

    async health(): Promise<Health> {
        if (this.#ctx.settings.terminals === 0) {
            return { state: 'ok', evidence: 'Terminals are switched off' };
        }
        try {
            await this.check();
            return { state: 'ok', evidence: `${this.#open} terminals are open` };
        } catch (error) {
            const { code, reason, data, message } = isFailure(error)
                ? error
                : errors.toolMissing(this.#ctx.settings.terminalShell, '');
            if (reason === 'TOO_MANY_TERMINALS') {
                return { state: 'ok', evidence: message };
            }
            const install = data?.['install'];
            return {
                state: 'degraded',
                evidence: `Terminals do not work: ${message} (${code})`,
                remedy: {
                    text: 'Install what is missing; files work without it',
                    ...(typeof install === 'string' && install !== '' ? { command: install } : {})
                }
            };
        }
    }

    /**
     * Runs one shell: binary messages are what is typed and shown, text messages are JSON. The client sends `{ columns, rows }`; the last
     * one it gets is `{ exitCode }`.
     */
    async run(socket: Socket, size: TerminalSize, signal: AbortSignal): Promise<void> {
        this.#refuseMore();
        this.#open += 1;
        try {
            await using child = await this.#spawn(size, ['-l'], signal);
            await this.#carry(socket, child);
        } finally {
            this.#open -= 1;
        }
    }

    async #carry(socket: Socket, child: Child): Promise<void> {
        const shown = (async () => {
            for await (const chunk of child.stdout) {
                await socket.send(chunk);
            }
            const { code } = await child.exited;
            await socket.send(JSON.stringify({ exitCode: code }));
            await socket.close(1000, 'The shell ended');
        })();
        shown.catch(() => undefined);
        const writer = child.stdin.getWriter();
        try {
            for await (const message of socket) {
                if (typeof message === 'string') {
                    const { columns, rows } = readSize(message);
                    await child.resize(columns, rows);
                } else {
                    await writer.write(message);
                }
            }
        } finally {
            writer.releaseLock();
            await child.kill('SIGHUP').catch(() => undefined);
            await ended(child);
            await shown.catch(() => undefined);
        }
    }

    async #spawn(
        { columns, rows }: TerminalSize,
        args: readonly string[],
        signal?: AbortSignal
    ): Promise<Child> {
        const { terminalShell, terminalUser } = this.#ctx.settings;
        return this.#ctx.spawn(terminalShell, args, {
            pty: { columns, rows },
            env: { TERM: 'xterm-256color' },
            ...(terminalUser === undefined ? {} : { user: terminalUser }),
            ...(signal === undefined ? {} : { signal })
        });
    }

    #refuseMore(): void {
        const { terminals } = this.#ctx.settings;
        if (this.#open >= terminals) {
            throw failures.TOO_MANY_TERMINALS({ limit: terminals });
        }
    }
}

/** @throws VALIDATION_FAILED 40001 */
function readSize(message: string): TerminalSize {
    let value: unknown;
    try {
        value = JSON.parse(message);
    } catch {
        value = null;
    }
    const { columns, rows } = (value ?? {}) as { columns?: unknown; rows?: unknown };
    const fits = (number: unknown, most: number): number is number =>
        Number.isInteger(number) && (number as number) >= 1 && (number as number) <= most;
    if (!fits(columns, 1000) || !fits(rows, 500)) {
        throw errors.invalid([
            { path: '', message: 'A text message is { "columns": 1 to 1000, "rows": 1 to 500 }' }
        ]);
    }
    return { columns, rows };
}

async function drained(child: Child): Promise<void> {
    for await (const chunk of child.stdout) {
        void chunk;
    }
    await child.exited;
}

/** A shell that ignores the hang-up is killed. */
async function ended(child: Child): Promise<void> {
    const timer = setTimeout(() => void child.kill('SIGKILL').catch(() => undefined), graceMs);
    try {
        await child.exited;
    } finally {
        clearTimeout(timer);
    }
}
