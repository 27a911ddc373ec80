/** The services of one generation of the plugin. */
import { Catalogue } from './apps/catalogue.ts';
import { Apps } from './install/apps.ts';
import { Backups } from './install/backups.ts';
import { AppHosts } from './install/hosts.ts';
import { Operations } from './install/operations.ts';
import { Drafts } from './install/planning/drafts.ts';
import { Planner } from './install/planning/planner.ts';
import { InstalledStore } from './install/store.ts';
import { Trial } from './install/trial.ts';
import type { Machine } from './machine.ts';
import type { Ctx } from './settings.ts';
import { FileStore } from './sources/files.ts';
import { Sources } from './sources/sources.ts';
import { Syncs } from './sources/sync.ts';
import { Updates } from './updates/updates.ts';

/** What the routes ask. */
export interface Services {
    readonly machine: Machine;
    readonly files: FileStore;
    readonly sources: Sources;
    readonly syncs: Syncs;
    readonly catalogue: Catalogue;
    readonly planner: Planner;
    readonly drafts: Drafts;
    readonly store: InstalledStore;
    readonly hosts: AppHosts;
    readonly operations: Operations;
    readonly backups: Backups;
    readonly apps: Apps;
    readonly updates: Updates;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const files = new FileStore(ctx);
    const sources = new Sources(ctx, files);
    const catalogue = new Catalogue(ctx, sources, files);
    const planner = new Planner(ctx, machine);
    const store = new InstalledStore(ctx, files);
    const drafts = new Drafts(ctx, { catalogue, planner, store, machine });
    const trial = new Trial(ctx, machine);
    const hosts = new AppHosts(ctx);
    const operations = new Operations({ ctx, store, drafts, trial, hosts, machine });
    const backups = new Backups(ctx, { store, operations, machine });
    const apps = new Apps({ ctx, store, catalogue, drafts, trial, hosts, operations, backups, machine });
    const updates = new Updates(ctx, { catalogue, store, drafts, apps, machine });
    const syncs = new Syncs(ctx, { sources, files, machine });
    return {
        ...{ machine, files, sources, syncs, catalogue, planner, drafts, store },
        ...{ hosts, operations, backups, apps, updates }
    };
}
