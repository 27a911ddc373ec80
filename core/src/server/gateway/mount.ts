/** One server behind the gateway with everything that is under way on it, so that it can be taken away without cutting off requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';

import type { HttpServer } from '../http/server.ts';

/** How long what is under way may still take when the caller hurries. */
const hurriedMs = 250;

/** Hands requests to one server and counts them. */
export class Mount {
    readonly server: HttpServer;
    readonly #responses = new Set<ServerResponse>();
    readonly #sockets = new Set<Duplex>();
    #injected = 0;
    #isCut = false;
    #isHurried = false;
    #giveUp: (milliseconds: number) => void = () => undefined;
    #idle: () => void = () => undefined;

    constructor(server: HttpServer) {
        this.server = server;
    }

    /** @param after - called when the response is over */
    request(
        request: IncomingMessage,
        response: ServerResponse,
        expecting: boolean,
        after?: () => void
    ): void {
        this.#responses.add(response);
        response.once('close', () => {
            after?.();
            this.#responses.delete(response);
            this.#tell();
        });
        if (expecting) {
            this.server.handleExpecting(request, response);
        } else {
            this.server.handle(request, response);
        }
    }

    /** Hands over a request that wants to become a WebSocket. */
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
        this.#sockets.add(socket);
        socket.once('close', () => {
            this.#sockets.delete(socket);
            this.#tell();
        });
        this.server.upgrade(request, socket, head);
    }

    /** Sends a request past the network. */
    async inject(options: ServerInjectOptions): Promise<ServerInjectResponse> {
        this.#injected += 1;
        try {
            return await this.server.inject(options);
        } finally {
            this.#injected -= 1;
            this.#tell();
        }
    }

    /** Requests, sockets and injected calls under way. */
    inFlight(): number {
        return this.#responses.size + this.#sockets.size + this.#injected;
    }

    /** Ends requests and sockets at once. An injected call cannot be cut: `drain` does not wait for it any more. @returns how many were under way */
    cut(): number {
        const count = this.inFlight();
        for (const each of [...this.#responses, ...this.#sockets]) {
            each.destroy();
        }
        this.#isCut = true;
        return count;
    }

    /**
     * Ends streams and sockets, waits for the rest at most `milliseconds`, cuts what is left and stops the server.
     * Nothing new must reach the mount any more.
     *
     * @returns how many had to be cut
     */
    async drain(milliseconds: number): Promise<number> {
        this.server.endStreams();
        if (this.inFlight() > 0 && !this.#isCut) {
            await this.#untilIdle(this.#isHurried ? Math.min(hurriedMs, milliseconds) : milliseconds);
        }
        const late = this.#isCut ? 0 : this.cut();
        await this.server.stop();
        return late;
    }

    /** Shortens the drain, now or later: the caller decided not to wait. */
    hurry(): void {
        this.#isHurried = true;
        this.#giveUp(hurriedMs);
    }

    #tell(): void {
        if (this.inFlight() === 0) {
            this.#idle();
        }
    }

    async #untilIdle(milliseconds: number): Promise<void> {
        await new Promise<void>((resolve) => {
            let timer: NodeJS.Timeout | undefined;
            this.#giveUp = (patience) => {
                clearTimeout(timer);
                timer = setTimeout(resolve, patience);
            };
            this.#giveUp(milliseconds);
            this.#idle = () => {
                clearTimeout(timer);
                resolve();
            };
        });
        this.#giveUp = () => undefined;
    }
}
