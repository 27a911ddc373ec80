/** The ways to the panel: where it and its engine listen, and whether the engine leads to it. */
import { type Host, isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { Caller, PanelWay } from './lock-out.ts';

/** How the panel can be reached. */
export interface PanelWays {
    readonly listeners: readonly PanelWay[];
    /** Whether a host of the engine leads to the panel. */
    readonly isBehindEngine: boolean;
}

/** Reads the ways to the panel. Without the grant for it, the port that the caller named is taken for the panel's own. */
export async function panelWays(ctx: Ctx, { host }: Caller): Promise<PanelWays> {
    const listeners = await orEmpty(ctx.panel.listeners());
    const hosts = await orEmpty(ctx.hosts.list());
    const ways = listeners.filter(({ protocol }) => protocol === 'tcp');
    const [, port] = /:(\d{1,5})$/.exec(host ?? '') ?? [];
    if (ways.length === 0 && port !== undefined) {
        return { listeners: [{ role: 'panel', address: '::', port: Number(port) }], isBehindEngine: false };
    }
    const ports = ways.filter(({ role }) => role === 'panel').map((way) => way.port);
    return { listeners: ways, isBehindEngine: hosts.some((each) => leadsTo(each, ports)) };
}

/** Whether a host forwards to one of these ports of this machine. */
function leadsTo({ enabled, upstream, upstreams }: Host, ports: readonly number[]): boolean {
    const addresses = Array.isArray(upstreams)
        ? upstreams.map((each: { readonly address?: unknown }) => String(each.address))
        : [];
    return (
        enabled &&
        [upstream ?? '', ...addresses].some((text) =>
            ports.some((port) => text.endsWith(`:${port}`) || text.includes(`:${port}/`))
        )
    );
}

async function orEmpty<T>(list: Promise<readonly T[]>): Promise<readonly T[]> {
    try {
        return await list;
    } catch (error) {
        if (isFailure(error)) {
            return [];
        }
        throw error;
    }
}
