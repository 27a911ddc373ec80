/** Data of partners' stacks: kept, and brought back. */
import type { ContainerContract } from '../contract.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { checked, snapshotSchema } from './input.ts';
import { createPerform, getOwned } from './owned.ts';

/** The methods of snapshots. */
export function createDataMethods(
    ctx: Ctx,
    services: Services
): Pick<ContainerContract, 'snapshot' | 'restore' | 'dropSnapshot'> {
    const { snapshots, stacks } = services;
    const perform = createPerform(ctx, services);
    return {
        async snapshot(input, { plugin, signal }) {
            const { stack, volumes } = checked(snapshotSchema, input);
            await getOwned(services, stack, plugin);
            return snapshots.take(stack, signal, volumes);
        },
        async restore({ stack, snapshot }, call) {
            const { plugin, signal } = call;
            await getOwned(services, stack, plugin);
            await perform(
                {
                    stack,
                    kind: 'restore',
                    title: `Restore ${stack}`,
                    access: 'write',
                    run: async () => {
                        await snapshots.restore(stack, snapshot, signal);
                        return stacks.get(stack);
                    }
                },
                call
            );
            return getOwned(services, stack, plugin);
        },
        async dropSnapshot({ stack, snapshot }, { plugin }) {
            await getOwned(services, stack, plugin);
            return { dropped: await snapshots.drop(stack, snapshot) };
        }
    };
}
