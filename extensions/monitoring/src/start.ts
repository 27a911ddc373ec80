/** What begins and ends with the plugin. */
import type { Machine } from './machine.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Begins to measure, to try the checks and to send. */
export async function start(ctx: Ctx, services: Services, machine: Machine): Promise<void> {
    const { checks, exports, hardware, monitor, processHistory, traffic } = services;
    await checks.start();
    await exports.start();
    monitor.onSample((sample) => {
        exports.offer(sample);
        processHistory.offer();
    });
    await monitor.start();
    // A drive may be slow to answer, and nothing waits for it.
    void hardware.refresh();
    await traffic.start();
    await ctx.schedule('prune', { everySeconds: 21_600, missed: 'run-once' }, async () => {
        await monitor.prune();
        await traffic.prune(machine.now());
        await processHistory.prune(machine.now());
    });
    await ctx.schedule('hardware', { everySeconds: 60 }, () => hardware.refresh());
    await ctx.schedule('checks', { everySeconds: 10 }, () => checks.save());
    await ctx.schedule('checkResults', { everySeconds: 3_600, missed: 'run-once' }, () =>
        checks.results.prune(machine.now(), ctx.settings.checkHistoryDays)
    );
    await ctx.schedule('traffic', { everySeconds: 10 }, () => traffic.save());
}

/** Ends what runs, and saves what is not saved yet. */
export async function stop(services: Services): Promise<void> {
    const { checks, exports, hardware, monitor, processHistory, traffic } = services;
    await checks.stop();
    await hardware.stop();
    await traffic.stop();
    await monitor.stop();
    await exports.stop();
    await processHistory.stop();
}
