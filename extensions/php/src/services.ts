/** The services of one generation of the plugin. */
import { Configurations } from './config/configurations.ts';
import { Masters } from './fpm/masters.ts';
import type { Machine } from './machine.ts';
import { FileOwners } from './sandbox/owner.ts';
import type { Ctx } from './settings.ts';
import { Changes } from './sites/changes.ts';
import { Creation } from './sites/creation/creation.ts';
import { Laravel } from './sites/creation/laravel.ts';
import { WordPress } from './sites/creation/wordpress.ts';
import { Locks } from './sites/locks.ts';
import { Accounts } from './sites/machine/accounts.ts';
import { Folders } from './sites/machine/folders.ts';
import { SiteHosts } from './sites/machine/hosts.ts';
import { Store } from './sites/store.ts';
import { Slots } from './switching/slots.ts';
import { Switches } from './switching/switches.ts';
import { Tools } from './tools/tools.ts';
import { Packages } from './versions/packages.ts';
import { Releases } from './versions/releases.ts';

/** What the routes ask. */
export interface Services {
    readonly machine: Machine;
    readonly store: Store;
    readonly locks: Locks;
    readonly releases: Releases;
    readonly accounts: Accounts;
    readonly folders: Folders;
    readonly configurations: Configurations;
    readonly masters: Masters;
    readonly hosts: SiteHosts;
    readonly slots: Slots;
    readonly creation: Creation;
    readonly changes: Changes;
    readonly switches: Switches;
    readonly owners: FileOwners;
    readonly tools: Tools;
    readonly packages: Packages;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const store = new Store(ctx);
    const releases = new Releases(ctx);
    const accounts = new Accounts(ctx, machine);
    const folders = new Folders(ctx, accounts);
    const configurations = new Configurations(ctx, folders);
    const masters = new Masters(ctx);
    const hosts = new SiteHosts(ctx);
    const owners = new FileOwners(ctx, accounts, folders);
    const slots = new Slots({ ctx, store, releases, accounts, folders, configurations, masters });
    const parts = { ctx, machine, store, releases, accounts, folders, configurations, masters, hosts, slots };
    const tools = new Tools(ctx, releases, configurations);
    return {
        ...parts,
        locks: new Locks(),
        creation: new Creation({
            ...parts,
            wordpress: new WordPress(ctx, releases, configurations, owners),
            laravel: new Laravel(ctx, releases, owners, tools)
        }),
        changes: new Changes(parts),
        switches: new Switches(parts),
        owners,
        tools,
        packages: new Packages(ctx, releases)
    };
}
