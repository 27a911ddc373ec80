/** Restores parts of a snapshot to a new or empty folder. */
import { errors } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import { checkPlace, type Repositories } from '../repositories/repositories.ts';
import type { Restic } from '../restic/restic.ts';
import { panelName } from '../runs/sources.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshot, Snapshots } from './snapshots.ts';

/** What is restored: a path, one item of a plugin, or the panel's own state. */
export interface RestoreItem {
    readonly path?: string | undefined;
    readonly plugin?: string | undefined;
    readonly item?: string | undefined;
    readonly panel?: boolean | undefined;
}

/** How the restore of one item went. */
export interface RestoredPart {
    readonly item: RestoreItem;
    readonly ok: boolean;
    /** Where it lies now. */
    readonly path: string;
    readonly message: string | null;
}

/** Restores. */
export class Restores {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #snapshots: Snapshots;

    constructor(ctx: Ctx, restic: Restic, repositories: Repositories, snapshots: Snapshots) {
        this.#ctx = ctx;
        this.#restic = restic;
        this.#repositories = repositories;
        this.#snapshots = snapshots;
    }

    /** @throws VALIDATION_FAILED 40001 unless the folder is new or empty, and may be written to */
    async check(folder: string, row: RepositoryRow): Promise<void> {
        checkPlace(folder, 'folder');
        const refuse = (message: string): Error => errors.invalid([{ path: 'folder', message }]);
        if (`${folder}/`.startsWith(`${row.path}/`) || `${row.path}/`.startsWith(`${folder}/`)) {
            throw refuse('folder must not be the repository, or hold it');
        }
        const root = this.#ctx.files('/');
        const found = await root.stat(folder.slice(1)).catch(() => null);
        if (found !== null && (found.type !== 'folder' || (await root.list(folder.slice(1))).length > 0)) {
            throw refuse('folder must be new or empty');
        }
        if (found === null) {
            // Opens the folders above as a plugin may, so that none of the panel's own is written to.
            await root
                .createFolder(folder.slice(1), { mode: 0o700 })
                .catch(() => Promise.reject(refuse('folder cannot be made there')));
        }
    }

    /** Restores each item; one that fails does not keep the others. `/a/b` comes as `folder/a/b`. */
    async run(
        row: RepositoryRow,
        snapshot: Snapshot,
        items: readonly RestoreItem[],
        folder: string,
        signal: AbortSignal
    ): Promise<readonly RestoredPart[]> {
        const target = await this.#repositories.target(row);
        const note = items.some(({ path }) => path === undefined)
            ? await this.#snapshots.note(row, snapshot, signal)
            : null;
        const parts: RestoredPart[] = [];
        for (const item of items) {
            signal.throwIfAborted();
            const path = item.path ?? placeOf(item, note);
            if (path === null) {
                parts.push({ item, ok: false, path: '', message: 'It is not in this snapshot' });
                continue;
            }
            const args = ['restore', snapshot.id, `--target=${folder}`, `--include=${escaped(path)}`];
            try {
                await this.#restic.run(target, args, { signal });
                const found = await this.#ctx
                    .files(folder)
                    .stat(path.slice(1))
                    .catch(() => null);
                parts.push({
                    item,
                    ok: found !== null,
                    path: `${folder}${path}`,
                    message: found === null ? 'It is not in this snapshot' : null
                });
            } catch (error) {
                signal.throwIfAborted();
                parts.push({ item, ok: false, path: `${folder}${path}`, message: (error as Error).message });
            }
        }
        return parts;
    }
}

function placeOf(
    { plugin, item, panel }: RestoreItem,
    note: Awaited<ReturnType<Snapshots['note']>>
): string | null {
    const wanted = panel === true ? panelName : plugin;
    const found = note?.sources.find(
        ({ source }) => (source.type === 'panel' ? panelName : source.plugin) === wanted
    );
    return (
        (item === undefined ? found?.paths[0] : found?.items.find(({ name }) => name === item)?.path) ?? null
    );
}

/** A path as a pattern that matches it alone. */
function escaped(path: string): string {
    return path.replaceAll(/[\\*?[\]]/g, '\\$&');
}
