/** Terminals in containers: a command of its own, or the container's own process, with a socket at the other end. */
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

import { errors, type Socket } from '@portico/sdk';

import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { drained } from '../streams/drained.ts';
import { readFrames } from '../streams/frames.ts';

/** Size of a terminal in characters. */
export interface TerminalSize {
    readonly columns: number;
    readonly rows: number;
}

/** What a session is opened with. */
export interface SessionInput extends TerminalSize {
    readonly container: string;
    readonly command: readonly string[];
    readonly user?: string | undefined;
    /** The container's own process instead of the command. */
    readonly attach: boolean;
}

interface Opened {
    readonly stream: Duplex;
    readonly tty: boolean;
    /** What is typed when the socket is closed. */
    readonly farewell: Uint8Array;
    resize(size: TerminalSize): Promise<void>;
    /** Null while it runs, and for a container that was only left. */
    exitCode(): Promise<number | null>;
}

/** Interrupts what runs in the foreground, and then ends the input of the shell: engines cannot end such a command. */
const leave = Buffer.from('\u0003\u0004\u0004');
/** How often, and after how many milliseconds each, the end of a container is looked for. */
const looksForEnd = 10;
const pauseMs = 100;
const mostColumns = 1_000;
const mostRows = 500;

/** The open sessions of one generation. */
export class Sessions {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    #open = 0;

    constructor(ctx: Ctx, engine: Engine, inventory: Inventory) {
        this.#ctx = ctx;
        this.#engine = engine;
        this.#inventory = inventory;
    }

    /** Checks that a session can be opened, and gives the id of its container. @throws NOT_FOUND 40400, IN_USE 40901 for a container that does not run, TOO_MANY_SESSIONS 42950 */
    async check(container: string): Promise<string> {
        this.#refuseOverLimit();
        return this.#mustRun(container);
    }

    async #mustRun(container: string): Promise<string> {
        const { Id: id, State: state } = await this.#inventory.container(container);
        if (!state.Running || state.Paused) {
            throw errors.inUse(
                container,
                state.Paused
                    ? 'The container is paused: unpause it first'
                    : 'The container does not run: start it first'
            );
        }
        return id;
    }

    /** Binary messages carry what is typed and shown. A text message of the client is a size; the last one it gets is `{ exitCode }`. */
    async run(socket: Socket, input: SessionInput, signal: AbortSignal): Promise<void> {
        this.#refuseOverLimit();
        this.#open += 1;
        try {
            await this.#mustRun(input.container);
            const opened = input.attach ? await this.#attach(input) : await this.#execute(input);
            await this.#connect(socket, opened, signal);
        } finally {
            this.#open -= 1;
        }
    }

    async #execute({ container, command, user, columns, rows }: SessionInput): Promise<Opened> {
        const engine = this.#engine;
        const { Id: id } = await engine.call<{ Id: string }>('POST', `/containers/${container}/exec`, {
            body: {
                AttachStdin: true,
                AttachStdout: true,
                AttachStderr: true,
                Tty: true,
                Cmd: command,
                Env: ['TERM=xterm-256color'],
                ...(user === undefined ? {} : { User: user })
            }
        });
        const stream = await engine.upgrade(`/exec/${id}/start`, { body: { Detach: false, Tty: true } });
        const resize = async (size: TerminalSize): Promise<void> => {
            await engine.call('POST', `/exec/${id}/resize`, { query: { w: size.columns, h: size.rows } });
        };
        // The process may not be there yet, or be over already.
        await resize({ columns, rows }).catch(() => undefined);
        return {
            stream,
            tty: true,
            farewell: leave,
            resize,
            exitCode: async () =>
                (await engine.call<{ ExitCode: number | null }>('GET', `/exec/${id}/json`)).ExitCode
        };
    }

    async #attach({ container, columns, rows }: SessionInput): Promise<Opened> {
        const engine = this.#engine;
        const { Config: config } = await this.#inventory.container(container);
        const tty = config.Tty === true;
        const stream = await engine.upgrade(`/containers/${container}/attach`, {
            query: { stream: true, stdin: config.OpenStdin === true, stdout: true, stderr: true }
        });
        const resize = async (size: TerminalSize): Promise<void> => {
            if (tty) {
                const query = { w: size.columns, h: size.rows };
                await engine.call('POST', `/containers/${container}/resize`, { query });
            }
        };
        await resize({ columns, rows });
        return {
            stream,
            tty,
            farewell: new Uint8Array(),
            resize,
            exitCode: () => this.#exitCodeOf(container)
        };
    }

    /** The exit code of a container whose output has ended; null where it runs on. An engine may notice its end a moment after that of its output. */
    async #exitCodeOf(container: string): Promise<number | null> {
        for (let look = 0; look < looksForEnd; look += 1) {
            const { State: state } = await this.#inventory.container(container);
            if (!state.Running) {
                return state.ExitCode;
            }
            await wait(pauseMs, undefined, { signal: this.#ctx.signal });
        }
        return null;
    }

    async #connect(
        socket: Socket,
        { stream, tty, farewell, resize, exitCode }: Opened,
        signal: AbortSignal
    ): Promise<void> {
        let left = false;
        const end = (): void => {
            left = true;
            stream.end(farewell, () => stream.destroy());
        };
        // A connection that breaks ends the loops below; nothing else has to hear of it.
        stream.on('error', () => undefined);
        signal.addEventListener('abort', end, { once: true });
        const sending = (async () => {
            for await (const { bytes } of readFrames(stream, tty)) {
                await socket.send(bytes);
            }
            if (!left) {
                await socket.send(JSON.stringify({ exitCode: await exitCode() }));
                await socket.close(1000, 'The command ended');
            }
        })();
        sending.catch(() => socket.close(1011, 'The engine cut the session').catch(() => undefined));
        try {
            for await (const message of socket) {
                if (typeof message === 'string') {
                    await resize(readSize(message));
                } else if (!stream.write(message)) {
                    await drained(stream);
                }
            }
        } finally {
            signal.removeEventListener('abort', end);
            if (!left) {
                end();
            }
            await sending.catch(() => undefined);
        }
    }

    #refuseOverLimit(): void {
        const { sessions: limit } = this.#ctx.settings;
        if (this.#open >= limit) {
            throw fail.TOO_MANY_SESSIONS({ limit });
        }
    }
}

/** @throws VALIDATION_FAILED 40001 */
function readSize(message: string): TerminalSize {
    let value: unknown = null;
    try {
        value = JSON.parse(message);
    } catch {
        // Refused below.
    }
    const { columns, rows } = (value ?? {}) as { columns?: unknown; rows?: unknown };
    const fits = (given: unknown, most: number): given is number =>
        Number.isInteger(given) && (given as number) >= 1 && (given as number) <= most;
    if (!fits(columns, mostColumns) || !fits(rows, mostRows)) {
        const shape = `A text message is { "columns": 1 to ${mostColumns}, "rows": 1 to ${mostRows} }`;
        throw errors.invalid([{ path: '', message: shape }]);
    }
    return { columns, rows };
}
