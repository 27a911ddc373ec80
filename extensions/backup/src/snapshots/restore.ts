/** Restores parts of a snapshot: to a new or empty folder, in place, or by the plugin that gave them. */
import { randomBytes } from 'node:crypto';

import { errors, isFailure } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import { checkPlace } from '../repositories/input.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { connectionIn } from '../repositories/stored.ts';
import type { Restic } from '../restic/restic.ts';
import { escapePattern } from '../runs/excludes.ts';
import { panelName, type SnapshotNote } from '../runs/sources.ts';
import type { Scratch } from '../scratch.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshot } from './documents.ts';
import type { Conflict, InPlace } from './in-place.ts';
import { countRestored } from './restored.ts';
import type { Snapshots } from './snapshots.ts';

/** What is restored: a path, one item of a plugin, or the panel's own state. */
export interface RestoreItem {
    readonly path?: string | undefined;
    readonly plugin?: string | undefined;
    readonly item?: string | undefined;
    readonly panel?: boolean | undefined;
}

/** Where it goes, and how. */
export interface RestoreInput {
    readonly items: readonly RestoreItem[];
    /** Absolute; null: in place. */
    readonly folder: string | null;
    readonly conflict: Conflict;
    readonly dryRun: boolean;
}

/** How the restore of one item went. */
export interface RestoredPart {
    readonly item: RestoreItem;
    readonly ok: boolean;
    readonly files: number;
    /** Where it lies now; null when a plugin took it. */
    readonly path: string | null;
    readonly message: string | null;
}

type Note = SnapshotNote | null;

/** One item, and what is known of it. */
interface Part extends RestoreInput {
    readonly item: RestoreItem;
    /** Absolute paths in the snapshot. */
    readonly places: readonly string[];
    readonly note: Note;
    /** What all of the snapshot takes; null for one that no run of this panel made. */
    readonly wholeBytes: number | null;
}

/** A path as snapshots have them: absolute, without `.`, `..` and a slash at its end. */
const plainPath = /^(\/(?!\.{1,2}(\/|$))[^/]+)+$/;

/** What restores and their routes work with. */
export interface RestoreServices {
    readonly ctx: Ctx;
    readonly restic: Restic;
    readonly repositories: Repositories;
    readonly snapshots: Snapshots;
    readonly scratch: Scratch;
    readonly inPlace: InPlace;
}

/** Restores what a snapshot holds to a folder, or to its original place. */
export class Restores {
    readonly #services: RestoreServices;

    constructor(services: RestoreServices) {
        this.#services = services;
    }

    /** @throws VALIDATION_FAILED 40001 unless every item can go where it is to go */
    async check({ items, folder, dryRun }: RestoreInput, row: RepositoryRow): Promise<void> {
        const { type, path: place = '' } = connectionIn(row);
        const isPlain = items.every(
            ({ path, plugin, item, panel }) =>
                [path, plugin, panel].filter((each) => each !== undefined).length === 1 &&
                (item === undefined || plugin !== undefined)
        );
        if (!isPlain) {
            throw invalid('items', 'items have each a path, a plugin (and one item of it), or panel');
        }
        if (folder !== null) {
            checkPlace(folder, 'folder');
            if (
                type === 'local' &&
                (`${folder}/`.startsWith(`${place}/`) || `${place}/`.startsWith(`${folder}/`))
            ) {
                throw invalid('folder', 'folder must not be the repository, or hold it');
            }
            await this.#requireEmpty(folder, dryRun);
            return;
        }
        for (const [index, { path, panel }] of items.entries()) {
            if (panel === true) {
                throw invalid(
                    `items.${index}`,
                    'The panel never replaces its own state while it runs: name a folder, then run portico data restore'
                );
            }
            if (path !== undefined) {
                checkPlace(path, `items.${index}.path`);
                if (type === 'local' && `${path}/`.startsWith(`${place}/`)) {
                    throw invalid(`items.${index}.path`, 'path must not be the repository');
                }
            }
        }
    }

    async #requireEmpty(folder: string, dryRun: boolean): Promise<void> {
        const root = this.#services.ctx.files('/');
        const found = await root.stat(folder.slice(1)).catch(() => null);
        if (found !== null && (found.type !== 'folder' || (await root.list(folder.slice(1))).length > 0)) {
            throw invalid('folder', 'folder must be new or empty');
        }
        if (found === null && !dryRun) {
            // Opens the folders above as a plugin may, so that none of the panel's own is written to.
            await root
                .createFolder(folder.slice(1), { mode: 0o700 })
                .catch(() => Promise.reject(invalid('folder', 'folder cannot be made there')));
        }
    }

    /** Restores each item; one that fails does not keep the others. In a folder, `/a/b` comes as `folder/a/b`. */
    async run(
        row: RepositoryRow,
        snapshot: Snapshot,
        input: RestoreInput,
        signal: AbortSignal
    ): Promise<readonly RestoredPart[]> {
        const { repositories, snapshots } = this.#services;
        const note = input.items.some(({ path }) => path === undefined)
            ? await snapshots.note(row, snapshot, signal)
            : null;
        const wholeBytes = (await snapshots.records()).get(snapshot.id)?.bytes ?? null;
        const parts: RestoredPart[] = [];
        for (const item of input.items) {
            signal.throwIfAborted();
            const places = item.path === undefined ? placesOf(item, note) : [item.path];
            const [path = null] = places;
            try {
                const part = { ...input, item, places, note, wholeBytes };
                parts.push(
                    await repositories.using(row.id, () => this.#restore(row, snapshot, part, signal))
                );
            } catch (error) {
                signal.throwIfAborted();
                const message =
                    isFailure(error) && error.reason === 'CONFLICT'
                        ? `${(error.data as { field?: string } | null)?.field ?? path} is there already`
                        : (error as Error).message;
                parts.push({ item, ok: false, files: 0, path, message });
            }
        }
        return parts;
    }

    async #restore(
        row: RepositoryRow,
        snapshot: Snapshot,
        part: Part,
        signal: AbortSignal
    ): Promise<RestoredPart> {
        const { ctx, snapshots, scratch, inPlace } = this.#services;
        const { item, places, folder } = part;
        const [path] = places;
        if (path === undefined || !places.every((place) => plainPath.test(place))) {
            return missing(item);
        }
        if (part.dryRun) {
            const { files, paths } = await snapshots.below(row, snapshot, places, signal);
            const where = folder === null ? (item.path ?? null) : `${folder}${path}`;
            return paths === 0 ? missing(item) : { item, ok: true, files, path: where, message: null };
        }
        if (folder !== null) {
            const { available } = await ctx.files(folder).space();
            await this.#requireRoom(row, snapshot, part, available, signal);
            const files = await this.#fetch(row, snapshot, places, folder, signal);
            const restored = { item, ok: true, path: `${folder}${path}`, message: null };
            return files === null ? missing(item) : { ...restored, files };
        }
        const name = `restore-${randomBytes(6).toString('hex')}`;
        const stage = await scratch.make(name);
        try {
            await this.#requireRoom(row, snapshot, part, await scratch.room(), signal);
            const files = await this.#fetch(row, snapshot, places, stage, signal);
            if (files === null) {
                return missing(item);
            }
            if (item.plugin !== undefined) {
                return await this.#giveBack(item, part.note, stage, files);
            }
            const written = await inPlace.place(stage, path, part.conflict, signal);
            return { item, ok: true, files: written, path, message: null };
        } finally {
            await scratch.remove(name);
        }
    }

    /** Gives how many files came; null when nothing did. */
    async #fetch(
        row: RepositoryRow,
        { id }: Snapshot,
        places: readonly string[],
        target: string,
        signal: AbortSignal
    ): Promise<number | null> {
        const { ctx, restic, repositories } = this.#services;
        await restic.run(
            await repositories.target(row),
            [
                'restore',
                id,
                `--target=${target}`,
                ...places.map((path) => `--include=${escapePattern(path)}`)
            ],
            { signal, keepNone: true }
        );
        return countRestored(ctx.files(target), places);
    }

    /** Where all of the snapshot fits, restic is not asked how much the part takes. @throws STORAGE_FULL 50700 */
    async #requireRoom(
        row: RepositoryRow,
        snapshot: Snapshot,
        { places, wholeBytes }: Part,
        available: number,
        signal: AbortSignal
    ): Promise<void> {
        if (wholeBytes !== null && wholeBytes <= available) {
            return;
        }
        const { bytes } = await this.#services.snapshots.below(row, snapshot, places, signal);
        if (bytes > available) {
            throw errors.storageFull();
        }
    }

    /** Hands items to the plugin that gave them. */
    async #giveBack(item: RestoreItem, note: Note, stage: string, files: number): Promise<RestoredPart> {
        const { ctx } = this.#services;
        const found = note?.sources.find(({ source }) => source.plugin === item.plugin);
        const items = (found?.items ?? [])
            .filter(({ name }) => item.item === undefined || name === item.item)
            .map((each) => ({ ...each, path: each.path.slice(1) }));
        const payload = { folder: stage, version: found?.version ?? '', items };
        for await (const outcome of ctx.hooks.collect('backup.restore', () => payload, {
            only: [item.plugin ?? '']
        })) {
            const results = outcome.ok ? (outcome.result ?? []) : [];
            const lacking = items.filter(
                ({ name }) => !results.some((each) => each.item === name && each.ok)
            );
            const said = results.map(({ message }) => message).filter((message) => message !== undefined);
            return {
                item,
                ok: outcome.ok && lacking.length === 0,
                files,
                path: null,
                message: outcome.ok ? said.join('; ') || null : outcome.message
            };
        }
        return {
            item,
            ok: false,
            files: 0,
            path: null,
            message: `The plugin ${item.plugin} does not run, or takes nothing back: restore to a folder`
        };
    }
}

function missing(item: RestoreItem): RestoredPart {
    return { item, ok: false, files: 0, path: null, message: 'It is not in this snapshot' };
}

function placesOf({ plugin, item, panel }: RestoreItem, note: Note): readonly string[] {
    const wanted = panel === true ? panelName : plugin;
    const found = note?.sources.find(
        ({ source }) => (source.type === 'panel' ? panelName : source.plugin) === wanted
    );
    const one = found?.items.find(({ name }) => name === item);
    return item === undefined ? (found?.paths ?? []) : one === undefined ? [] : [one.path];
}

function invalid(path: string, message: string): Error {
    return errors.invalid([{ path, message }]);
}
