/** Keeps hosts where their containers are: hears of each start, and looks again now and then. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Ctx } from '../settings.ts';
import type { Events } from '../streams/events.ts';
import { type ContainerHosts, isEngineAway } from './hosts.ts';

const retryMs = 5_000;
const actions = new Set(['start', 'rename', 'die', 'destroy']);

/** Follows containers until the signal aborts. Never rejects: an engine that is away is asked again. */
export async function followContainers(
    ctx: Ctx,
    { hosts, events }: { readonly hosts: ContainerHosts; readonly events: Events },
    signal: AbortSignal
): Promise<void> {
    while (!signal.aborted) {
        try {
            const since = new Date().toISOString();
            await hosts.follow();
            const happened = await events.read({ types: ['container'], since, signal });
            for await (const { action } of happened) {
                if (actions.has(action)) {
                    await hosts.follow();
                }
            }
        } catch (error) {
            if (!signal.aborted && !isEngineAway(error)) {
                ctx.log.warn('Hosts could not follow their containers', { error });
            }
        }
        await wait(retryMs, undefined, { signal }).catch(() => undefined);
    }
}
