/** What the plugin asks of the machine by itself. */
import { createServer } from 'node:net';

/** The machine; tests have their own. */
export interface Machine {
    /** Milliseconds since 1970. */
    now(): number;
    /** As container images call it: amd64, arm64, … */
    readonly architecture: string;
    /** Minutes since midnight by the machine's clock. */
    minuteOfDay(): number;
    /** A port of 127.0.0.1 that nothing listens on. */
    freePort(): Promise<number>;
    /** Whether this machine could listen there now. */
    isFree(address: string, port: number): Promise<boolean>;
    /** Resolves after so many milliseconds; rejects when the signal aborts. */
    wait(ms: number, signal: AbortSignal): Promise<void>;
}

const names: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', arm: 'arm' };

/** The machine that this process runs on. */
export const realMachine: Machine = {
    now: () => Date.now(),
    architecture: names[process.arch] ?? process.arch,
    minuteOfDay() {
        const now = new Date();
        return now.getHours() * 60 + now.getMinutes();
    },
    async freePort() {
        const port = await listen('127.0.0.1', 0);
        if (port === null) {
            throw new Error('There is no free port on 127.0.0.1');
        }
        return port;
    },
    isFree: async (address, port) => (await listen(address, port)) !== null,
    wait(ms, signal) {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const abort = (): void => {
            clearTimeout(timer);
            reject(signal.reason as Error);
        };
        const timer = setTimeout(() => {
            signal.removeEventListener('abort', abort);
            resolve();
        }, ms);
        if (signal.aborted) {
            abort();
        } else {
            signal.addEventListener('abort', abort, { once: true });
        }
        return promise;
    }
};

/** The port that was listened on for a moment; null when it is taken or the address is not of this machine. */
function listen(host: string, port: number): Promise<number | null> {
    const { promise, resolve } = Promise.withResolvers<number | null>();
    const server = createServer();
    server.once('error', () => {
        server.close();
        resolve(null);
    });
    server.listen({ host, port, exclusive: true }, () => {
        const address = server.address();
        server.close(() => resolve(typeof address === 'object' ? (address?.port ?? null) : null));
    });
    return promise;
}
