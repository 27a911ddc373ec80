/** What the assistant changed, and how it is taken back: with proof that nothing else changed since. */
import { maskArguments, type ToolArguments } from '@portico/agents';
import { type Actor, type ApiAnswer, type ApiCall, errors, type Plan, type RouteInfo } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { cutResult } from '../answers/cut.ts';
import { ChangeEntity, type ChangeRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';

/** A call that changes something. */
export interface Making {
    readonly info: RouteInfo;
    readonly given: ToolArguments;
    readonly plan: Plan;
    readonly conversationId: number | null;
    readonly approvalId: number | null;
}

/** The answer of a call, as clients get it. */
export type ShownAnswer = Pick<ApiAnswer, 'status' | 'code' | 'message' | 'data'>;

/** How a change is taken back. */
interface Undo {
    readonly call: Omit<ApiCall, 'signal' | 'follow'>;
    /** What the object is read by, to prove its version. */
    readonly read: Omit<ApiCall, 'signal' | 'follow'> | null;
    /** The version after the change. */
    readonly etag: string | null;
    /** The engine's revision that must still be the newest. */
    readonly newest: number | null;
}

/** The route whose removals a revision of the engine gives back. */
const hostRemoval = 'hosts.remove';
const noUndo = 'this route has no way back';

/** Keeps which changes an assistant made, so that each can be shown and taken back. */
export class Changes {
    readonly #ctx: Ctx;
    readonly #machine: Machine;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /** Makes a change for the version that was planned, and keeps how it is taken back. */
    async make(actor: Actor, making: Making): Promise<ShownAnswer> {
        const { info, given, plan } = making;
        return this.around(actor, making, () =>
            this.#ctx.api.call(actor, {
                id: info.id,
                ...given,
                ...(plan.etag === null ? {} : { ifMatch: plan.etag })
            })
        );
    }

    /** Keeps what a call changes that is made by `work`. */
    async around(actor: Actor, making: Making, work: () => Promise<ApiAnswer>): Promise<ShownAnswer> {
        const before = making.info.id === hostRemoval ? await this.#newestRevision(actor) : null;
        const answer = await work();
        const { status, code, message, data } = answer;
        if (code === 0 && making.info.effect !== 'read') {
            await this.#keep(actor, making, answer, await this.#undoOf(actor, making, answer, before));
        }
        if (making.approvalId !== null) {
            await this.#keepAnswer(making.approvalId, { status, code, message, data });
        }
        return { status, code, message, data };
    }

    /** What an approved call answered; null where it is not known. */
    async answerOf(approvalId: number): Promise<ShownAnswer | null> {
        const [row] = await this.#ctx.db.read((em) =>
            em.execute<{ answer: string }[]>('select answer from answers where approval_id = ?', [approvalId])
        );
        return row === undefined ? null : (JSON.parse(row.answer) as ShownAnswer);
    }

    /** A page of a user's changes, newest first. */
    async list(
        actor: Actor,
        { before, limit }: { before: number | null; limit: number }
    ): Promise<ChangeRow[]> {
        const where = { userId: actor.id ?? 0, ...(before === null ? {} : { id: { $lt: before } }) };
        return this.#ctx.db.read((em) =>
            findRows(em, ChangeEntity, where, {
                orderBy: { id: 'desc' },
                limit: limit + 1
            })
        );
    }

    /**
     * Takes a change back, as the actor.
     *
     * @throws NOT_FOUND 40400; NOT_UNDOABLE 40952 when there is no way back, or anything changed since
     */
    async undo(actor: Actor, id: number): Promise<{ readonly row: ChangeRow; readonly answer: ShownAnswer }> {
        const row = await this.#get(actor, id);
        if (row.undo === null) {
            throw fail.NOT_UNDOABLE({ why: row.why ?? noUndo });
        }
        const undo = JSON.parse(await this.#ctx.secrets.open(row.undo)) as Undo;
        await this.#claim(id);
        let answer: ApiAnswer | null = null;
        try {
            await this.#prove(actor, undo);
            answer = await this.#ctx.api.call(actor, {
                ...undo.call,
                ...(undo.etag === null ? {} : { ifMatch: undo.etag })
            });
            if (answer.code === 41_200) {
                throw fail.NOT_UNDOABLE({ why: 'it was changed since' });
            }
        } finally {
            await this.#release(id, answer?.code === 0 ? 'undone' : 'done');
        }
        const { status, code, message, data } = answer;
        return { row: await this.#get(actor, id), answer: { status, code, message, data } };
    }

    /** What a killed panel left half way. A way back that was gone is refused by its version, so it is offered again. */
    async recover(): Promise<void> {
        await this.#ctx.db.write((em) =>
            em.execute("update changes set state = 'done' where state = 'undoing'")
        );
    }

    /** Removes what is older than a time. */
    async expire(before: number): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.execute('delete from changes where at < ?', [before]);
            await em.execute('delete from answers where at < ?', [before]);
        });
    }

    async #undoOf(
        actor: Actor,
        { info, given, plan }: Making,
        answer: ApiAnswer,
        revision: number | null
    ): Promise<Undo | string> {
        if (info.id === hostRemoval) {
            const newest = await this.#newestRevision(actor);
            return revision === null || newest !== revision + 1
                ? 'another change of the engine came between'
                : {
                      call: { id: 'proxyengine.restore', params: { n: revision } },
                      read: null,
                      etag: null,
                      newest
                  };
        }
        if (plan.undo === null) {
            return info.effect === 'destructive' ? 'what was removed cannot be brought back' : noUndo;
        }
        const routes = await this.#ctx.api.routes({ for: actor });
        const route = routes.find(({ id }) => id === plan.undo?.id);
        if (route === undefined) {
            return 'you may not use the route that takes it back';
        }
        const params = { ...(given.params ?? {}), ...(plan.undo.params ?? {}), ...idOf(route, info, answer) };
        if (missing(route, params)) {
            return 'the new object has no number';
        }
        const reader = routes.find(({ method, path }) => method === 'GET' && samePath(path, route.path));
        const read = reader === undefined ? null : { id: reader.id, params: renamed(params, route, reader) };
        const etag = answer.etag ?? (read === null ? null : (await this.#ctx.api.call(actor, read)).etag);
        return etag === null
            ? 'its version is not known'
            : { call: { ...plan.undo, params }, read, etag, newest: null };
    }

    /** @throws NOT_UNDOABLE 40952 */
    async #prove(actor: Actor, { read, etag, newest }: Undo): Promise<void> {
        if (newest !== null && (await this.#newestRevision(actor)) !== newest) {
            throw fail.NOT_UNDOABLE({ why: 'the engine was changed since' });
        }
        if (read !== null) {
            const now = await this.#ctx.api.call(actor, read);
            if (now.code === 40_400) {
                throw fail.NOT_UNDOABLE({ why: 'it is gone' });
            }
            if (now.code === 0 && now.etag !== etag) {
                throw fail.NOT_UNDOABLE({ why: 'it was changed since' });
            }
        }
    }

    async #newestRevision(actor: Actor): Promise<number | null> {
        const { code, data } = await this.#ctx.api.call(actor, {
            id: 'proxyengine.revisions',
            query: { limit: '1' }
        });
        const [row] = code === 0 && Array.isArray(data) ? (data as { number?: unknown }[]) : [];
        return typeof row?.number === 'number' ? row.number : null;
    }

    async #keep(
        actor: Actor,
        { info, given, plan, conversationId, approvalId }: Making,
        _answer: ApiAnswer,
        undo: Undo | string
    ): Promise<void> {
        const sealed = typeof undo === 'string' ? null : await this.#ctx.secrets.seal(JSON.stringify(undo));
        await this.#ctx.db.write(async (em) => {
            em.create(ChangeEntity, {
                approvalId,
                conversationId,
                userId: actor.id ?? 0,
                username: actor.username ?? '',
                route: info.id,
                method: plan.method,
                path: plan.path,
                shown: JSON.stringify(maskArguments(info, given)),
                changes: JSON.stringify(plan.changes),
                undo: sealed,
                why: typeof undo === 'string' ? undo : null,
                state: 'done',
                at: this.#machine.now(),
                undoneAt: null
            });
        });
    }

    async #keepAnswer(approvalId: number, { data, ...answer }: ShownAnswer): Promise<void> {
        const kept = JSON.stringify({ ...answer, ...cutResult(data) });
        await this.#ctx.db.write((em) =>
            em.execute('insert or replace into answers (approval_id, answer, at) values (?, ?, ?)', [
                approvalId,
                kept,
                this.#machine.now()
            ])
        );
    }

    async #get(actor: Actor, id: number): Promise<ChangeRow> {
        const row = await this.#ctx.db.read((em) => findRow(em, ChangeEntity, { id, userId: actor.id ?? 0 }));
        if (row === null) {
            throw errors.notFound('There is no such change');
        }
        return row;
    }

    /** Only one request takes a change back. @throws NOT_UNDOABLE 40952 */
    async #claim(id: number): Promise<void> {
        const claimed = await this.#ctx.db.write((em) =>
            em.nativeUpdate(ChangeEntity, { id, state: 'done' }, { state: 'undoing' })
        );
        if (claimed !== 1) {
            throw fail.NOT_UNDOABLE({ why: 'it was taken back already' });
        }
    }

    async #release(id: number, state: 'done' | 'undone'): Promise<void> {
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(
                ChangeEntity,
                { id },
                { state, undoneAt: state === 'undone' ? this.#machine.now() : null }
            )
        );
    }
}

const namesIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name ?? '');
const samePath = (one: string, other: string): boolean =>
    one.replace(/\{\w+/g, '{') === other.replace(/\{\w+/g, '{');

/** Of a creation, the number of the new object, by the name that the route which removes it gives to it. */
function idOf(route: RouteInfo, info: RouteInfo, { data, location }: ApiAnswer): Record<string, unknown> {
    const added = namesIn(route.path).filter((name) => !namesIn(info.path).includes(name));
    const { id } = (typeof data === 'object' && data !== null ? data : {}) as { readonly id?: unknown };
    const last = location?.split('/').at(-1);
    const found = id ?? (last === undefined ? undefined : decodeURIComponent(last));
    const [name] = added;
    return info.method !== 'POST' || name === undefined || found === undefined
        ? {}
        : { [name]: String(found) };
}

function missing(route: RouteInfo, params: Readonly<Record<string, unknown>>): boolean {
    return namesIn(route.path).some((name) => params[name] === undefined);
}

/** Two routes of one path may name its parameters differently. */
function renamed(params: Readonly<Record<string, unknown>>, from: RouteInfo, to: RouteInfo): object {
    const targets = namesIn(to.path);
    return Object.fromEntries(namesIn(from.path).map((name, at) => [targets[at] ?? name, params[name]]));
}
