/** Path parameters that several groups of routes have. */
import { errors, joi } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Site } from '../sites/site.ts';
import { switchWork } from '../sites/views.ts';

/** The number of a site. */
export const siteParams = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Site')
        .meta({ ui: { ref: 'php.sites' } })
});

/** The schema of the answer of a call that has nothing to say. */
export const nothing = joi.valid(null);

/** Does work on a site that is ready, with its lock. @throws NOT_FOUND 40400, IN_USE 40901, SWITCH_RUNNING 40950 */
export async function withSite<T>(
    { store, locks }: Services,
    id: number,
    what: string,
    work: (site: Site) => Promise<T>
): Promise<T> {
    using _lock = await takeSite({ store, locks }, id, what);
    return await work(await store.get(id));
}

/** Takes the lock of a site that is ready. @throws NOT_FOUND 40400, IN_USE 40901, SWITCH_RUNNING 40950 */
export async function takeSite(
    { store, locks }: Pick<Services, 'store' | 'locks'>,
    id: number,
    what: string
): Promise<Disposable> {
    await store.get(id);
    if (locks.holder(id) === switchWork) {
        const running = (await store.switches()).get(id);
        throw fail.SWITCH_RUNNING({ from: running?.from ?? '', to: running?.to ?? '' });
    }
    const lock = locks.take(id, what);
    try {
        // Read again: what held the lock until now may have removed it.
        const { phase } = await store.get(id);
        if (phase !== 'ready') {
            throw errors.inUse(phase);
        }
        return lock;
    } catch (error) {
        lock[Symbol.dispose]();
        throw error;
    }
}
