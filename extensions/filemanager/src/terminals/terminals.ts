/** Runs shells in pseudo-terminals, each on a socket. */
import { type Actor, type Child, errors, joi, type Socket, type Value } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Recorder, Recordings } from './recordings.ts';

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

/** The schema of an open terminal in a list. */
export const openTerminalSchema = joi.object({
    id: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: 1 } }),
    username: joi
        .string()
        .allow('')
        .required()
        .label('User')
        .meta({ ui: { column: 2 } }),
    startedAt: joi
        .string()
        .isoDate()
        .required()
        .label('Since')
        .meta({ ui: { column: 3 } }),
    bytes: joi
        .number()
        .integer()
        .required()
        .label('Shown')
        .description('Bytes that it has shown so far')
        .unit('byte')
        .meta({ ui: { column: 4 } }),
    recording: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Recording')
        .description('Number of its recording; null where it is not recorded')
        .meta({ ui: { column: 5 } })
});

/** A terminal that is open. */
interface OpenTerminal {
    readonly username: string;
    readonly startedAt: string;
    bytes: number;
    readonly recorder: Recorder | null;
    readonly ending: AbortController;
}

/** How long a shell may take to end after its socket has closed. */
const graceMs = 2_000;

/** The open terminals of one generation. */
export class Terminals {
    readonly #ctx: Ctx;
    readonly #recordings: Recordings;
    readonly #open = new Map<number, OpenTerminal>();
    #opening = 0;
    #last = 0;
    #checked = false;

    constructor(ctx: Ctx, recordings: Recordings) {
        this.#ctx = ctx;
        this.#recordings = recordings;
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

    /** All that are open, oldest first. */
    list(): readonly Value<typeof openTerminalSchema>[] {
        return [...this.#open].map(([id, { username, startedAt, bytes, recorder }]) => ({
            id,
            username,
            startedAt,
            bytes,
            recording: recorder?.id ?? null
        }));
    }

    /** Ends one: its shell is hung up, as when its window closes. Resolves with who opened it. @throws NOT_FOUND 40400 */
    end(id: number): string {
        const terminal = this.#open.get(id);
        if (terminal === undefined) {
            throw errors.notFound();
        }
        terminal.ending.abort();
        return terminal.username;
    }

    /** How many terminals are open. */
    get openCount(): number {
        return this.#opening;
    }

    /**
     * Runs one shell: binary messages carry what is typed and shown, text messages are JSON. The client sends `{ columns, rows }`; the last
     * one it gets is `{ exitCode }`.
     */
    async run(
        socket: Socket,
        size: TerminalSize,
        { signal, actor }: { readonly signal: AbortSignal; readonly actor: Actor }
    ): Promise<void> {
        this.#refuseOverLimit();
        this.#opening += 1;
        const username = actor.username ?? '';
        let recorder: Recorder | null = null;
        try {
            if (this.#ctx.settings.terminalRecording === 'on') {
                recorder = await this.#recordings.begin(username, size);
            }
            await using child = await this.#spawn(size, ['-l'], signal);
            this.#last += 1;
            const id = this.#last;
            const terminal = {
                username,
                startedAt: new Date().toISOString(),
                bytes: 0,
                recorder,
                ending: new AbortController()
            };
            this.#open.set(id, terminal);
            try {
                await connect(socket, child, terminal);
            } finally {
                this.#open.delete(id);
            }
        } finally {
            this.#opening -= 1;
            await recorder?.end();
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
        if (this.#opening >= terminals) {
            throw fail.TOO_MANY_TERMINALS({ limit: terminals });
        }
    }
}

/** Connects a socket to a shell until one of them ends, or the terminal is ended by another request. */
async function connect(socket: Socket, child: Child, terminal: OpenTerminal): Promise<void> {
    const { recorder, ending } = terminal;
    const failed: { error: Error | null } = { error: null };
    const sending = (async () => {
        for await (const chunk of child.stdout) {
            try {
                await recorder?.shown(chunk);
            } catch (error) {
                failed.error = error as Error;
                throw error;
            }
            terminal.bytes += chunk.byteLength;
            await socket.send(chunk);
        }
        const { code } = await child.exited;
        if (failed.error !== null) {
            // The route sends the error, and closes the socket with it.
            return;
        }
        await socket.send(JSON.stringify({ exitCode: code }));
        await socket.close(1000, 'The shell ended');
    })();
    const stop = Promise.withResolvers<void>();
    sending.catch(() => stop.resolve());
    ending.signal.addEventListener('abort', () => stop.resolve(), { once: true });
    const typing = type(socket, child, recorder);
    typing.catch(() => undefined);
    try {
        await Promise.race([typing, stop.promise]);
        if (failed.error !== null) {
            throw failed.error;
        }
    } catch (error) {
        failed.error = error as Error;
        throw error;
    } finally {
        await child.kill('SIGHUP').catch(() => undefined);
        await waitForEnd(child);
        await sending.catch(() => undefined);
    }
}

/** Passes on what the client types and the sizes that it sets, until its side of the socket ends. @throws VALIDATION_FAILED 40001 */
async function type(socket: Socket, child: Child, recorder: Recorder | null): Promise<void> {
    const writer = child.stdin.getWriter();
    try {
        for await (const message of socket) {
            if (typeof message === 'string') {
                const { columns, rows } = readSize(message);
                await recorder?.resized(columns, rows);
                await child.resize(columns, rows);
            } else {
                await writer.write(message);
            }
        }
    } finally {
        writer.releaseLock();
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
