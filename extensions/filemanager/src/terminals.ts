/** Runs shells in pseudo-terminals, each on a socket. */
import { type Child, errors, joi, type Socket } from '@portico/sdk';

import { pluginErrors } from './errors.ts';
import type { Ctx } from './settings.ts';

/** The schema of a terminal's size, in characters. */
export const terminalSize = joi.object({
    columns: joi.number().integer().min(1).max(1000).default(80).label('Columns'),
    rows: joi.number().integer().min(1).max(500).default(24).label('Rows')
});

/** Size of a terminal in characters. */
export interface TerminalSize {
    readonly columns: number;
    readonly rows: number;
}

/** How long a shell may take to end after its socket has closed. */
const graceMs = 2_000;

/** The open terminals of one generation. */
export class Terminals {
    readonly #ctx: Ctx;
    #open = 0;
    #checked = false;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Checks that another terminal can be opened. @throws TOOL_MISSING 50302, TOO_MANY_TERMINALS 42950 */
    async check(): Promise<void> {
        this.#refuseOverLimit();
        if (!this.#checked) {
            await using child = await this.#spawn({ columns: 80, rows: 24 }, ['-c', 'exit 0']);
            await readToEnd(child);
            this.#checked = true;
        }
    }

    /** How many terminals are open. */
    get openCount(): number {
        return this.#open;
    }

    /**
     * Runs one shell: binary messages carry what is typed and shown, text messages are JSON. The client sends `{ columns, rows }`; the last
     * one it gets is `{ exitCode }`.
     */
    async run(socket: Socket, size: TerminalSize, signal: AbortSignal): Promise<void> {
        this.#refuseOverLimit();
        this.#open += 1;
        try {
            await using child = await this.#spawn(size, ['-l'], signal);
            await this.#connect(socket, child);
        } finally {
            this.#open -= 1;
        }
    }

    async #connect(socket: Socket, child: Child): Promise<void> {
        let isRefused = false;
        const sending = (async () => {
            for await (const chunk of child.stdout) {
                await socket.send(chunk);
            }
            const { code } = await child.exited;
            if (isRefused) {
                // The route sends the error, and closes the socket with it.
                return;
            }
            await socket.send(JSON.stringify({ exitCode: code }));
            await socket.close(1000, 'The shell ended');
        })();
        sending.catch(() => undefined);
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
        } catch (error) {
            isRefused = true;
            throw error;
        } finally {
            writer.releaseLock();
            await child.kill('SIGHUP').catch(() => undefined);
            await waitForEnd(child);
            await sending.catch(() => undefined);
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

    #refuseOverLimit(): void {
        const { terminals } = this.#ctx.settings;
        if (this.#open >= terminals) {
            throw pluginErrors.TOO_MANY_TERMINALS({ limit: terminals });
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

async function readToEnd(child: Child): Promise<void> {
    for await (const chunk of child.stdout) {
        void chunk;
    }
    await child.exited;
}

/** Waits for the end of a shell that was hung up, and kills one that ignores that. */
async function waitForEnd(child: Child): Promise<void> {
    const timer = setTimeout(() => void child.kill('SIGKILL').catch(() => undefined), graceMs);
    try {
        await child.exited;
    } finally {
        clearTimeout(timer);
    }
}
