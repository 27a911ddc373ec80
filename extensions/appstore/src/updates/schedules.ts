/** What happens by the clock: syncs, automatic updates after them, and the recovery of what was cut. */
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const recoverySeconds = 60;
type Round = { readonly signal: AbortSignal };

/** Begins the schedules. What a killed panel left is finished or undone first. */
export async function startSchedules(ctx: Ctx, services: Services): Promise<void> {
    const { operations } = services;
    await operations.recover();
    await planRounds(ctx, services);
    await ctx.schedule('recovery', { everySeconds: recoverySeconds }, () => operations.recover());
}

/** Plans syncs, also anew when the settings changed. */
export async function planRounds(ctx: Ctx, { syncs, updates }: Services): Promise<void> {
    const round = async ({ signal }: Round): Promise<void> => {
        await syncs.all(signal);
        await updates.automatic(signal);
    };
    const { syncHours, autoUpdateWindow } = ctx.settings;
    await ctx.schedule('sync', { everySeconds: syncHours * 3_600 }, round);
    // A window that lies between two syncs has one at its beginning.
    const [hours = '0', minutes = '0'] = (autoUpdateWindow ?? '03:00').slice(0, 5).split(':');
    await ctx.schedule('window', { cron: `${Number(minutes)} ${Number(hours)} * * *` }, round);
}
