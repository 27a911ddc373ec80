import { readFileSync } from 'node:fs';
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

const usualLimits: DrainLimits = { openMs: 25, listenMs: 1000, sockets: 1500 };

const pauseMs = 2;

const listening = '0A';
/** Established, and closed by the client only: the engine still answers. */
const open = new Set(['01', '08']);

/** The TCP sockets on some local ports. */
interface Sockets {
    /** Inodes: each configuration of the engine listens on sockets of its own. */
    readonly listening: ReadonlySet<string>;
    /** Both addresses of each connection. */
    readonly open: ReadonlySet<string>;
}

/**
 * The connections that a configuration of the engine still answers after the next one was loaded: those that it accepted before.
 * Looks at the sockets before the load. Where the kernel does not tell, or has too many to tell quickly, 25 ms are waited instead.
 * @param ports - the local ports on which the engine listens
 * @returns waits, after the load, until the former configuration listens nowhere, and then until its connections have ended or the time is over
 */
export const watchFormerConnections = (
    ports: ReadonlySet<number>,
    limits: DrainLimits = usualLimits
): (() => Promise<void>) => {
    const look = (): Sockets | null => socketsOn(ports, limits.sockets);
    const before = look();
    return async () => {
        const after = await settled(look, limits.listenMs, (now) => meet(now.listening, before?.listening));
        if (before === null || after === null) {
            await wait(limits.openMs);
            return;
        }
        await settled(look, limits.openMs, (now) => meet(now.open, after.open));
    };
};

/** Looks at the sockets until they are settled or the time is over. @returns what it saw last; null when there was nothing to see */
const settled = async (
    look: () => Sockets | null,
    withinMs: number,
    isUnsettled: (now: Sockets) => boolean
): Promise<Sockets | null> => {
    const end = performance.now() + withinMs;
    let now = look();
    while (now !== null && isUnsettled(now) && performance.now() < end) {
        await wait(pauseMs);
        now = look();
    }
    return now;
};

const meet = (found: ReadonlySet<string>, former: ReadonlySet<string> = new Set()): boolean =>
    !found.isDisjointFrom(former);

/** Null when the kernel's lists are not to be had, or too long. */
const socketsOn = (ports: ReadonlySet<number>, most: number): Sockets | null => {
    // One line each for both protocols: TCP: inuse 11 orphan 0 tw 312 alloc 17 mem 2
    const counts = [
        ...`${tableOf('sockstat')}${tableOf('sockstat6')}`.matchAll(/\bTCP6?: inuse (\d+)(?:.* tw (\d+))?/g)
    ];
    const count = counts.reduce((sum, [, used = 0, waiting = 0]) => sum + Number(used) + Number(waiting), 0);
    if (counts.length === 0 || count > most) {
        return null;
    }

    const sockets = { listening: new Set<string>(), open: new Set<string>() };
    for (const line of `${tableOf('tcp')}${tableOf('tcp6')}`.split('\n')) {
        const [, local = '', remote = '', state = '', , , , , , inode = ''] = line.trim().split(/\s+/);
        if (ports.has(Number.parseInt(local.split(':')[1] ?? '', 16))) {
            if (state === listening) {
                sockets.listening.add(inode);
            } else if (open.has(state)) {
                sockets.open.add(`${local} ${remote}`);
            }
        }
    }

    return sockets;
};

/** Read at once: the kernel hands out a page at a time, and each would cost a turn of the event loop. Empty where it cannot be read. */
const tableOf = (name: string): string => {
    try {
        return readFileSync(`/proc/net/${name}`, 'utf8');
    } catch {
        return '';
    }
};
