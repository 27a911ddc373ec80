import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** Longer than a queued connection waits to be read. */
const drainMs = 25;

/** To list more sockets takes the kernel longer than it could save. */
const mostSockets = 500;

/** Established, and closed by the client only: the engine still answers. */
const open = new Set(['01', '08']);

/**
 * Waits after a load for connections that the former configuration accepted and still answers: 25 ms, and not at all when there are none.
 * The engine has closed that configuration's listeners when it answers the load.
 * @param ports - the local ports on which the engine listens
 */
export const drainFormerConnections = async (ports: ReadonlySet<number>): Promise<void> => {
    if (await mayHaveConnections(ports)) {
        await wait(drainMs);
    }
};

/** Whether a TCP connection is open on one of these local ports; true as well where the kernel does not tell, or has many sockets to list. */
export const mayHaveConnections = async (ports: ReadonlySet<number>): Promise<boolean> => {
    try {
        // TCP: inuse 11 orphan 0 tw 312 alloc 17 mem 2
        const [, used, ending] = /^TCP: inuse (\d+) .*\btw (\d+)/m.exec(await read('sockstat')) ?? [];
        if (!(Number(used) + Number(ending) <= mostSockets)) {
            return true;
        }
        const tables = await Promise.all([read('tcp'), read('tcp6').catch(() => '')]);
        return tables
            .join('')
            .split('\n')
            .some((row) => isOpenOn(ports, row));
    } catch {
        return true;
    }
};

const isOpenOn = (ports: ReadonlySet<number>, row: string): boolean => {
    const [, local = '', , state = ''] = row.trim().split(/\s+/);
    return open.has(state) && ports.has(Number.parseInt(local.split(':')[1] ?? '', 16));
};

const read = (name: string): Promise<string> => readFile(`/proc/net/${name}`, 'utf8');
