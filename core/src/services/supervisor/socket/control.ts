/** The supervisor's socket: reads calls, and answers them. */
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

import { ServiceNotReloadable, ServiceUnknown } from '../../port.ts';
import type { ServedCalls } from '../supervisor.ts';
import { type Answer, type Call, Lines, type Refusal, socketName } from './protocol.ts';
import { socketAddress } from './socket-address.ts';

/** Answers calls on the socket of a folder. */
export class ControlServer {
    readonly #folder: string;
    readonly #calls: ServedCalls;
    readonly #retire: () => void;
    readonly #server: Server;
    readonly #sockets = new Set<Socket>();

    /** @param retire - is called after the call `retire` was answered */
    constructor(folder: string, calls: ServedCalls, retire: () => void) {
        this.#folder = folder;
        this.#calls = calls;
        this.#retire = retire;
        this.#server = createServer((socket) => this.#serve(socket));
    }

    /** Listens. The caller holds the lock of the folder, so a socket that lies there belongs to a supervisor that has ended. */
    async listen(): Promise<void> {
        rmSync(join(this.#folder, socketName), { force: true });
        await new Promise<void>((resolve, reject) => {
            this.#server.once('error', reject);
            this.#server.listen(socketAddress(this.#folder).path, resolve);
        });
    }

    close(): void {
        this.#server.close();
        this.#sockets.forEach((socket) => socket.destroy());
    }

    #serve(socket: Socket): void {
        const lines = new Lines();
        this.#sockets.add(socket);
        socket.setEncoding('utf8');
        socket.on('data', (text: string) =>
            lines.push(text).forEach((line) => void this.#answer(socket, line))
        );
        socket.on('error', () => undefined);
        socket.on('close', () => this.#sockets.delete(socket));
    }

    async #answer(socket: Socket, line: string): Promise<void> {
        const { id, method, input } = JSON.parse(line) as Call;
        if (method === 'retire') {
            socket.end(`${JSON.stringify({ id, result: null })}\n`, () => this.#retire());
            return;
        }
        let answer: Answer;
        try {
            // The panel sends what `Calls` says.
            answer = { id, result: await this.#calls[method](input as never) };
        } catch (error) {
            answer = {
                id,
                refusal: refusalOf(error),
                message: error instanceof Error ? error.message : String(error)
            };
        }
        socket.write(`${JSON.stringify(answer)}\n`);
    }
}

function refusalOf(error: unknown): Refusal {
    const { code } = error as NodeJS.ErrnoException;
    return error instanceof ServiceUnknown
        ? 'unknown'
        : error instanceof ServiceNotReloadable
          ? 'notReloadable'
          : code === 'ENOSPC' || code === 'EDQUOT'
            ? 'storageFull'
            : 'failed';
}
