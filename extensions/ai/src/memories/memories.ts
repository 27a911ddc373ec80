/** What users want the assistant to know: found by meaning where a model for that is set up, else by words. */
import { type Actor, errors, requireVersion } from '@portico/sdk';
import { type EntityManager, findRow, findRows } from '@portico/sdk/db';

import { MemoryEntity, type MemoryRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Endpoint, Models } from '../providers/model.ts';
import type { Providers } from '../providers/providers.ts';
import { Redactor } from '../redaction/redaction.ts';
import type { Ctx } from '../settings.ts';
import { wordsOf } from '../tools/choice.ts';
import { estimateTokens, type UsageMeter } from '../usage/usage.ts';

/** What a memory is made of. */
export interface MemoryInput {
    readonly text: string;
    readonly tags: readonly string[];
}

interface MemoriesOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly models: Models;
    readonly providers: Providers;
    readonly usage: UsageMeter;
}

/** Memories of one user. */
const mostMemories = 1_000;
/** Memories that one answer is given. */
const mostRecalled = 8;
/** How close two meanings are at least. */
const closeness = 0.35;

/** Keeps memories. Only their user writes them: what a model says never becomes one. */
export class Memories {
    readonly #options: MemoriesOptions;

    constructor(options: MemoriesOptions) {
        this.#options = options;
    }

    /** A page of the user's memories, newest first. */
    async list(
        actor: Actor,
        { before, limit }: { before: number | null; limit: number }
    ): Promise<MemoryRow[]> {
        const where = { userId: actor.id ?? 0, ...(before === null ? {} : { id: { $lt: before } }) };
        return this.#options.ctx.db.read(async (em) =>
            findRows(em, MemoryEntity, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
        );
    }

    /** Those that fit a text, the best first. */
    async find(actor: Actor, q: string, limit: number, signal: AbortSignal): Promise<MemoryRow[]> {
        const userId = actor.id ?? 0;
        const count = await this.#options.ctx.db.read((em) => em.count(MemoryEntity, { userId }));
        if (count === 0) {
            return [];
        }
        const asked = await this.#vectorOf(actor, q, signal);
        return asked === null
            ? this.#options.ctx.db.read((em) => byWords(em, userId, q, limit))
            : this.#byMeaning(userId, asked, limit);
    }

    /** What the assistant shall know for a question. A model for meanings that fails costs only the memories. */
    async recall(actor: Actor, about: string, signal: AbortSignal): Promise<string[]> {
        try {
            const found = await this.find(actor, about.slice(0, 8_192), mostRecalled, signal);
            return found.map(({ text }) => text);
        } catch (error) {
            signal.throwIfAborted();
            this.#options.ctx.log.warn('Memories could not be searched', { error: String(error) });
            return [];
        }
    }

    /** @throws CONFLICT 40900 for one more than there may be */
    async create(actor: Actor, { text, tags }: MemoryInput, signal: AbortSignal): Promise<MemoryRow> {
        const userId = actor.id ?? 0;
        const now = this.#options.machine.now();
        const vector = await this.#vectorOrNull(actor, text, signal);
        return this.#options.ctx.db.write(async (em) => {
            if ((await em.count(MemoryEntity, { userId })) >= mostMemories) {
                throw errors.conflict('room for memories');
            }
            const row = em.create(MemoryEntity, {
                version: 1,
                userId,
                text,
                tags: JSON.stringify(tags),
                ...vector,
                createdAt: now,
                updatedAt: now
            }) as MemoryRow;
            await em.flush();
            await index(em, row);
            return row;
        });
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async update(
        actor: Actor,
        id: number,
        change: Partial<MemoryInput>,
        seen: number | string | null,
        signal: AbortSignal
    ): Promise<MemoryRow> {
        const vector = change.text === undefined ? {} : await this.#vectorOrNull(actor, change.text, signal);
        return this.#options.ctx.db.write(async (em) => {
            const row = await this.#own(em, actor, id);
            requireVersion(row, seen);
            Object.assign(row, {
                ...(change.text === undefined ? {} : { text: change.text }),
                ...(change.tags === undefined ? {} : { tags: JSON.stringify(change.tags) }),
                ...vector,
                version: row.version + 1,
                updatedAt: this.#options.machine.now()
            });
            await unindex(em, 'rowid = ?', id);
            await index(em, row);
            return row;
        });
    }

    /** @throws NOT_FOUND 40400 */
    async remove(actor: Actor, id: number): Promise<void> {
        await this.#options.ctx.db.write(async (em) => {
            await this.#own(em, actor, id);
            await unindex(em, 'rowid = ?', id);
            await em.nativeDelete(MemoryEntity, { id });
        });
    }

    /** Removes all of one user. Tells how many there were. */
    async removeAll(userId: number): Promise<number> {
        return this.#options.ctx.db.write(async (em) => {
            await unindex(em, 'rowid in (select id from memories where user_id = ?)', userId);
            return em.nativeDelete(MemoryEntity, { userId });
        });
    }

    async #own(em: EntityManager, actor: Actor, id: number): Promise<MemoryRow> {
        const row = await findRow(em, MemoryEntity, { id, userId: actor.id ?? 0 });
        if (row === null) {
            throw errors.notFound('There is no such memory');
        }
        return row;
    }

    async #byMeaning(userId: number, asked: Vector, limit: number): Promise<MemoryRow[]> {
        const rows = await this.#options.ctx.db.read(async (em) =>
            findRows(em, MemoryEntity, { userId, vectorOf: asked.vectorOf })
        );
        return rows
            .map((row) => ({ row, near: cosine(asked.numbers, JSON.parse(row.vector ?? '[]') as number[]) }))
            .filter(({ near }) => near >= closeness)
            .sort((one, other) => other.near - one.near)
            .slice(0, limit)
            .map(({ row }) => row);
    }

    /** A memory is kept also when no vector can be made of it now. */
    async #vectorOrNull(
        actor: Actor,
        text: string,
        signal: AbortSignal
    ): Promise<Pick<MemoryRow, 'vector' | 'vectorOf'>> {
        const made = await this.#vectorOf(actor, text, signal).catch((error: unknown) => {
            signal.throwIfAborted();
            this.#options.ctx.log.warn('A memory has no vector', { error: String(error) });
            return null;
        });
        return made === null
            ? { vector: null, vectorOf: null }
            : { vector: JSON.stringify(made.numbers), vectorOf: made.vectorOf };
    }

    /** Null without a model for that. @throws LIMIT_REACHED 42950, MODEL_FAILED 50250 */
    async #vectorOf(actor: Actor, text: string, signal: AbortSignal): Promise<Vector | null> {
        const { ctx, models, providers, usage } = this.#options;
        const endpoint = await providers.choose(null).catch(() => null);
        if (endpoint === null || endpoint.embeddingModel === null) {
            return null;
        }
        const clean = new Redactor(ctx.settings).text(text);
        const estimate = estimateTokens(clean.length);
        const reserved = await usage.reserve(actor, endpoint, estimate);
        const { vectors, tokens } = await models.embed(endpoint, [clean], signal);
        await usage.correct(reserved, endpoint, { input: tokens ?? estimate, output: 0 });
        const [numbers] = vectors;
        return numbers === undefined ? null : { numbers, vectorOf: nameOf(endpoint) };
    }
}

interface Vector {
    readonly numbers: readonly number[];
    readonly vectorOf: string;
}

const nameOf = ({ id, embeddingModel }: Endpoint): string => `${id}/${embeddingModel ?? ''}`;

function cosine(one: readonly number[], other: readonly number[]): number {
    const dot = (a: readonly number[], b: readonly number[]): number =>
        a.reduce((sum, each, at) => sum + each * (b[at] ?? 0), 0);
    const length = Math.sqrt(dot(one, one) * dot(other, other));
    return one.length !== other.length || length === 0 ? 0 : dot(one, other) / length;
}

async function byWords(em: EntityManager, userId: number, q: string, limit: number): Promise<MemoryRow[]> {
    const words = [...new Set(wordsOf(q))].slice(0, 64);
    if (words.length === 0) {
        return [];
    }
    const terms = words.map((word) => `"${word}"*`).join(' OR ');
    const found = await em.execute<{ rowid: number }[]>(
        'select rowid from memory_texts where memory_texts match ? order by rank limit ?',
        [`owner : u${userId} AND text : (${terms})`, limit]
    );
    const rows = await findRows(em, MemoryEntity, { id: { $in: found.map(({ rowid }) => rowid) } });
    return found.flatMap(({ rowid }) => rows.filter(({ id }) => id === rowid));
}

async function index(em: EntityManager, { id, userId, text, tags }: MemoryRow): Promise<void> {
    await em.execute('insert into memory_texts (rowid, owner, text) values (?, ?, ?)', [
        id,
        `u${userId}`,
        [text, ...(JSON.parse(tags) as string[])].join(' ')
    ]);
}

async function unindex(em: EntityManager, where: string, value: number): Promise<void> {
    await em.execute(`delete from memory_texts where ${where}`, [value]);
}
