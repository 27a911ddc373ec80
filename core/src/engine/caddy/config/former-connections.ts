import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** How long is waited at most, milliseconds, and for how many sockets. */
export interface DrainLimits {
    /** For connections. A download or a WebSocket may stay open for hours, and its request was read long ago. */
    readonly openMs: number;
    /** For listeners. The engine closes them as soon as it gets processor time. */
    readonly listenMs: number;
    /** To list more sockets of the machine takes the kernel several milliseconds. */
    readonly sockets: number;
}

const usualLimits: DrainLimits = { openMs: 100, listenMs: 1000, sockets: 1500 };

const pauseMs = 2;

const listening = '0A';
/** Established, and closed by the client only: the engine still answers. */
const open = new Set(['01', '08']);

/** A row of the kernel's list of TCP sockets. */
interface SocketRow {
    readonly port: number;
    /** Both addresses. */
    readonly ends: string;
    readonly state: string;
    readonly inode: string;
}

/**
 * The connections that a configuration of the engine still answers after the next one was loaded: those that it accepted before.
 * Notes before the load on which sockets the engine listens: each configuration has its own.
 * @param ports - the local ports on which the engine listens
 * @returns waits, after the load, until the former configuration listens nowhere, and then until its connections have ended or the time is over
 */
export const watchFormerConnections = (
    ports: ReadonlySet<number>,
    limits: DrainLimits = usualLimits
): (() => Promise<void>) => {
    const before = listenersOn(ports);
    return async () => {
        await until(() => listenersOn(ports).isDisjointFrom(before), limits.listenMs);
        if (countSockets() > limits.sockets) {
            await wait(limits.openMs);
            return;
        }
        const former = connectionsOn(ports);
        await until(() => connectionsOn(ports).isDisjointFrom(former), limits.openMs);
    };
};

const until = async (isSettled: () => boolean, withinMs: number): Promise<void> => {
    const end = performance.now() + withinMs;
    while (!isSettled() && performance.now() < end) {
        await wait(pauseMs);
    }
};

/** The inodes of the listening sockets on these ports. The kernel lists those first. */
const listenersOn = (ports: ReadonlySet<number>): ReadonlySet<string> => {
    const found = new Set<string>();
    for (const table of ['tcp', 'tcp6']) {
        for (const { port, state, inode } of rowsOf(table)) {
            if (state !== listening) {
                break;
            }
            if (ports.has(port)) {
                found.add(inode);
            }
        }
    }
    return found;
};

const connectionsOn = (ports: ReadonlySet<number>): ReadonlySet<string> => {
    const found = new Set<string>();
    for (const table of ['tcp', 'tcp6']) {
        for (const { port, state, ends } of rowsOf(table)) {
            if (open.has(state) && ports.has(port)) {
                found.add(ends);
            }
        }
    }
    return found;
};

/** How many TCP sockets the machine has, those included that only wait for their time to end; infinite where the kernel does not tell. */
const countSockets = (): number => {
    try {
        // TCP: inuse 11 orphan 0 tw 312 alloc 17 mem 2
        const counts = [4, 6].flatMap((version) => {
            const text = readFileSync(`/proc/net/sockstat${version === 4 ? '' : version}`, 'utf8');
            return [...(/\bTCP6?: inuse (\d+)(?:.* tw (\d+))?/.exec(text)?.slice(1) ?? [])];
        });
        return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
    } catch {
        return Infinity;
    }
};

/** Reads no more of the list than is asked for. Nothing where it cannot be read. */
function* rowsOf(table: string): Generator<SocketRow> {
    let file: number;
    try {
        file = openSync(`/proc/net/${table}`, 'r');
    } catch {
        return;
    }
    try {
        const page = Buffer.alloc(16_384);
        let rest = '';
        for (let size = readSync(file, page); size > 0; size = readSync(file, page)) {
            const lines = (rest + page.toString('latin1', 0, size)).split('\n');
            rest = lines.pop() ?? '';
            for (const line of lines) {
                const [number, local = '', remote, state = '', , , , , , inode = ''] = line
                    .trim()
                    .split(/\s+/);
                if (number !== 'sl') {
                    const port = Number.parseInt(local.split(':')[1] ?? '', 16);
                    yield { port, ends: `${local} ${remote}`, state, inode };
                }
            }
        }
    } finally {
        closeSync(file);
    }
}
