/** What people are told of runs. */
import { PlanEntity, type RunRow, type RunState } from '../entities.ts';
import type { Plan, Plans } from '../plans/plans.ts';
import type { Ctx } from '../settings.ts';

/** What is told of a run that ended in a state. */
const told = {
    succeeded: { event: 'run-succeeded', severity: 'info', words: 'succeeded' },
    incomplete: { event: 'run-incomplete', severity: 'error', words: 'is incomplete' },
    failed: { event: 'run-failed', severity: 'error', words: 'failed' }
} as const;

/** Tells how a run ended, as the plan wants it. @param before - how the run before it ended; null without one */
export async function tellEnd(
    ctx: Ctx,
    plan: Plan,
    { id, state, message }: Pick<RunRow, 'id' | 'state' | 'message'>,
    before: RunState | null
): Promise<void> {
    if (plan.notifyOn === 'never' || !(state in told)) {
        return;
    }
    const { event, severity, words } = told[state as keyof typeof told];
    const hasRecovered =
        state === 'succeeded' && before !== null && ['failed', 'incomplete', 'interrupted'].includes(before);
    if (hasRecovered || plan.overdueAt !== null) {
        await tell(ctx, {
            event: 'recovered',
            severity: 'info',
            title: `The backup ${plan.name} works again`,
            data: { planId: plan.id, runId: id }
        });
    }
    if (state !== 'succeeded' || plan.notifyOn === 'always') {
        await tell(ctx, {
            event,
            severity,
            title: `The backup ${plan.name} ${words}`,
            ...(message === null ? {} : { text: message.slice(0, 10_000) }),
            data: { planId: plan.id, runId: id }
        });
    }
}

/** Tells once of each plan that has had no success for too long. */
export async function tellOverdue(ctx: Ctx, plans: Plans): Promise<void> {
    for (const plan of await plans.stale()) {
        if (plan.overdueAt === null && plan.notifyOn !== 'never') {
            await ctx.db.write((em) =>
                em.nativeUpdate(PlanEntity, { id: plan.id }, { overdueAt: Date.now() })
            );
            await tell(ctx, {
                event: 'overdue',
                severity: 'warning',
                title: `The backup ${plan.name} had no success for ${ctx.settings.staleHours} hours`,
                data: { planId: plan.id }
            });
        }
    }
}

async function tell(ctx: Ctx, message: Parameters<Ctx['notify']>[0]): Promise<void> {
    await ctx
        .notify({ ...message, title: message.title.slice(0, 200) })
        .catch((error: unknown) =>
            ctx.log.warn('A notification could not be sent', { error: String(error) })
        );
}
