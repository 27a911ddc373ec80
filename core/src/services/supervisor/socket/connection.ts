/** The panel's end of the supervisor's socket. */
import { closeSync, existsSync } from 'node:fs';
// eslint-disable-next-line no-restricted-imports -- a unix socket in the panel's own folder
import { connect, type Socket } from 'node:net';

import { ServiceNotReloadable, ServicesUnavailable, ServiceUnknown, StorageFull } from '../../port.ts';
import { type Answer, type Calls, Lines, type Refusal } from './protocol.ts';
import { socketAddress } from './socket-address.ts';

interface Waiting {
    resolve(result: unknown): void;
    reject(error: Error): void;
}

/** One connection to the supervisor. */
export class Connection {
    /** Resolves when the supervisor is gone, or `close` was called. */
    readonly closed: Promise<void>;
    readonly #socket: Socket;
    readonly #waiting = new Map<number, Waiting>();
    #next = 1;

    /** Connects; null when no supervisor listens. */
    static async open(folder: string): Promise<Connection | null> {
        if (!existsSync(folder)) {
            return null;
        }
        const { path, descriptor } = socketAddress(folder);
        try {
            const socket = connect(path);
            return await new Promise((resolve) => {
                socket.once('connect', () => resolve(new Connection(socket)));
                socket.once('error', () => resolve(null));
            });
        } finally {
            closeSync(descriptor);
        }
    }

    private constructor(socket: Socket) {
        this.#socket = socket;
        const lines = new Lines();
        socket.setEncoding('utf8');
        socket.on('data', (text: string) => lines.push(text).forEach((line) => this.#answered(line)));
        socket.on('error', () => undefined);
        socket.unref();
        this.closed = new Promise((resolve) =>
            socket.once('close', () => {
                const gone = new ServicesUnavailable('The supervisor of services ended during a call');
                this.#waiting.forEach(({ reject }) => reject(gone));
                this.#waiting.clear();
                resolve();
            })
        );
    }

    /** @throws the port's errors */
    call<K extends keyof Calls>(method: K, input: Parameters<Calls[K]>[0]): Promise<ReturnType<Calls[K]>> {
        if (this.#socket.destroyed) {
            return Promise.reject(new ServicesUnavailable('The supervisor of services has ended'));
        }
        const id = this.#next;
        this.#next += 1;
        const answer = new Promise<ReturnType<Calls[K]>>((resolve, reject) => {
            // The supervisor answers what `Calls` says.
            this.#waiting.set(id, { resolve: (result) => resolve(result as ReturnType<Calls[K]>), reject });
        });
        this.#socket.ref();
        this.#socket.write(`${JSON.stringify({ id, method, input })}\n`);
        return answer;
    }

    close(): void {
        this.#socket.destroy();
    }

    #answered(line: string): void {
        const answer = JSON.parse(line) as Answer;
        const waiting = this.#waiting.get(answer.id);
        this.#waiting.delete(answer.id);
        if (this.#waiting.size === 0) {
            this.#socket.unref();
        }
        if ('result' in answer) {
            waiting?.resolve(answer.result);
        } else {
            waiting?.reject(errorOf(answer.refusal, answer.message));
        }
    }
}

function errorOf(refusal: Refusal, message: string): Error {
    switch (refusal) {
        case 'unknown':
            return new ServiceUnknown(message);
        case 'notReloadable':
            return new ServiceNotReloadable(message);
        case 'storageFull':
            return new StorageFull(message);
        default:
            return new Error(message);
    }
}
