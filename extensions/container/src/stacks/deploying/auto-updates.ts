/** Stacks that take newer images by themselves, or say that there are some. The tag stays; what exposes more is never taken. */
import { isFailure, type ScheduledRun } from '@portico/sdk';

import type { StackRow } from '../../entities.ts';
import { type ImageUpdates, isDue } from '../../images/updates.ts';
import type { Ctx } from '../../settings.ts';
import type { StackChanges } from '../changes.ts';
import type { Revision, StackStore } from '../revisions.ts';
import type { StackRunner } from '../work.ts';

/** Looks after stacks that update by themselves. */
export class AutoUpdates {
    readonly #ctx: Ctx;
    readonly #parts: {
        readonly store: StackStore;
        readonly changes: StackChanges;
        readonly runner: StackRunner;
        readonly updates: ImageUpdates;
    };

    constructor(
        ctx: Ctx,
        parts: {
            readonly store: StackStore;
            readonly changes: StackChanges;
            readonly runner: StackRunner;
            readonly updates: ImageUpdates;
        }
    ) {
        this.#ctx = ctx;
        this.#parts = parts;
    }

    /** Looks at each stack that is due. A stack that fails keeps no other waiting. */
    async run({ at, signal }: Pick<ScheduledRun, 'at' | 'signal'>): Promise<void> {
        const { store } = this.#parts;
        for (const row of await store.list()) {
            const wants = row.autoUpdate !== 'off' && row.revision > 0 && row.owner === null;
            if (!wants || !isDue(at, row.autoAt, row.autoHours)) {
                continue;
            }
            signal.throwIfAborted();
            await store.setAutoUpdate(row.name, { autoAt: at.getTime() });
            await this.#look(row, at).catch((error: unknown) => {
                this.#ctx.log.warn('A stack could not be looked at for newer images', {
                    stack: row.name,
                    error
                });
            });
        }
    }

    async #look(row: StackRow, at: Date): Promise<void> {
        const { store, updates } = this.#parts;
        const now = await store.revision(row.name, row.revision);
        const before = await store.revisions(row.name);
        let isOutdated = false;
        for (const [service, { image, imageId, digest }] of Object.entries(now.images)) {
            const bound = { id: imageId ?? image, digest };
            const { digest: newest, state } = await updates.check(image, bound, at);
            if (state !== 'outdated' || newest === null) {
                continue;
            }
            if (await this.#wasLeft(before, service, newest)) {
                continue;
            }
            isOutdated = true;
            if (row.autoUpdate === 'check') {
                await updates.tell(image, bound);
            }
        }
        if (isOutdated && row.autoUpdate === 'apply') {
            await this.#apply(row);
        }
    }

    async #apply(row: StackRow): Promise<void> {
        const { changes, runner } = this.#parts;
        const work = await changes.redeploy(row, { because: 'automatic update', pull: true, by: null });
        const { run } = work;
        await runner.begin(
            {
                ...work,
                run: async (given) => {
                    try {
                        return await run(given);
                    } catch (error) {
                        const why = isFailure(error) ? error.message : 'see the log of the task';
                        await this.#ctx.notify({
                            event: 'update-failed',
                            severity: 'warning',
                            title: `The stack ${row.name} did not take its newer images`,
                            text: `${why}. What ran before runs again.`,
                            data: { stack: row.name }
                        });
                        throw error;
                    }
                }
            },
            null
        );
    }

    /** Whether a stack had the image of this digest and went back from it: it does not take it again by itself. */
    async #wasLeft(
        revisions: readonly Pick<Revision, 'images'>[],
        service: string,
        newest: string
    ): Promise<boolean> {
        for (const { images } of revisions) {
            const { image, imageId, digest } = images[service] ?? {};
            if (image !== undefined && digest !== undefined) {
                const bound = { id: imageId ?? image, digest };
                if (await this.#parts.updates.isKnownBy(newest, image, bound)) {
                    return true;
                }
            }
        }
        return false;
    }
}
