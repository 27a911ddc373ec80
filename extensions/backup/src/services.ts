/** The services of one generation of the plugin. */
import { Coverage } from './coverage/coverage.ts';
import { Drills } from './drills/drills.ts';
import { RecoveryKits } from './kit/recovery-kits.ts';
import { Plans } from './plans/plans.ts';
import { Copies } from './repositories/copies.ts';
import { Keys } from './repositories/keys.ts';
import { Repositories } from './repositories/repositories.ts';
import { Restic } from './restic/restic.ts';
import { Runs } from './runs/runs.ts';
import { Sources } from './runs/sources.ts';
import { Scratch } from './scratch.ts';
import type { Ctx } from './settings.ts';
import { InPlace } from './snapshots/in-place.ts';
import { Restores } from './snapshots/restore.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import { Rclone } from './targets/rclone.ts';
import { Targets } from './targets/targets.ts';
import { Work } from './work.ts';

/** What the routes ask. */
export interface Services {
    readonly restic: Restic;
    readonly repositories: Repositories;
    readonly copies: Copies;
    readonly keys: Keys;
    readonly plans: Plans;
    readonly runs: Runs;
    readonly scratch: Scratch;
    readonly sources: Sources;
    readonly snapshots: Snapshots;
    readonly inPlace: InPlace;
    readonly restores: Restores;
    readonly drills: Drills;
    readonly work: Work;
    readonly kits: RecoveryKits;
    readonly coverage: Coverage;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const restic = new Restic(ctx);
    const repositories = new Repositories(ctx, restic, new Targets(ctx), new Rclone(ctx));
    const scratch = new Scratch(ctx);
    const sources = new Sources(ctx, scratch);
    const snapshots = new Snapshots(ctx, restic, repositories);
    const copies = new Copies(restic, repositories, snapshots);
    const inPlace = new InPlace(ctx);
    const drills = new Drills(ctx, restic, repositories, snapshots, scratch);
    const work = new Work(ctx, restic, repositories, drills);
    const runs: Runs = new Runs({ ctx, restic, repositories, sources, snapshots, copies }, scratch, (id) =>
        plans.get(id)
    );
    const plans = new Plans(ctx, repositories, {
        run: (plan, trigger) => runs.start(plan, { trigger }),
        check: (plan) => work.check(plan),
        drill: (plan) => work.drill(plan)
    });
    return {
        ...{
            restic,
            repositories,
            copies,
            keys: new Keys(restic, repositories),
            scratch,
            sources,
            snapshots
        },
        ...{ runs, plans, inPlace, drills, work },
        restores: new Restores({ ctx, restic, repositories, snapshots, scratch, inPlace }),
        kits: new RecoveryKits(repositories, plans),
        coverage: new Coverage(ctx, repositories, plans, sources, drills)
    };
}
