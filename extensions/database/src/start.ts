/** What begins with the plugin. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const watchSeconds = 60;
const copySeconds = 15;
/** How much later than its end an account may go. */
const expirySeconds = 5;

/** Removes what a panel that was killed left, and begins what goes on by itself. */
export async function start(ctx: Ctx, services: Services): Promise<void> {
    await services.managed.sweep();
    await services.dumps.sweep();
    await services.pointInTime.sweep();
    await services.folder.remove('uploads');
    await services.schedules.refresh();
    // States are known soon, and a server that does not answer delays nothing.
    const watch = async (): Promise<void> => services.servers.watch(await services.managed.resting());
    void watch()
        .then(() => services.unfinished.sweep())
        .catch((error: unknown) => ctx.log.warn('Servers could not be asked', { error }));
    await ctx.schedule('credentials', { everySeconds: expirySeconds, missed: 'run-once' }, () =>
        services.credentials.expire()
    );
    await ctx.schedule('watch', { everySeconds: watchSeconds }, async () => {
        await watch();
        await services.metrics.sample(await services.servers.online());
        await services.unfinished.sweep();
    });
    await ctx.schedule('point-in-time', { everySeconds: copySeconds }, () => services.pointInTime.keep());
    await ctx.schedule('history', { everySeconds: 3_600 }, () => services.history.expire());
}
