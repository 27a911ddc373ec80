/** The services of one generation of the plugin. */
import { Builds } from './builds/builds.ts';
import { Containers } from './containers/containers.ts';
import { Making } from './containers/making.ts';
import { Replacing } from './containers/replacing.ts';
import { Sessions } from './containers/sessions.ts';
import { Daemon } from './daemon/daemon.ts';
import { Adopted } from './engine/adopted.ts';
import { Engine } from './engine/engine.ts';
import { Inventory } from './engine/inventory.ts';
import { ContainerHosts } from './hosts/hosts.ts';
import { Publishing } from './hosts/publishing.ts';
import { ImageArchives } from './images/archives.ts';
import { Images } from './images/images.ts';
import { Registries } from './images/registries.ts';
import { RegistryClient } from './images/registry-client.ts';
import { ImageUpdates } from './images/updates.ts';
import type { Machine } from './machine.ts';
import { Exceptions } from './policy/exceptions.ts';
import { Policy } from './policy/policy.ts';
import { Prune } from './prune/prune.ts';
import type { Ctx } from './settings.ts';
import { Adoption } from './stacks/adoption/adoption.ts';
import { StackChanges } from './stacks/changes.ts';
import { StackControl } from './stacks/control.ts';
import { AutoUpdates } from './stacks/deploying/auto-updates.ts';
import { Deployer } from './stacks/deploying/deployer.ts';
import { StackHooks } from './stacks/hooks.ts';
import { Planner } from './stacks/planner.ts';
import { StackStore } from './stacks/revisions.ts';
import { Stacks } from './stacks/stacks.ts';
import { StackRunner } from './stacks/work.ts';
import { Storage } from './storage/storage.ts';
import { Events } from './streams/events.ts';
import { Logs } from './streams/logs.ts';
import { StatsFeed } from './streams/stats.ts';
import { VolumeArchives } from './volumes/archives.ts';
import { VolumeContents } from './volumes/contents.ts';
import { Snapshots } from './volumes/snapshots.ts';

/** What the routes ask. */
export interface Services {
    readonly engine: Engine;
    readonly daemon: Daemon;
    readonly inventory: Inventory;
    readonly exceptions: Exceptions;
    readonly policy: Policy;
    readonly registries: Registries;
    readonly images: Images;
    readonly updates: ImageUpdates;
    readonly containers: Containers;
    readonly replacing: Replacing;
    readonly store: StackStore;
    readonly stacks: Stacks;
    readonly changes: StackChanges;
    readonly runner: StackRunner;
    readonly adoption: Adoption;
    readonly hooks: StackHooks;
    readonly autoUpdates: AutoUpdates;
    readonly hosts: ContainerHosts;
    readonly builds: Builds;
    readonly imageArchives: ImageArchives;
    readonly sessions: Sessions;
    readonly storage: Storage;
    readonly prune: Prune;
    readonly archives: VolumeArchives;
    readonly contents: VolumeContents;
    readonly snapshots: Snapshots;
    readonly logs: Logs;
    readonly stats: StatsFeed;
    readonly events: Events;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const engine = new Engine(ctx);
    const adopted = new Adopted(ctx);
    const inventory = new Inventory(engine, adopted);
    const exceptions = new Exceptions(ctx);
    const policy = new Policy(ctx, { inventory, exceptions, engine });
    const registries = new Registries(ctx, engine);
    const client = new RegistryClient(ctx, { engine, registries });
    const updates = new ImageUpdates(ctx, { engine, inventory, registries, client });
    const images = new Images(ctx, { engine, inventory, registries, updates });
    const making = new Making(ctx, engine, inventory);
    const store = new StackStore(ctx);
    const planner = new Planner(ctx, inventory, policy);
    const stacks = new Stacks({ inventory, planner, store });
    const deployer = new Deployer({ engine, inventory, adopted, images, making, planner, store });
    const control = new StackControl(engine, inventory, making);
    const storage = new Storage(ctx);
    const archives = new VolumeArchives(ctx, { engine, inventory, making });
    const replacing = new Replacing(inventory, making);
    const containers = new Containers({ ctx, engine, inventory, policy, images, making, replacing });
    const changes = new StackChanges({ inventory, adopted, planner, store, stacks, deployer, control });
    const runner = new StackRunner(ctx);
    return {
        engine,
        daemon: new Daemon(ctx, engine, machine),
        inventory,
        exceptions,
        policy,
        registries,
        images,
        updates,
        containers,
        replacing,
        store,
        stacks,
        changes,
        runner,
        adoption: new Adoption(ctx, { inventory, adopted, planner, store }),
        hooks: new StackHooks(ctx, { store, changes, runner }),
        autoUpdates: new AutoUpdates(ctx, { store, changes, runner, updates }),
        hosts: new ContainerHosts(ctx, inventory, new Publishing({ containers, changes, runner, store })),
        builds: new Builds(ctx, { engine, registries, storage }),
        imageArchives: new ImageArchives(ctx, { engine, storage }),
        sessions: new Sessions(ctx, engine, inventory),
        storage,
        prune: new Prune(ctx, { engine, inventory, making, store }),
        archives,
        contents: new VolumeContents(ctx, archives),
        snapshots: new Snapshots(ctx, { inventory, making, archives, storage }),
        logs: new Logs(engine, inventory),
        stats: new StatsFeed(engine, inventory),
        events: new Events(engine)
    };
}
