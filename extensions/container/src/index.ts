/** Containers, images and compose stacks of one Docker or Podman engine, under one policy. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerBackupHooks } from './hooks/backup.ts';
import { registerExportHooks } from './hooks/export-section.ts';
import { followContainers } from './hosts/following.ts';
import { isEngineAway } from './hosts/hosts.ts';
import { type Machine, realMachine } from './machine.ts';
import { createContract } from './partners/contract.ts';
import { registerContainerRoutes } from './routes/containers/containers.ts';
import { registerContentRoutes } from './routes/containers/contents.ts';
import { registerExecRoutes } from './routes/containers/exec.ts';
import { registerSessionRoutes } from './routes/containers/sessions.ts';
import { registerStreamRoutes } from './routes/containers/streams.ts';
import { registerDaemonRoutes } from './routes/daemon.ts';
import { registerEngineRoutes } from './routes/engine.ts';
import { registerBuildRoutes } from './routes/objects/builds.ts';
import { registerImageRoutes } from './routes/objects/images.ts';
import { registerNetworkRoutes } from './routes/objects/networks.ts';
import { registerPruneRoutes } from './routes/objects/prune.ts';
import { registerVolumeRoutes } from './routes/objects/volumes.ts';
import { registerAdoptionRoutes } from './routes/stacks/adoption.ts';
import { registerComposeRoutes } from './routes/stacks/compose.ts';
import { registerHookRoutes } from './routes/stacks/hooks.ts';
import { registerHostRoutes } from './routes/stacks/hosts.ts';
import { registerStackRoutes } from './routes/stacks/stacks.ts';
import { createServices, type Services } from './services.ts';
import { type Ctx, settings } from './settings.ts';

/** The plugin on a machine; tests have one of their own. */
export function defineContainer(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerContainerRoutes(ctx, services);
            registerComposeRoutes(ctx, services);
            registerStackRoutes(ctx, services);
            registerAdoptionRoutes(ctx, services);
            registerHookRoutes(ctx, services);
            registerHostRoutes(ctx, services);
            registerStreamRoutes(ctx, services);
            registerImageRoutes(ctx, services);
            registerBuildRoutes(ctx, services);
            registerNetworkRoutes(ctx, services);
            registerVolumeRoutes(ctx, services);
            registerContentRoutes(ctx, services);
            registerPruneRoutes(ctx, services);
            registerExecRoutes(ctx, services);
            registerSessionRoutes(ctx, services);
            registerEngineRoutes(ctx, services);
            registerDaemonRoutes(ctx, services);
            registerBackupHooks(ctx, services);
            registerExportHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(() => start(ctx, services));
            ctx.onStop(() => services.stats.close());
            return createContract(ctx, services);
        }
    });
}

/** The plugin. */
export default defineContainer(realMachine);

/** Removes what a panel that was killed left, and begins what goes on by itself. */
async function start(ctx: Ctx, services: Services): Promise<void> {
    const { builds, imageArchives, snapshots, archives, replacing, updates, autoUpdates } = services;
    for (const each of [builds, imageArchives, snapshots]) {
        // A folder that the panel may not read is told by the check `storage`; the rest of the plugin does without it.
        await each
            .sweep()
            .catch((error: unknown) =>
                ctx.log.warn('What was left in the storage could not be removed', { error })
            );
    }
    await ctx.schedule('builds', { everySeconds: 600 }, () => builds.expire());
    await ctx.schedule('images', { everySeconds: 600 }, (run) =>
        whenThere(async () => {
            await updates.checkDue(run);
            await autoUpdates.run(run);
        })
    );
    // An engine that does not answer delays no start.
    void whenThere(() => archives.sweep()).catch((error: unknown) =>
        ctx.log.warn('What reached volumes could not be removed', { error })
    );
    void whenThere(() => replacing.recover()).catch((error: unknown) =>
        ctx.log.warn('A container that was being made again could not be brought back', { error })
    );
    void followContainers(ctx, services, ctx.signal);
}

/** Without an engine there is nothing to do; health says so. */
async function whenThere(work: () => Promise<void>): Promise<void> {
    try {
        await work();
    } catch (error) {
        if (!isEngineAway(error)) {
            throw error;
        }
    }
}
