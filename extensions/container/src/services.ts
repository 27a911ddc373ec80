/** The services of one generation of the plugin. */
import { Builds } from './builds/builds.ts';
import { Containers } from './containers/containers.ts';
import { Making } from './containers/making.ts';
import { Engine } from './engine/engine.ts';
import { Inventory } from './engine/inventory.ts';
import { Images } from './images/images.ts';
import { Registries } from './images/registries.ts';
import { Exceptions } from './policy/exceptions.ts';
import { Policy } from './policy/policy.ts';
import type { Ctx } from './settings.ts';
import { StackChanges } from './stacks/changes.ts';
import { StackControl } from './stacks/control.ts';
import { Deployer } from './stacks/deployer.ts';
import { Planner } from './stacks/planner.ts';
import { StackStore } from './stacks/revisions.ts';
import { Stacks } from './stacks/stacks.ts';
import { StackRunner } from './stacks/work.ts';
import { Storage } from './storage/storage.ts';
import { Events } from './streams/events.ts';
import { Logs } from './streams/logs.ts';
import { StatsFeed } from './streams/stats.ts';
import { VolumeArchives } from './volumes/archives.ts';
import { Snapshots } from './volumes/snapshots.ts';

/** What the routes ask. */
export interface Services {
    readonly engine: Engine;
    readonly inventory: Inventory;
    readonly exceptions: Exceptions;
    readonly policy: Policy;
    readonly registries: Registries;
    readonly images: Images;
    readonly containers: Containers;
    readonly store: StackStore;
    readonly stacks: Stacks;
    readonly changes: StackChanges;
    readonly runner: StackRunner;
    readonly builds: Builds;
    readonly archives: VolumeArchives;
    readonly snapshots: Snapshots;
    readonly logs: Logs;
    readonly stats: StatsFeed;
    readonly events: Events;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const engine = new Engine(ctx);
    const inventory = new Inventory(engine);
    const exceptions = new Exceptions(ctx);
    const policy = new Policy(ctx, { inventory, exceptions, engine });
    const registries = new Registries(ctx, engine);
    const images = new Images(ctx, { engine, inventory, registries });
    const making = new Making(ctx, engine, inventory);
    const store = new StackStore(ctx);
    const planner = new Planner(ctx, inventory, policy);
    const stacks = new Stacks({ inventory, planner, store });
    const deployer = new Deployer({ engine, inventory, images, making, planner, store });
    const control = new StackControl(engine, inventory, making);
    const storage = new Storage(ctx);
    const archives = new VolumeArchives(ctx, { engine, inventory, making });
    return {
        engine,
        inventory,
        exceptions,
        policy,
        registries,
        images,
        containers: new Containers({ ctx, engine, inventory, policy, images, making }),
        store,
        stacks,
        changes: new StackChanges({ inventory, planner, store, stacks, deployer, control }),
        runner: new StackRunner(ctx),
        builds: new Builds(ctx, { engine, registries, storage }),
        archives,
        snapshots: new Snapshots(ctx, { inventory, making, archives, storage }),
        logs: new Logs(engine, inventory),
        stats: new StatsFeed(engine, inventory),
        events: new Events(engine)
    };
}
