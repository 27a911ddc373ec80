/** Copies snapshots from one repository to another. */
import type { RepositoryRow } from '../entities.ts';
import type { Restic } from '../restic/restic.ts';
import type { Snapshot } from '../snapshots/documents.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import type { Repositories } from './repositories.ts';

/** Copies; restic reads from one and writes to the other, and skips what is there already. */
export class Copies {
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #snapshots: Snapshots;

    constructor(restic: Restic, repositories: Repositories, snapshots: Snapshots) {
        this.#restic = restic;
        this.#repositories = repositories;
        this.#snapshots = snapshots;
    }

    /** The caller holds the right to write to `to`. @throws the plugin's errors; the signal's reason */
    async copy(
        from: RepositoryRow,
        to: RepositoryRow,
        snapshots: readonly Pick<Snapshot, 'id'>[],
        signal: AbortSignal
    ): Promise<void> {
        if (snapshots.length === 0) {
            return;
        }
        const pair = await this.#repositories.pair(from, to);
        try {
            // restic locks the one that it reads, too.
            await this.#repositories.using(from.id, () =>
                this.#restic.run(pair.to, ['copy', ...snapshots.map(({ id }) => id)], {
                    signal,
                    from: pair.from,
                    keepNone: true
                })
            );
        } catch (error) {
            signal.throwIfAborted();
            await this.#repositories.see(to.id, error);
            throw error;
        } finally {
            this.#snapshots.forget(to.id);
        }
        await this.#snapshots.list(to, signal);
    }
}
