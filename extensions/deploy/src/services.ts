/** The services of one generation of the plugin. */
import { Artifacts } from './build/artifacts.ts';
import { Builder } from './build/builder.ts';
import { Provenance } from './build/provenance.ts';
import { ImageBuilder } from './containers/builder.ts';
import { Images } from './containers/images.ts';
import { Stacks } from './containers/stacks.ts';
import { Crons } from './crons/crons.ts';
import { Logs } from './deployments/log.ts';
import { Pipeline } from './deployments/pipeline.ts';
import { Queue } from './deployments/queue.ts';
import { Retention } from './deployments/retention.ts';
import { Store } from './deployments/store.ts';
import { Strays } from './deployments/strays.ts';
import { Variables } from './env/variables.ts';
import { Connections } from './git/connections.ts';
import { Forges } from './git/forges.ts';
import { Git } from './git/git.ts';
import { Lfs } from './git/lfs.ts';
import type { Machine } from './machine.ts';
import { Comments } from './previews/comments.ts';
import { Previews } from './previews/previews.ts';
import { PreviewStore } from './previews/store.ts';
import { ProjectChanges } from './projects/changes.ts';
import { ProjectViews } from './projects/views.ts';
import { Canaries } from './releases/canary.ts';
import { Commands } from './releases/commands.ts';
import { Folders } from './releases/folders.ts';
import { Hosts } from './releases/hosts.ts';
import { Processes } from './releases/processes.ts';
import { Releases } from './releases/releases.ts';
import { Sandboxes } from './sandbox/programs.ts';
import type { Ctx } from './settings.ts';
import { RequiredChecks } from './triggers/checks.ts';
import { Hooks } from './triggers/hooks.ts';
import { Polling } from './triggers/polling.ts';

/** What the routes ask. */
export interface Services {
    readonly store: Store;
    readonly folders: Folders;
    readonly logs: Logs;
    readonly variables: Variables;
    readonly connections: Connections;
    readonly git: Git;
    readonly sandboxes: Sandboxes;
    readonly hosts: Hosts;
    readonly processes: Processes;
    readonly releases: Releases;
    readonly stacks: Stacks;
    readonly retention: Retention;
    readonly strays: Strays;
    readonly queue: Queue;
    readonly views: ProjectViews;
    readonly changes: ProjectChanges;
    readonly canaries: Canaries;
    readonly provenance: Provenance;
    readonly forges: Forges;
    readonly commands: Commands;
    readonly crons: Crons;
    readonly previewStore: PreviewStore;
    readonly previews: Previews;
    readonly hooks: Hooks;
    readonly polling: Polling;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const store = new Store(ctx);
    const folders = new Folders(ctx, machine);
    const logs = new Logs(ctx);
    const variables = new Variables(ctx);
    const connections = new Connections(ctx, folders);
    const git = new Git(ctx, folders);
    const lfs = new Lfs(ctx, folders, git);
    const sandboxes = new Sandboxes(ctx, folders);
    const hosts = new Hosts(ctx, folders);
    const stacks = new Stacks(ctx);
    const processes = new Processes(ctx, folders, stacks);
    const artifacts = new Artifacts(folders, sandboxes);
    const images = new Images(ctx, folders, artifacts, store);
    const releases = new Releases({ ctx, folders, hosts, processes, sandboxes, stacks, images });
    const retention = new Retention(store, releases);
    const strays = new Strays({ ctx, store, variables, releases, retention });
    const imageBuilder = new ImageBuilder({ folders, artifacts, images });
    const builder = new Builder({ ctx, folders, git, lfs, sandboxes, artifacts, imageBuilder });
    const canaries = new Canaries(ctx, hosts, releases);
    const provenance = new Provenance(ctx);
    const released = ctx.hooks.define('deploy.released', { kind: 'notify', summary: 'A release serves' });
    const forges = new Forges(ctx);
    const checks = new RequiredChecks(connections, forges);
    const previewStore = new PreviewStore(ctx);
    const comments = new Comments({ ctx, store, connections, forges, previews: previewStore });
    const pipeline = new Pipeline({
        checks,
        over: (project) => previews.told(project),
        released,
        provenance,
        canaries,
        ctx,
        store,
        logs,
        variables,
        connections,
        git,
        builder,
        releases,
        retention,
        strays
    });
    const queue = new Queue(ctx, store, logs, pipeline);
    const views = new ProjectViews(store, processes);
    const shared = {
        store,
        folders,
        logs,
        variables,
        connections,
        git,
        sandboxes,
        hosts,
        processes,
        releases,
        stacks
    };
    const changes = new ProjectChanges(shared);
    const commands = new Commands({ store, folders, sandboxes, variables, stacks });
    const crons = new Crons({ ctx, store, commands });
    const previews: Previews = new Previews({
        ctx,
        store,
        queue,
        changes,
        previews: previewStore,
        comments
    });
    const hooks = new Hooks(ctx, store, queue, previews);
    const polling = new Polling({ ctx, store, queue, git, connections });
    return {
        ...shared,
        ...{ retention, strays, queue, views, changes, canaries, provenance, hooks, polling },
        ...{ forges, commands, crons, previewStore, previews }
    };
}
