import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** The range lies below the ports that Linux gives to outgoing connections, so no connection takes such a port. */
const [lowest, highest] = [10_000, 32_767];

const given = new Set<number>();

/**
 * Finds a TCP port of 127.0.0.1 on which nothing listens. Two calls of one process never get the same port. Two processes
 * rarely do, because the range is wide.
 */
export async function freePort(): Promise<number> {
    for (;;) {
        const port = randomInt(lowest, highest + 1);

        if (!given.has(port) && (await isFree(port))) {
            given.add(port);
            return port;
        }
    }
}

function isFree(port: number): Promise<boolean> {
    return new Promise((resolve) => {
        const server = createServer();
        server.once('error', () => resolve(false));
        server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
}
