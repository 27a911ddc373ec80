/** One server behind the gateway with everything that is under way on it, so that it can be taken away without cutting anybody off. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { HttpServer } from '../http/server.ts';

export interface Mount {
    readonly server: HttpServer;
    request(request: IncomingMessage, response: ServerResponse, expecting: boolean): void;
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
    /** Requests and sockets under way. */
    inFlight(): number;
    /**
     * Ends streams and sockets, waits for the rest at most `milliseconds`, cuts what is left and stops the server.
     * Resolves with how many had to be cut. Nothing new must reach the mount any more.
     */
    drain(milliseconds: number): Promise<number>;
}

export function createMount(server: HttpServer): Mount {
    const responses = new Set<ServerResponse>();
    const sockets = new Set<Duplex>();
    let idle: () => void = () => undefined;
    const left = <T>(set: Set<T>, member: T): void => {
        set.delete(member);
        if (responses.size + sockets.size === 0) {
            idle();
        }
    };
    return {
        server,
        request(request, response, expecting) {
            responses.add(response);
            response.once('close', () => left(responses, response));
            if (expecting) {
                server.handleExpecting(request, response);
            }
            else {
                server.handle(request, response);
            }
        },
        upgrade(request, socket, head) {
            sockets.add(socket);
            socket.once('close', () => left(sockets, socket));
            server.upgrade(request, socket, head);
        },
        inFlight: () => responses.size + sockets.size,
        async drain(milliseconds) {
            server.endStreams();
            if (responses.size + sockets.size > 0) {
                await new Promise<void>((resolve) => {
                    const timer = setTimeout(resolve, milliseconds);
                    idle = () => {
                        clearTimeout(timer);
                        resolve();
                    };
                });
            }
            const cut = responses.size + sockets.size;
            for (const response of responses) {
                response.destroy();
            }
            for (const socket of sockets) {
                socket.destroy();
            }
            await server.stop();
            return cut;
        }
    };
}
