/** Conversations of users, with all that was said in them. */
import { type Actor, errors, requireVersion } from '@portico/sdk';
import { type EntityManager, findRow, findRows } from '@portico/sdk/db';

import {
    ConversationEntity,
    type ConversationRow,
    type EndReason,
    MessageEntity,
    type MessageRow
} from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Spent } from '../usage/usage.ts';
import type { Question } from './schema.ts';

/** A call that the assistant made, or that waits for an approval. */
export interface StepCall {
    readonly id: string;
    /** The function's name, as the model wrote it. */
    readonly name: string;
    readonly route: string;
    readonly arguments: unknown;
    /** Null while there is no answer. */
    readonly status: number | null;
    readonly code: number | null;
    readonly message: string | null;
    readonly data: unknown;
    readonly truncated: boolean;
    readonly approvalId: number | null;
    /** What the provider wants to see again beside the call. */
    readonly meta: unknown;
}

/** One request to the model, and what came of it. */
export interface Step {
    readonly text: string;
    readonly calls: readonly StepCall[];
}

/** A page of a list: newest first, `before` exclusive. */
export interface Slice {
    readonly before: number | null;
    readonly limit: number;
}

/** How an answer ended. */
export interface Outcome {
    readonly steps: readonly Step[];
    readonly reason: EndReason;
    readonly spent: Spent;
    readonly placeholders: Readonly<Record<string, string>>;
}

/** Rows of the index that a search reads at once. */
const searchStep = 500;
const dayMs = 86_400_000;

/** Keeps conversations. Each method sees those of its actor alone. */
export class Conversations {
    readonly #ctx: Ctx;
    readonly #machine: Machine;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /** A page of the actor's conversations. @param q - words of titles and texts; all of them must be there */
    async list(actor: Actor, q: string | undefined, { before, limit }: Slice): Promise<ConversationRow[]> {
        return this.#ctx.db.read(async (em) => {
            const where = { ...ownedBy(actor), ...(before === null ? {} : { id: { $lt: before } }) };
            const terms = q === undefined ? null : termsOf(q);
            if (terms === null) {
                return findRows(em, ConversationEntity, where, { orderBy: { id: 'desc' }, limit: limit + 1 });
            }
            const ids = await found(em, actor, terms, { before, limit: limit + 1 });
            return findRows(
                em,
                ConversationEntity,
                { ...ownedBy(actor), id: { $in: ids } },
                { orderBy: { id: 'desc' } }
            );
        });
    }

    /** @throws NOT_FOUND 40400 also for what another user has */
    async get(actor: Actor, id: number): Promise<ConversationRow> {
        return this.#ctx.db.read((em) => find(em, actor, id));
    }

    /** Begins a conversation. */
    async create(
        actor: Actor,
        { title, providerId, pinned }: Pick<ConversationRow, 'title' | 'providerId' | 'pinned'>
    ): Promise<ConversationRow> {
        const now = this.#machine.now();
        return this.#ctx.db.write(async (em) => {
            const row = em.create(ConversationEntity, {
                version: 1,
                userId: actor.id ?? 0,
                actorKey: actor.key,
                title,
                providerId,
                pinned,
                placeholders: '{}',
                createdAt: now,
                updatedAt: now
            }) as ConversationRow;
            await em.flush();
            await index(em, titleRow(row.id), row.userId, title);
            return row;
        });
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async update(
        actor: Actor,
        id: number,
        change: Partial<Pick<ConversationRow, 'title' | 'providerId' | 'pinned'>>,
        seen: number | string | null
    ): Promise<ConversationRow> {
        return this.#ctx.db.write(async (em) => {
            const row = await find(em, actor, id);
            requireVersion(row, seen);
            Object.assign(row, change, { version: row.version + 1 });
            await unindex(em, titleRow(row.id));
            await index(em, titleRow(row.id), row.userId, row.title);
            return row;
        });
    }

    /** @throws NOT_FOUND 40400 */
    async remove(actor: Actor, id: number): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            const { id: found } = await find(em, actor, id);
            await forget(em, 'id = ?', [found]);
        });
    }

    /** Removes all of a user who is no more. */
    async removeOf(userId: number): Promise<void> {
        await this.#ctx.db.write((em) => forget(em, 'user_id = ?', [userId]));
    }

    /** Removes those whose last message is older than the setting `keepDays` says. */
    async expire(): Promise<void> {
        const oldest = this.#machine.now() - this.#ctx.settings.keepDays * dayMs;
        await this.#ctx.db.write(async (em) => {
            await forget(em, 'pinned = 0 and updated_at < ?', [oldest]);
            // A month is what the longest limit looks back.
            await em.execute('delete from usage where at < ?', [
                Math.min(oldest, this.#machine.now() - 62 * dayMs)
            ]);
        });
    }

    /** Messages of one conversation, newest first. */
    async messages(conversationId: number, { before, limit }: Slice): Promise<MessageRow[]> {
        const where = { conversationId, ...(before === null ? {} : { id: { $lt: before } }) };
        return this.#ctx.db.read((em) =>
            findRows(em, MessageEntity, where, {
                orderBy: { id: 'desc' },
                limit: limit + 1
            })
        );
    }

    /** Writes a question. */
    async ask(conversation: ConversationRow, { text, attachments }: Question): Promise<MessageRow> {
        return this.#add(conversation, { role: 'user', text, parts: JSON.stringify(attachments) });
    }

    /** Begins an answer: until it is ended, its reason is null. */
    async begin(conversation: ConversationRow): Promise<MessageRow> {
        return this.#add(conversation, { role: 'assistant', text: '', parts: '[]' });
    }

    /** Ends an answer, and keeps what it said. */
    async end(message: Pick<MessageRow, 'id' | 'conversationId'>, outcome: Outcome): Promise<void> {
        const text = textOf(outcome.steps);
        await this.#ctx.db.write(async (em) => {
            const row = await em.findOne(MessageEntity, { id: message.id });
            const conversation = await em.findOne(ConversationEntity, { id: message.conversationId });
            if (row === null || conversation === null) {
                return;
            }
            Object.assign(row, {
                text,
                parts: JSON.stringify(outcome.steps),
                reason: outcome.reason,
                ...outcome.spent
            });
            conversation.placeholders = JSON.stringify(outcome.placeholders);
            conversation.updatedAt = this.#machine.now();
            await unindex(em, textRow(message));
            await index(em, textRow(message), conversation.userId, text);
        });
    }

    /** Removes the newest answer, so that the question before it can be answered anew. @throws NOT_FOUND 40400 when there is no question */
    async dropAnswer(conversation: ConversationRow): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            const rows = await findRows(
                em,
                MessageEntity,
                { conversationId: conversation.id },
                { orderBy: { id: 'desc' }, limit: 2 }
            );
            if (!rows.some(({ role }) => role === 'user')) {
                throw errors.notFound('There is no question to answer');
            }
            for (const row of rows.filter(({ role }, at) => role === 'assistant' && at === 0)) {
                await unindex(em, textRow(row));
                await em.nativeDelete(MessageEntity, { id: row.id });
            }
        });
    }

    /** Ends the answers that a killed panel left open. */
    async recover(): Promise<void> {
        await this.#ctx.db.write((em) =>
            em.execute("update messages set reason = 'stopped' where role = 'assistant' and reason is null")
        );
    }

    async #add(
        conversation: ConversationRow,
        fields: Pick<MessageRow, 'role' | 'text' | 'parts'>
    ): Promise<MessageRow> {
        const now = this.#machine.now();
        return this.#ctx.db.write(async (em) => {
            const row = em.create(MessageEntity, {
                conversationId: conversation.id,
                ...fields,
                reason: null,
                input: 0,
                output: 0,
                cost: null,
                at: now
            }) as MessageRow;
            await em.flush();
            await index(em, textRow(row), conversation.userId, fields.text);
            await em.execute('update conversations set updated_at = ? where id = ?', [now, conversation.id]);
            return row;
        });
    }
}

/** The text of an answer: that of all its steps. */
export const textOf = (steps: readonly Step[]): string =>
    steps
        .map(({ text }) => text)
        .filter((text) => text !== '')
        .join('\n\n');

/** The steps of an answer. */
export const stepsOf = ({ parts }: Pick<MessageRow, 'parts'>): Step[] => JSON.parse(parts) as Step[];

/** A user sees all that is the user's own; an API token sees what it began. */
function ownedBy(actor: Actor): { readonly userId: number; readonly actorKey?: string } {
    return { userId: actor.id ?? 0, ...(actor.kind === 'user' ? {} : { actorKey: actor.key }) };
}

async function find(em: EntityManager, actor: Actor, id: number): Promise<ConversationRow> {
    const row = await findRow(em, ConversationEntity, { id, ...ownedBy(actor) });
    if (row === null) {
        throw errors.notFound('There is no such conversation');
    }
    return row;
}

/** Words of a search as FTS5 takes them, each as a beginning; null without any. */
function termsOf(q: string): string | null {
    const words = q.match(/[\p{L}\p{N}]+/gu)?.slice(0, 16) ?? [];
    return words.length === 0 ? null : words.map((word) => `"${word}"*`).join(' ');
}

/** Ids of conversations with all the words in their title or in one message, newest conversation first. */
async function found(
    em: EntityManager,
    actor: Actor,
    terms: string,
    { before, limit }: Slice
): Promise<number[]> {
    const match = `owner : u${actor.id ?? 0} AND text : (${terms})`;
    const ids = new Set<number>();
    let last = before === null ? Number.MAX_SAFE_INTEGER : titleRow(before);
    while (ids.size < limit) {
        const rows = await em.execute<{ rowid: number }[]>(
            `select rowid from message_texts where message_texts match ? and rowid < ? order by rowid desc limit ${searchStep}`,
            [match, last]
        );
        rows.forEach(({ rowid }) => ids.add(Math.floor(rowid / span)));
        const end = rows.at(-1);
        if (end === undefined || rows.length < searchStep) {
            break;
        }
        last = titleRow(Math.floor(end.rowid / span));
    }
    return [...ids].slice(0, limit);
}

/** Rows of the index of one conversation lie together, in the order of conversations: the newest matches are read without a join. */
const span = 2 ** 26;
const titleRow = (conversationId: number): number => conversationId * span;
const textRow = ({ id, conversationId }: Pick<MessageRow, 'id' | 'conversationId'>): number =>
    titleRow(conversationId) + 1 + (id % (span - 1));

async function index(em: EntityManager, rowid: number, userId: number, text: string): Promise<void> {
    if (text !== '') {
        await em.execute('insert into message_texts (rowid, owner, text) values (?, ?, ?)', [
            rowid,
            `u${userId}`,
            text
        ]);
    }
}

async function unindex(em: EntityManager, rowid: number): Promise<void> {
    await em.execute('delete from message_texts where rowid = ?', [rowid]);
}

/** Removes conversations with their messages, and both from the index. */
async function forget(em: EntityManager, where: string, values: number[]): Promise<void> {
    const those = `select id from conversations where ${where}`;
    await em.execute(
        `delete from message_texts where rowid in (select conversation_id * ${span} + 1 + id % ${span - 1} from messages where conversation_id in (${those}))`,
        values
    );
    await em.execute(
        `delete from message_texts where rowid in (select id * ${span} from (${those}))`,
        values
    );
    await em.execute(`delete from conversations where ${where}`, values);
}
