/** What begins with the plugin. */
import { followContainers } from './hosts/following.ts';
import { isEngineAway } from './hosts/hosts.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Removes what a panel that was killed left, and begins what goes on by itself. */
export async function start(ctx: Ctx, services: Services): Promise<void> {
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
