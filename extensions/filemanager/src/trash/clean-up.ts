/** Removes what has expired, and what a crash left. */
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** The clean-up of one generation. */
export class CleanUp {
    readonly #ctx: Ctx;
    readonly #services: Services;
    #afterCrash: Promise<void> = Promise.resolve();

    constructor(ctx: Ctx, services: Services) {
        this.#ctx = ctx;
        this.#services = services;
    }

    /** Schedules the removal of expired uploads and trash, and starts to remove what an earlier crash left. */
    async start(): Promise<void> {
        const { converter, recordings, scratch, shares, trash, uploads, versions } = this.#services;
        await this.#ctx.schedule('expire', { everySeconds: 600, missed: 'run-once' }, async ({ signal }) => {
            await uploads.expire(signal);
            await trash.expire(signal);
            await shares.expire(signal);
            await recordings.expire(signal);
        });
        // The lists are read before the first request adds to them; the removal may take long, and requests need not wait for it.
        await converter.removeRemains();
        await recordings.endRemains();
        const removals = [
            await scratch.findRemains(),
            await trash.findRemains(),
            await versions.findRemains()
        ];
        this.#afterCrash = this.#run(removals);
    }

    /** Resolves when the removal after a crash has ended; never rejects. */
    finished(): Promise<void> {
        return this.#afterCrash;
    }

    async #run(removals: readonly ((signal: AbortSignal) => Promise<void>)[]): Promise<void> {
        const { signal, log } = this.#ctx;
        try {
            for (const remove of removals) {
                await remove(signal);
            }
        } catch (error) {
            if (!signal.aborted) {
                log.warn('What an earlier crash left could not be removed', { error: String(error) });
            }
        }
    }
}
