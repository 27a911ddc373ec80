/** Ports of servers that the panel runs. */
import { readFile } from 'node:fs/promises';

import { errors } from '@portico/sdk';

import type { Servers } from '../../servers/servers.ts';
import type { Ctx } from '../../settings.ts';

/** Chooses ports for managed servers that no other server uses. */
export class Ports {
    readonly #ctx: Ctx;
    readonly #servers: Servers;

    constructor(ctx: Ctx, servers: Servers) {
        this.#ctx = ctx;
        this.#servers = servers;
    }

    /** The wanted port, or the first of the settings that is free. @throws CONFLICT 40900 for one that is taken, IN_USE 40901 when all are */
    async choose(wanted: number | undefined): Promise<number> {
        const rows = await this.#servers.list();
        const taken = new Set([
            ...(await portsInUse()),
            ...rows.filter(({ mode }) => mode === 'managed').map(({ port }) => port)
        ]);
        const { from, to } = this.#ctx.settings.ports ?? { from: 33_060, to: 33_999 };
        for (let port = wanted ?? from; port <= (wanted ?? to); port += 1) {
            if (!taken.has(port)) {
                return port;
            }
        }
        throw wanted === undefined ? errors.inUse(`the ports ${from} to ${to}`) : errors.conflict('port');
    }
}

/**
 * Ports of this machine that a program listens on, or that an outgoing connection has: no server can take either. Source: proc_net_tcp(5); the state 06
 * is TIME_WAIT, which hinders no server.
 */
async function portsInUse(): Promise<ReadonlySet<number>> {
    const tables = await Promise.all(
        ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => ''))
    );
    const lines = tables
        .join('\n')
        .matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} (?!06)/gm);
    return new Set([...lines].map(([, port = '']) => parseInt(port, 16)));
}
