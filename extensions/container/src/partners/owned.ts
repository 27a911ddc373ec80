/** What of the stacks is a partner's own. */
import { type Call, errors, isFailure } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { StackView } from '../stacks/view.ts';
import type { StackWork } from '../stacks/work.ts';

/** The stack, when the plugin made it; null when there is none of that name. @throws STACK_OWNED 40950 for one of another */
export async function findOwned(
    { changes, stacks }: Services,
    name: string,
    plugin: string
): Promise<StackView | null> {
    try {
        await changes.mine(name, plugin);
        return await stacks.get(name);
    } catch (error) {
        if (isFailure(error) && error.code === 40400) {
            return null;
        }
        throw error;
    }
}

/** @throws NOT_FOUND 40400, STACK_OWNED 40950 for a stack of another */
export async function getOwned(services: Services, name: string, plugin: string): Promise<StackView> {
    const found = await findOwned(services, name, plugin);
    if (found === null) {
        throw errors.notFound('There is no stack of that name');
    }
    return found;
}

/** How work is done within a call: it tells no task, since the caller's own task does, and stands in the audit log. */
export function createPerform(
    ctx: Ctx,
    { runner }: Services
): (work: StackWork, call: Call) => Promise<StackView | null> {
    return async (work, { plugin, actor, signal }) => {
        const entry = {
            action: work.kind,
            resource: 'stack',
            resourceId: work.stack,
            after: { plugin },
            ...(actor === null ? {} : { actor })
        };
        try {
            const quiet = { signal, progress: () => undefined, log: () => undefined };
            const view = await runner.perform(work, quiet);
            await ctx.audit(entry);
            return view;
        } catch (error) {
            await ctx.audit({ ...entry, outcome: 'failure' });
            throw error;
        }
    };
}
