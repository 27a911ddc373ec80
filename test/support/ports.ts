import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Ports below the range that Linux gives to outgoing connections, so that none of those takes one first. */
const [lowest, highest] = [10_000, 32_767];

const given = new Set<number>();

/**
 * A TCP port of 127.0.0.1 on which nothing listens. No two calls of one process get the same port; between
 * processes the wide range makes it improbable.
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
