/** One server behind the gateway with everything that is under way on it, so that it can be taken away without cutting off requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';

import type { HttpServer } from '../http/server.ts';

export interface Mount {
    readonly server: HttpServer;
    /** @param after - called when the response is over */
    request(request: IncomingMessage, response: ServerResponse, expecting: boolean, after?: () => void): void;
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
    inject(options: ServerInjectOptions): Promise<ServerInjectResponse>;
    /** Requests, sockets and injected calls under way. */
    inFlight(): number;
    /** Ends requests and sockets at once; how many. An injected call has nothing that could be cut: `drain` does not wait for it any more. */
    cut(): number;
    /**
     * Ends streams and sockets, waits for the rest at most `milliseconds`, cuts what is left and stops the server.
     * Resolves with how many had to be cut. Nothing new must reach the mount any more.
     */
    drain(milliseconds: number): Promise<number>;
    /** The caller decided not to wait: the drain, now or later, is short. */
    hurry(): void;
}

/** What is about to end may still do so. */
const hurriedMs = 250;

export function createMount(server: HttpServer): Mount {
    const responses = new Set<ServerResponse>();
    const sockets = new Set<Duplex>();
    let injected = 0;
    let isCut = false;
    let isHurried = false;
    let giveUp: (milliseconds: number) => void = () => undefined;
    let idle: () => void = () => undefined;
    const inFlight = (): number => responses.size + sockets.size + injected;
    const tell = (): void => {
        if (inFlight() === 0) {
            idle();
        }
    };
    const left = <T>(set: Set<T>, member: T): void => {
        set.delete(member);
        tell();
    };
    const cut = (): number => {
        const count = inFlight();
        for (const each of [...responses, ...sockets]) {
            each.destroy();
        }
        isCut = true;
        return count;
    };
    return {
        server,
        request(request, response, expecting, after) {
            responses.add(response);
            response.once('close', () => {
                after?.();
                left(responses, response);
            });
            if (expecting) {
                server.handleExpecting(request, response);
            } else {
                server.handle(request, response);
            }
        },
        upgrade(request, socket, head) {
            sockets.add(socket);
            socket.once('close', () => left(sockets, socket));
            server.upgrade(request, socket, head);
        },
        async inject(options) {
            injected += 1;
            try {
                return await server.inject(options);
            } finally {
                injected -= 1;
                tell();
            }
        },
        inFlight,
        cut,
        async drain(milliseconds) {
            server.endStreams();
            if (inFlight() > 0 && !isCut) {
                await new Promise<void>((resolve) => {
                    let timer: NodeJS.Timeout | undefined;
                    giveUp = (patience) => {
                        clearTimeout(timer);
                        timer = setTimeout(resolve, patience);
                    };
                    giveUp(isHurried ? Math.min(hurriedMs, milliseconds) : milliseconds);
                    idle = () => {
                        clearTimeout(timer);
                        resolve();
                    };
                });
                giveUp = () => undefined;
            }
            const late = isCut ? 0 : cut();
            await server.stop();
            return late;
        },
        hurry() {
            isHurried = true;
            giveUp(hurriedMs);
        }
    };
}
