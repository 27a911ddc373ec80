/** A proposal for the pool of a site, from what the machine has and what the workers took so far. */
import { readStatus } from '../fpm/status.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Site } from '../sites/site.ts';
import type { Pool } from './pool.ts';

/** A proposal, and why. */
export interface Proposal {
    readonly pool: Pool;
    readonly reasons: string[];
}

const mebibyte = 2 ** 20;
/** What PHP may take of the machine's memory, all sites together. */
const shareForPhp = 0.5;
/** What a worker takes while nothing is known of the site's own. */
const usualWorkerBytes = 48 * mebibyte;
const leastWorkerBytes = 16 * mebibyte;
const mostWorkers = 500;
const fewestWorkers = 2;
/** More busy workers for each processor only wait for each other. */
const workersPerProcessor = 25;

/** Proposes a pool. Nothing is changed. */
export async function autoSize(ctx: Ctx, machine: Machine, site: Site, sites: number): Promise<Proposal> {
    const reasons: string[] = [];
    const status = await readStatus(ctx, site, site.slot, site.revision).catch(() => null);
    const uid = (
        await ctx
            .files(site.folder)
            .stat('private')
            .catch(() => null)
    )?.uid;
    const used = uid === undefined ? 0 : await machine.memoryOf(uid);
    const measured = status === null || status.total === 0 ? 0 : used / status.total;
    const worker = Math.max(leastWorkerBytes, measured === 0 ? usualWorkerBytes : measured);
    const budget = (machine.memoryBytes() * shareForPhp) / Math.max(1, sites);
    reasons.push(
        `The machine has ${megabytes(machine.memoryBytes())}; half of it, shared by ${sites} sites, is ${megabytes(budget)}`,
        measured === 0
            ? `No worker runs, so ${megabytes(worker)} are counted for each`
            : `The ${status?.total ?? 0} workers that run take ${megabytes(worker)} each`
    );
    const byMemory = Math.floor(budget / worker);
    const byProcessor = machine.processors() * workersPerProcessor;
    const maxChildren = Math.max(fewestWorkers, Math.min(byMemory, byProcessor, mostWorkers));
    if (byProcessor < byMemory) {
        reasons.push(`${machine.processors()} processors keep at most ${byProcessor} workers busy`);
    }
    if (status !== null && status.maxChildrenReached > 0) {
        reasons.push(`All workers were busy ${status.maxChildrenReached} times since the last start`);
    }
    const isBusy =
        status !== null && (status.maxActive > site.pool.maxChildren / 2 || status.maxChildrenReached > 0);
    reasons.push(
        isBusy
            ? 'Many workers were busy at the same time, so some should always wait'
            : 'Few workers were busy at the same time, so they are started as they are needed'
    );
    return { pool: { ...site.pool, ...shape(maxChildren, isBusy) }, reasons };
}

function shape(maxChildren: number, isBusy: boolean): Partial<Pool> {
    const minSpare = Math.max(1, Math.floor(maxChildren / 10));
    const maxSpare = Math.min(maxChildren, Math.max(minSpare + 1, Math.floor(maxChildren / 4)));
    return {
        mode: isBusy ? 'dynamic' : 'ondemand',
        maxChildren,
        minSpare,
        maxSpare,
        startServers: Math.floor((minSpare + maxSpare) / 2)
    };
}

function megabytes(bytes: number): string {
    return `${Math.round(bytes / mebibyte)} MiB`;
}
