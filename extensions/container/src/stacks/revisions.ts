/** Stacks and their revisions, as they are kept. */
import { errors } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { RevisionEntity, type RevisionRow, StackEntity, type StackRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Finding } from '../policy/judge.ts';
import type { Ctx } from '../settings.ts';
import { ownerNow } from './owner.ts';
import type { AutoUpdate, ServiceImage, StackSource } from './source.ts';

/** A revision that is added. */
export interface NewRevision extends StackSource {
    readonly by: string | null;
    readonly because: string;
    readonly images: Readonly<Record<string, ServiceImage>>;
    readonly exposed: readonly Finding[];
}

/** A revision as it is read. */
export interface Revision extends NewRevision {
    readonly revision: number;
    readonly at: number;
}

/** Keeps the stacks and their revisions in the database. */
export class StackStore {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    async list(): Promise<readonly StackRow[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, StackEntity, {}, { orderBy: { name: 'asc' } })
        );
        return Promise.all(rows.map((row) => this.#owned(row)));
    }

    async find(name: string): Promise<StackRow | null> {
        const row = await this.#ctx.db.read((em) => findRow(em, StackEntity, { name }));
        return row === null ? null : this.#owned(row);
    }

    /** Takes the owner from a stack whose plugin was removed with its data: from then on it is as people made it. */
    async #owned(row: StackRow): Promise<StackRow> {
        const owner = await ownerNow(this.#ctx, row.owner);
        if (owner !== row.owner) {
            await this.#ctx.db.write((em) =>
                em.nativeUpdate(StackEntity, { name: row.name, owner: row.owner }, { owner })
            );
        }
        return { ...row, owner };
    }

    /** @throws NOT_FOUND 40400 */
    async get(name: string): Promise<StackRow> {
        const row = await this.find(name);
        if (row === null) {
            throw errors.notFound('There is no managed stack of that name');
        }
        return row;
    }

    /** Checks that people may change what belongs to a stack. Null: it belongs to none. @throws STACK_OWNED 40950 for the stack of a plugin */
    async mustBeFree(name: string | null): Promise<void> {
        const owner = name === null ? null : (await this.find(name))?.owner;
        if (owner !== null && owner !== undefined) {
            throw fail.STACK_OWNED({ owner });
        }
    }

    /** Adds a stack with the source of its first revision, which `runs` already or waits for its first deploy. @throws CONFLICT 40900 */
    async create(
        {
            autoUpdate,
            runs = false,
            ...stack
        }: {
            readonly name: string;
            readonly description: string;
            readonly owner: string | null;
            readonly autoUpdate?: AutoUpdate | undefined;
            readonly runs?: boolean;
        },
        first: NewRevision
    ): Promise<StackRow> {
        const now = Date.now();
        const row = {
            ...stack,
            version: 1,
            revision: runs ? 1 : 0,
            createdAt: now,
            updatedAt: now,
            autoUpdate: autoUpdate?.mode ?? 'off',
            autoHours: autoUpdate?.everyHours ?? 24,
            autoAt: 0,
            hookKey: null,
            hookToken: null
        };
        const revision = await this.#rowOf(stack.name, 1, first);
        await this.#ctx.db.write(async (em) => {
            if ((await em.count(StackEntity, { name: stack.name })) > 0) {
                throw errors.conflict('name');
            }
            await em.insert(StackEntity, row);
            await em.insert(RevisionEntity, revision);
        });
        return row;
    }

    /** Makes a revision the one that runs: the next one, or the first, which `create` stored. Older ones beyond the limit go. */
    async commit(name: string, given: NewRevision, description?: string): Promise<number> {
        const { revisionsKept } = this.#ctx.settings;
        const prepared = await this.#rowOf(name, 0, given);
        return this.#ctx.db.write(async (em) => {
            const stack = await findRow(em, StackEntity, { name });
            if (stack === null) {
                throw errors.notFound('The stack was removed meanwhile');
            }
            const revision = stack.revision + 1;
            await em.nativeDelete(RevisionEntity, { stack: name, revision: { $gte: revision } });
            await em.insert(RevisionEntity, { ...prepared, revision });
            await em.nativeUpdate(
                StackEntity,
                { name },
                {
                    revision,
                    version: stack.version + 1,
                    updatedAt: Date.now(),
                    ...(description === undefined ? {} : { description })
                }
            );
            await em.nativeDelete(RevisionEntity, {
                stack: name,
                revision: { $lte: revision - revisionsKept }
            });
            return revision;
        });
    }

    /** Sets how the stack updates by itself. */
    async setAutoUpdate(
        name: string,
        change: Partial<Pick<StackRow, 'autoUpdate' | 'autoHours' | 'autoAt'>>
    ): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(StackEntity, { name }, change)));
    }

    /** Sets the hook; null: there is none. @throws NOT_FOUND 40400 where there was none to take away */
    async setHook(
        name: string,
        hook: { readonly key: string; readonly token: string } | null
    ): Promise<void> {
        if (hook === null && (await this.get(name)).hookKey === null) {
            throw errors.notFound('The stack has no hook');
        }
        const change = { hookKey: hook?.key ?? null, hookToken: hook?.token ?? null };
        await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(StackEntity, { name }, change)));
    }

    async findByHook(hookKey: string): Promise<StackRow | null> {
        return this.#ctx.db.read((em) => findRow(em, StackEntity, { hookKey }));
    }

    async remove(name: string): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(RevisionEntity, { stack: name });
            await em.nativeDelete(StackEntity, { name });
        });
    }

    /** Ids of the images of all revisions that are kept. */
    async imageIds(): Promise<ReadonlySet<string>> {
        const rows = await this.#ctx.db.read((em) => em.find(RevisionEntity, {}, { fields: ['images'] }));
        const all = rows.flatMap(({ images }) =>
            Object.values(JSON.parse(images) as Readonly<Record<string, ServiceImage>>)
        );
        return new Set(all.flatMap(({ imageId }) => (imageId === null ? [] : [imageId])));
    }

    /** Newest first. */
    async revisions(name: string): Promise<readonly Omit<Revision, 'compose' | 'env'>[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, RevisionEntity, { stack: name }, { orderBy: { revision: 'desc' } })
        );
        return rows.map(summaryOf);
    }

    /** A revision with its source. `revision` 0: the first one, which has never run. @throws NOT_FOUND 40400 */
    async revision(name: string, revision: number): Promise<Revision> {
        const row = await this.#ctx.db.read((em) =>
            findRow(em, RevisionEntity, { stack: name, revision: Math.max(1, revision) })
        );
        if (row === null) {
            throw errors.notFound(`Revision ${revision} is not kept`);
        }
        const source = JSON.parse(await this.#ctx.secrets.open(row.source)) as StackSource;
        return { ...summaryOf(row), compose: source.compose, env: source.env };
    }

    async #rowOf(stack: string, revision: number, given: NewRevision): Promise<Omit<RevisionRow, 'id'>> {
        return {
            stack,
            revision,
            setAt: Date.now(),
            setBy: given.by,
            because: given.because,
            source: await this.#ctx.secrets.seal(JSON.stringify({ compose: given.compose, env: given.env })),
            images: JSON.stringify(given.images),
            exposed: JSON.stringify(given.exposed)
        };
    }
}

/** What a revision exposes that runs; nothing before the first has run. */
export const exposedBy = (row: StackRow | null, before: Revision | null): Revision['exposed'] =>
    row === null || row.revision === 0 || before === null ? [] : before.exposed;

function summaryOf({
    revision,
    setAt,
    setBy,
    because,
    images,
    exposed
}: RevisionRow): Omit<Revision, 'compose' | 'env'> {
    return {
        revision,
        at: setAt,
        by: setBy,
        because,
        images: JSON.parse(images) as Readonly<Record<string, ServiceImage>>,
        exposed: JSON.parse(exposed) as readonly Finding[]
    };
}
