/** What begins with the plugin. */
import type { Machine } from './machine.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const dayMs = 86_400_000;

/** Ends what a panel that was killed left under way, and begins what goes on by itself. */
export async function start(ctx: Ctx, services: Services, machine: Machine): Promise<void> {
    await services.conversations.recover();
    await services.approvals.recover();
    await services.changes.recover();
    await services.inspections.start();
    await ctx.schedule('retention', { everySeconds: 3_600 }, () => removeExpired(ctx, services, machine));
}

async function removeExpired(ctx: Ctx, services: Services, machine: Machine): Promise<void> {
    const before = machine.now() - ctx.settings.keepDays * dayMs;
    await services.conversations.expire();
    await services.approvals.remove({ before });
    await services.changes.expire(before);
}
