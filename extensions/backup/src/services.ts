/** The services of one generation of the plugin. */
import { Drills } from './drills/drills.ts';
import { Plans } from './plans/plans.ts';
import { Repositories } from './repositories/repositories.ts';
import { Restic } from './restic/restic.ts';
import { Runs } from './runs/runs.ts';
import { Sources } from './runs/sources.ts';
import type { Ctx } from './settings.ts';
import { Restores } from './snapshots/restore.ts';
import { Snapshots } from './snapshots/snapshots.ts';

/** What the routes ask. */
export interface Services {
    readonly restic: Restic;
    readonly repositories: Repositories;
    readonly plans: Plans;
    readonly runs: Runs;
    readonly sources: Sources;
    readonly snapshots: Snapshots;
    readonly restores: Restores;
    readonly drills: Drills;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const restic = new Restic(ctx);
    const repositories = new Repositories(ctx, restic);
    const sources = new Sources(ctx);
    const snapshots = new Snapshots(restic, repositories);
    const runs = new Runs({ ctx, restic, repositories, sources, snapshots });
    return {
        restic,
        repositories,
        sources,
        snapshots,
        runs,
        plans: new Plans(ctx, repositories, (plan, trigger) => runs.start(plan, trigger)),
        restores: new Restores(ctx, restic, repositories, snapshots),
        drills: new Drills(ctx, restic, repositories, snapshots, sources)
    };
}
