/** Ports of servers that the panel runs. */
import { errors } from '@portico/sdk';

import type { Servers } from '../servers/servers.ts';
import type { Ctx } from '../settings.ts';

/** Chooses ports. */
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
        const taken = new Set(rows.filter(({ mode }) => mode === 'managed').map(({ port }) => port));
        const { from, to } = this.#ctx.settings.ports ?? { from: 33_060, to: 33_999 };
        for (let port = wanted ?? from; port <= (wanted ?? to); port += 1) {
            if (!taken.has(port) && (await this.#isFree(port))) {
                return port;
            }
        }
        throw wanted === undefined ? errors.inUse(`the ports ${from} to ${to}`) : errors.conflict('port');
    }

    /** Whether no program of this machine listens there. */
    async #isFree(port: number): Promise<boolean> {
        const socket = this.#ctx.dial({ host: '127.0.0.1', port });
        try {
            return await new Promise<boolean>((resolve) => {
                socket.once('connect', () => resolve(false));
                socket.once('error', () => resolve(true));
            });
        } finally {
            socket.destroy();
        }
    }
}
