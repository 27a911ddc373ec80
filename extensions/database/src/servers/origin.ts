/** Where the programs of this machine come from, as MySQL sees them. */
import type { ServerRow } from '../entities.ts';

/** Whether a server runs in a container: those of the panel that do not have a port only. */
export function isContained({ mode, socket }: Pick<ServerRow, 'mode' | 'socket'>): boolean {
    return mode === 'managed' && socket === null;
}

/** The host of an account that a program of this machine uses. */
export function originOf(server: Pick<ServerRow, 'mode' | 'host' | 'socket'>): string {
    const { host, socket } = server;
    const isHere = host === 'localhost' || host?.startsWith('127.') === true;
    return socket !== null ? 'localhost' : isHere && !isContained(server) ? '127.0.0.1' : '%';
}
