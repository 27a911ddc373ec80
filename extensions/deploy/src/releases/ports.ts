/** Ports of releases, on 127.0.0.1. */
import { DeploymentEntity } from '../entities.ts';
import { DeploymentFailed } from '../errors.ts';
import { listeners } from '../machine.ts';
import type { Ctx } from '../settings.ts';

/** Finds a port that neither a release has nor a program listens on. @throws DeploymentFailed START_FAILED */
export async function freePort(ctx: Ctx): Promise<number> {
    const { from, to } = ctx.settings.ports;
    const rows = await ctx.db.read((em) => em.find(DeploymentEntity, { port: { $ne: null } }));
    const taken = new Set([...rows.map(({ port }) => port), ...(await listeners()).keys()]);
    const count = to - from + 1;
    const start = Math.floor(Math.random() * count);
    for (let tried = 0; tried < count; tried += 1) {
        const port = from + ((start + tried) % count);
        if (!taken.has(port)) {
            return port;
        }
    }
    throw new DeploymentFailed('START_FAILED', `Every port from ${from} to ${to} is taken`);
}
