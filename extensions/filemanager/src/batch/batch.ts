/** Does one thing with many entries, and says for each of them what became of it. */
import { type Actor, errors, isFailure, joi, type Value } from '@portico/sdk';

import { fail } from '../errors.ts';
import { changePermissions, type PermissionChange } from '../files/attributes/permissions.ts';
import { filesystem } from '../files/filesystem.ts';
import { measure } from '../files/tree.ts';
import type { Mover, OnConflict } from '../moving/mover.ts';
import { join, nameOf, parseInner } from '../roots/path.ts';
import { absolute, type Place, type Root, type Roots } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import type { Ctx } from '../settings.ts';
import type { Removal } from '../trash/removal.ts';
import type { Trash } from '../trash/trash.ts';

/** The schema of a result. */
export const batchSchema = joi.object({
    done: joi.number().integer().required().label('Done'),
    skipped: joi.number().integer().required().label('Left out'),
    failed: joi.number().integer().required().label('Failed'),
    items: joi
        .array()
        .items(
            joi.object({
                root: joi.string().required().label('Root'),
                path: joi.string().allow('').required().label('Path'),
                state: joi
                    .choice({ done: 'Done', skipped: 'Left out', failed: 'Failed' })
                    .required()
                    .label('State'),
                code: joi
                    .number()
                    .integer()
                    .allow(null)
                    .required()
                    .label('Code')
                    .description('Of what failed: the code that a request for this item alone would get'),
                to: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('To')
                    .description('Of what was moved or copied: the path that it has now')
            })
        )
        .required()
        .label('Entries')
});
/** The result of a batch. */
export type BatchResult = Value<typeof batchSchema>;
/** What became of one item. */
type ItemResult = BatchResult['items'][number];

/** An item as the client names it. */
export interface BatchItem {
    readonly root: string;
    readonly path: string;
}

/** What is done with every item. */
export type BatchAction =
    | { readonly kind: 'move' | 'copy'; readonly to: Place; readonly onConflict: OnConflict }
    | { readonly kind: 'trash' | 'delete' }
    | { readonly kind: 'mode' | 'owner'; readonly change: PermissionChange };

/** What a batch needs. */
export interface BatchParts {
    readonly roots: Roots;
    readonly scratch: Scratch;
    readonly mover: Mover;
    readonly trash: Trash;
    readonly removal: Removal;
}

/** Items that are worked on at the same time. */
const atOnce = 8;
/** What one request does at once. More becomes a task. */
const requestLimits = { items: 200, entries: 500, bytes: 32 * 2 ** 20 } as const;

/** Batches of items, below any roots of the actor. */
export class Batch {
    readonly #ctx: Ctx;
    readonly #parts: BatchParts;

    constructor(ctx: Ctx, parts: BatchParts) {
        this.#ctx = ctx;
        this.#parts = parts;
    }

    /** Tells whether a batch is more than one request does. */
    async isLarge(actor: Actor, items: readonly BatchItem[], action: BatchAction): Promise<boolean> {
        if (items.length > requestLimits.items) {
            return true;
        }
        if (action.kind === 'trash' || action.kind === 'mode' || action.kind === 'owner') {
            return false;
        }
        let { entries, bytes }: { entries: number; bytes: number } = requestLimits;
        for (const item of items) {
            const size = await this.#measure(actor, item, { entries, bytes });
            entries -= size.entries;
            bytes -= action.kind === 'delete' ? 0 : size.bytes;
            if (entries < 0 || bytes < 0) {
                return true;
            }
        }
        return false;
    }

    /** Works through the items. What fails for one of them does not touch the others. */
    async run(
        actor: Actor,
        items: readonly BatchItem[],
        action: BatchAction,
        options: { readonly signal: AbortSignal; step(done: number): void }
    ): Promise<BatchResult> {
        const { to } = action.kind === 'move' || action.kind === 'copy' ? action : { to: null };
        if (to === null) {
            return this.#all(actor, items, action, { ...options, staging: null });
        }
        return this.#parts.scratch.beside(to.root, join(to.path, 'batch'), async (staging) => {
            await filesystem(() => to.root.files.createFolder(staging, { mode: 0o700 }));
            return this.#all(actor, items, action, { ...options, staging });
        });
    }

    async #all(
        actor: Actor,
        items: readonly BatchItem[],
        action: BatchAction,
        { signal, step, staging }: { signal: AbortSignal; step(done: number): void; staging: string | null }
    ): Promise<BatchResult> {
        const clashes = new Clashes(action);
        const results: ItemResult[] = [];
        const queue = items.entries();
        let done = 0;
        const work = async (): Promise<void> => {
            for (const [index, item] of queue) {
                signal.throwIfAborted();
                const own = { signal, ...(staging === null ? {} : { staging: `${staging}/${index}` }) };
                results[index] = await this.#one(actor, item, action, { clashes, index, ...own });
                done += 1;
                step(done);
            }
        };
        const places = items.map((item) => this.#parse(actor, item, action));
        clashes.read(places);
        await Promise.all(Array.from({ length: atOnce }, work));
        const count = (state: ItemResult['state']): number =>
            results.filter((each) => each.state === state).length;
        return {
            done: count('done'),
            skipped: count('skipped'),
            failed: count('failed'),
            items: results
        };
    }

    async #one(
        actor: Actor,
        item: BatchItem,
        action: BatchAction,
        options: { clashes: Clashes; index: number; signal: AbortSignal; staging?: string }
    ): Promise<ItemResult> {
        const { root, path } = item;
        try {
            const place = this.#parse(actor, item, action);
            if (place instanceof Error) {
                throw place;
            }
            options.clashes.check(options.index);
            const to = await this.#act(actor, place, action, options);
            return {
                root,
                path,
                state: to === 'skipped' ? 'skipped' : 'done',
                code: null,
                to: to === 'skipped' ? null : to
            };
        } catch (error) {
            options.signal.throwIfAborted();
            if (!isFailure(error)) {
                this.#ctx.log.error('An item of a batch failed', { root, path, error: String(error) });
            }
            return { root, path, state: 'failed', code: isFailure(error) ? error.code : 50000, to: null };
        }
    }

    /** Resolves with the path that the item has now, where that is another one. */
    async #act(
        actor: Actor,
        from: Place,
        action: BatchAction,
        { signal, staging }: { readonly signal: AbortSignal; readonly staging?: string }
    ): Promise<string | 'skipped' | null> {
        const { mover, trash, removal } = this.#parts;
        const { root, path } = from;
        switch (action.kind) {
            case 'move':
            case 'copy': {
                const to = { root: action.to.root, path: join(action.to.path, nameOf(path)) };
                const options = {
                    actor,
                    onConflict: action.onConflict,
                    signal,
                    ...(staging === undefined ? {} : { staging })
                };
                const now =
                    action.kind === 'move'
                        ? await mover.move(from, to, options)
                        : await mover.copy(from, to, options);
                return now.path ?? 'skipped';
            }
            case 'trash':
                await trash.put(root, path, actor);
                return null;
            case 'delete':
                await removal.forGood(root, path, { signal, step: () => undefined });
                return null;
            default: {
                const entry = await filesystem(() => root.files.stat(path));
                await changePermissions(root.files, path, entry, action.change);
                return null;
            }
        }
    }

    /** The place of an item, or why it has none. */
    #parse(actor: Actor, { root, path }: BatchItem, { kind }: BatchAction): Place | Error {
        try {
            const { roots } = this.#parts;
            const found: Root = kind === 'copy' ? roots.of(actor, root) : roots.forChange(actor, root);
            return { root: found, path: parseInner(path) };
        } catch (error) {
            return error as Error;
        }
    }

    async #measure(
        actor: Actor,
        item: BatchItem,
        limit: { readonly entries: number; readonly bytes: number }
    ): Promise<{ readonly entries: number; readonly bytes: number }> {
        const place = this.#parse(actor, item, { kind: 'copy' } as BatchAction);
        return place instanceof Error
            ? { entries: 1, bytes: 0 }
            : measure(place.root.files, place.path, limit).catch(() => ({ entries: 1, bytes: 0 }));
    }
}

/** Finds items that stand in the way of each other. */
class Clashes {
    readonly #action: BatchAction;
    #refused = new Map<number, string>();

    constructor(action: BatchAction) {
        this.#action = action;
    }

    read(places: readonly (Place | Error)[]): void {
        const { kind } = this.#action;
        const removes = kind === 'move' || kind === 'trash' || kind === 'delete';
        // With `rename` and `skip`, two items of one name are no harm: the second gets another name, or is left out.
        const names =
            'onConflict' in this.#action && ['fail', 'replace'].includes(this.#action.onConflict)
                ? new Set<string>()
                : null;
        const all = new Map(
            places.flatMap((place, index) => (place instanceof Error ? [] : [[absolute(place), index]]))
        );
        for (const [index, place] of places.entries()) {
            if (place instanceof Error) {
                continue;
            }
            const { path } = place;
            const isTaken = names?.has(nameOf(path)) === true;
            names?.add(nameOf(path));
            if (isTaken || (removes && isCovered(absolute(place), index, all))) {
                this.#refused.set(index, path);
            }
        }
    }

    /** @throws CONFLICT_IN_BATCH 40955 */
    check(index: number): void {
        const path = this.#refused.get(index);
        if (path !== undefined) {
            throw fail.CONFLICT_IN_BATCH({ path });
        }
    }
}

/** Tells whether another item is this entry too, or a folder that it lies in. */
function isCovered(path: string, index: number, all: ReadonlyMap<string, number>): boolean {
    if (all.get(path) !== index) {
        return true;
    }
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
        if (all.has(path.slice(0, at))) {
            return true;
        }
    }
    return false;
}

/** Refuses a batch whose folder is no folder. @throws NOT_FOUND 40400, WRONG_TYPE 40950 */
export async function requireFolder({ root, path }: Place): Promise<void> {
    const { type } = await filesystem(() => root.files.stat(path));
    if (type === 'link') {
        throw errors.notFound('Links are not followed');
    }
    if (type !== 'folder') {
        throw fail.WRONG_TYPE({ path, type, wanted: 'folder' });
    }
}
