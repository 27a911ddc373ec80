/** The services of one generation of the plugin. */
import { Containers } from './containers/containers.ts';
import { Making } from './containers/making.ts';
import { Engine } from './engine/engine.ts';
import { Inventory } from './engine/inventory.ts';
import { Images } from './images/images.ts';
import { Registries } from './images/registries.ts';
import { Exceptions } from './policy/exceptions.ts';
import { Policy } from './policy/policy.ts';
import type { Ctx } from './settings.ts';
import { StackControl } from './stacks/control.ts';
import { Planner } from './stacks/planner.ts';
import { StackStore } from './stacks/revisions.ts';
import { Stacks } from './stacks/stacks.ts';
import { Events } from './streams/events.ts';
import { Logs } from './streams/logs.ts';
import { StatsFeed } from './streams/stats.ts';

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
    return {
        engine,
        inventory,
        exceptions,
        policy,
        registries,
        images,
        containers: new Containers({ ctx, engine, inventory, policy, images, making }),
        store,
        stacks: new Stacks({
            ctx,
            engine,
            inventory,
            images,
            making,
            planner,
            store,
            control: new StackControl(engine, inventory, making)
        }),
        logs: new Logs(engine, inventory),
        stats: new StatsFeed(engine, inventory),
        events: new Events(engine)
    };
}
