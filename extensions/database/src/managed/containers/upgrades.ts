/**
 * Upgrades of servers in containers, and the way back. The data are kept as a snapshot before the image of the other release takes them. Until the
 * server answers, the row names what leads back, so a panel that is killed leaves one of the two releases with the data that belong to it.
 */
import { errors, type TaskRun } from '@portico/sdk';

import type { PreviousRelease } from '../../entities.ts';
import type { KindName } from '../../kinds/kind.ts';
import type { Servers } from '../../servers/servers.ts';
import type { Ctx } from '../../settings.ts';
import type { Programs } from '../kinds/programs.ts';
import { isNewer, isRelease } from '../releases.ts';
import type { ManagedRows } from '../rows.ts';
import type { Containers } from './containers.ts';
import { images } from './images.ts';

/** What upgrades of servers in containers work with. */
export interface ContainerUpgradesOptions {
    readonly ctx: Ctx;
    readonly servers: Servers;
    readonly rows: ManagedRows;
    readonly programs: Programs;
    readonly containers: Containers;
}

/** Takes servers in containers to newer releases and back. */
export class ContainerUpgrades {
    readonly #options: ContainerUpgradesOptions;

    constructor(options: ContainerUpgradesOptions) {
        this.#options = options;
    }

    /** @throws VALIDATION_FAILED 40001 for a release that is not newer, or that cannot read the data */
    check(kind: KindName, current: string, release: string): void {
        const problem = !isRelease(release)
            ? `${release} is no release`
            : !isNewer(release, current)
              ? `${release} is no newer release than ${current}, which it has`
              : images[kind].readsData(current, release)
                ? null
                : `Release ${release} cannot read data of ${current}: make a new server, and restore dumps into it`;
        if (problem !== null) {
            throw errors.invalid([{ path: 'release', message: problem }]);
        }
    }

    /** Takes a server to another release. One that does not answer then goes back by itself. */
    async upgrade(id: number, release: string, { signal, progress }: TaskRun): Promise<void> {
        const { rows, servers, containers } = this.#options;
        progress(0.05, 'Looking whether it can begin');
        await servers.test(id);
        const { server, managed } = await rows.get(id);
        progress(0.1, 'Bringing the image');
        await containers.pull(server.kind, release, signal);
        await rows.update(id, { phase: 'upgrading' });
        try {
            progress(0.3, 'Keeping its data');
            const previous = await this.#keep(id, managed.release);
            await rows.update(id, { release, previous, phase: 'switching' });
            progress(0.5, `Starting release ${release}`);
            await this.#serve(id, signal);
        } catch (error) {
            await this.#undo(id);
            throw error;
        }
        await rows.update(id, { phase: 'ready' });
    }

    /** Takes a server back to what its row names as before; where that does not answer, it stays as it is. */
    async rollBack(id: number, { signal, progress }: TaskRun): Promise<void> {
        const { rows, containers } = this.#options;
        const {
            server: { kind },
            managed: { release, previous }
        } = await rows.get(id);
        if (previous !== null) {
            progress(0.1, 'Bringing the image');
            await containers.pull(kind, previous.release, signal);
        }
        progress(0.3, 'Keeping its present data');
        const now = await this.#keep(id, release);
        try {
            await this.#goBack(id, signal);
        } catch (error) {
            // Its present data become what leads back, and are gone back to.
            await rows.update(id, { previous: now });
            await this.#goBack(id, this.#options.ctx.signal, previous);
            throw error;
        }
        await containers.drop(id, now.folder);
    }

    /** Removes the data of before. */
    async forget(id: number, { folder }: PreviousRelease): Promise<void> {
        await this.#options.rows.update(id, { previous: null });
        await this.#options.containers.drop(id, folder);
    }

    /** Undoes or finishes what a killed panel left half done. */
    async recover(id: number): Promise<void> {
        const { rows } = this.#options;
        const { phase } = (await rows.get(id)).managed;
        if (phase === 'upgrading') {
            await this.#undo(id);
        } else {
            await this.#serve(id, this.#options.ctx.signal);
            await rows.update(id, { phase: 'ready' });
        }
    }

    /** Nothing writes into data that are kept. */
    async #keep(id: number, release: string): Promise<PreviousRelease> {
        const { containers } = this.#options;
        await containers.change(id, 'stop');
        const { snapshot, bytes } = await containers.snapshot(id);
        return { release, folder: snapshot, at: Date.now(), bytes };
    }

    /** Lets the release of before serve, with its data where another one may have changed them. */
    async #undo(id: number): Promise<void> {
        const { rows, ctx } = this.#options;
        const { previous } = (await rows.get(id)).managed;
        if (previous !== null) {
            await this.#goBack(id, ctx.signal);
            return;
        }
        await this.#serve(id, ctx.signal);
        await rows.update(id, { phase: 'ready' });
    }

    /** Brings data and release of before back. A panel that is killed meanwhile does so again. `next` is what then leads back. */
    async #goBack(id: number, signal: AbortSignal, next: PreviousRelease | null = null): Promise<void> {
        const { rows, containers } = this.#options;
        const { previous } = (await rows.get(id)).managed;
        if (previous === null) {
            return;
        }
        await rows.update(id, { release: previous.release, phase: 'upgrading' });
        await containers.change(id, 'stop');
        await containers.restore(id, previous.folder);
        await this.#serve(id, signal);
        await rows.update(id, { previous: next, phase: 'ready' });
        await containers.drop(id, previous.folder);
    }

    /** Starts the release that the row names, and waits until it answers. */
    async #serve(id: number, signal: AbortSignal): Promise<void> {
        const { rows, programs } = this.#options;
        await programs.put(await rows.get(id));
        await programs.waitUp(id, signal);
    }
}
