/**
 * Approvals: a write that an agent wants waits until a person allowed exactly this call, once. A row holds who asked, the canonical arguments,
 * their hash, and the version of the object that the person saw. All state is in the database, so nothing runs twice after `kill -9`.
 */
import {
    type Actor,
    type ApiAnswer,
    type ApiCall,
    type Context,
    errors,
    isFailure,
    type PageOf,
    pages,
    type Plan,
    type RouteInfo
} from '@portico/sdk';
import { type EntityManager, findRows } from '@portico/sdk/db';

import { callHash, maskArguments, type ToolArguments } from '../calls.ts';
import { agentErrors } from '../errors.ts';
import type { ApprovalRow, ApprovalsTable, ApprovalState } from './table.ts';

/** What approvals need of the plugin. */
export type ApprovalsContext = Pick<Context, 'db' | 'api' | 'secrets'>;

/** How approvals behave in a plugin. */
export interface ApprovalsOptions {
    readonly ctx: ApprovalsContext;
    readonly table: ApprovalsTable;
    /** How long a decision is awaited, and how long an approved call may then be made. */
    readonly minutes: () => number;
    /** Most open approvals of one actor. */
    readonly mostOpen: number;
    /** The failure of one more. */
    readonly tooMany: () => Error;
    /** Milliseconds since 1970; default: the machine's clock. */
    readonly now?: () => number;
    /** Who makes an approved call: the same session or token that asked for it (default), or its user by whatever the user asks with. */
    readonly madeBy?: 'asker' | 'user';
}

/** A call that is to be approved. */
export interface ApprovalRequest {
    readonly info: RouteInfo;
    readonly given: ToolArguments;
    /** As `ctx.api.plan` answered for these arguments. */
    readonly plan: Plan;
    /** What it belongs to in the plugin: a tool, a conversation. */
    readonly scope: string;
    /** Kept as JSON. */
    readonly facts?: object;
}

/** Which approvals are listed. */
export interface ApprovalFilter {
    /** Of this user; default: of all. */
    readonly userId?: number | null | undefined;
    readonly state?: ApprovalState | undefined;
    readonly scope?: string | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
}

/** How an approved call is made. */
export type Execution = Pick<ApiCall, 'signal' | 'follow'>;

const open: readonly ApprovalState[] = ['pending', 'approved'];
/** Code of a call whose end is not known. */
const cut = 50300;

/** The approvals of one plugin. Call {@link Approvals.recover} when the plugin starts. */
export class Approvals {
    readonly #options: ApprovalsOptions;
    readonly #entity: ApprovalsTable['entity'];
    /** What waits for a decision, by approval. */
    readonly #waiting = new Map<number, Set<() => void>>();

    constructor(options: ApprovalsOptions) {
        this.#options = options;
        this.#entity = options.table.entity;
    }

    /** Ends what an earlier run of the plugin left: a call that was being made counts as failed, and is never made again. */
    async recover(): Promise<void> {
        await this.#update(
            { state: 'approved', claimedAt: { $ne: null } },
            { state: 'failed', code: cut, sealed: null }
        );
        await this.expire();
    }

    /** Closes what is past its time; with `all` everything that is open and not being executed. */
    async expire(options: { readonly all?: boolean } = {}): Promise<void> {
        const due = options.all === true ? {} : { expiresAt: { $lte: this.#now() } };
        const where = { state: { $in: open }, claimedAt: null, ...due };
        if ((await this.#options.ctx.db.read((em) => em.count(this.#entity, where))) > 0) {
            await this.#update(where, { state: 'expired', sealed: null });
            [...this.#waiting.keys()].forEach((id) => this.#tell(id));
        }
    }

    /**
     * The open approval of this actor for this call, or a new one that is pending.
     *
     * @throws FORBIDDEN 40300 for an actor that is no user; `tooMany` of the options
     */
    async request(
        actor: Actor,
        { info, given, plan, scope, facts = {} }: ApprovalRequest
    ): Promise<ApprovalRow> {
        const { id: userId, username, key: actorKey, tokenId } = actor;
        if (userId === null || username === null) {
            throw errors.forbidden('authenticated');
        }
        await this.expire();
        const hash = callHash(info.id, given);
        const sealed = await this.#options.ctx.secrets.seal(JSON.stringify(given));
        return this.#options.ctx.db.write(async (em) => {
            const mine = { actorKey, state: { $in: open }, claimedAt: null };
            const same = await this.#first(em, { ...mine, hash, scope });
            if (same !== null) {
                return same;
            }
            if ((await em.count(this.#entity, mine)) >= this.#options.mostOpen) {
                throw this.#options.tooMany();
            }
            const row = em.create(this.#entity, {
                state: 'pending',
                scope,
                facts: JSON.stringify(facts),
                route: info.id,
                effect: info.effect,
                dangerous: info.dangerous,
                sealed,
                shown: JSON.stringify(maskArguments(info, given)),
                hash,
                etag: plan.etag,
                plan: JSON.stringify(plan),
                userId,
                actorKey,
                username,
                tokenId,
                createdAt: this.#now(),
                expiresAt: this.#until(),
                decidedBy: null,
                decidedAt: null,
                reason: null,
                claimedAt: null,
                code: null
            });
            await em.flush();
            return row as ApprovalRow;
        });
    }

    /** One page, the newest first. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
    async list({ userId, state, scope, limit, cursor }: ApprovalFilter): Promise<PageOf<ApprovalRow>> {
        await this.expire();
        const after = pages.afterNumber({ cursor });
        const where = {
            ...(userId === undefined ? {} : { userId }),
            ...(state === undefined ? {} : { state }),
            ...(scope === undefined ? {} : { scope }),
            ...(after === null ? {} : { id: { $lt: after } })
        };
        const rows = await this.#options.ctx.db.read((em) =>
            findRows(em, this.#entity, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
        );
        return pages.read(rows, limit, ({ id }) => id);
    }

    /** How many wait for a decision, of one user or of all. */
    async pending(userId?: number): Promise<number> {
        const where = { state: 'pending' as const, expiresAt: { $gt: this.#now() } };
        return this.#options.ctx.db.read((em) =>
            em.count(this.#entity, userId === undefined ? where : { ...where, userId })
        );
    }

    /** @param userId - whose it must be; null: anyone's. @throws NOT_FOUND 40400 */
    async get(id: number, userId: number | null): Promise<ApprovalRow> {
        await this.expire();
        const row = await this.#options.ctx.db.read((em) =>
            this.#first(em, userId === null ? { id } : { id, userId })
        );
        if (row === null) {
            throw errors.notFound('There is no such approval');
        }
        return row;
    }

    /**
     * Allows the call, once.
     *
     * @param by - who is logged in, and may make the call
     * @param userId - whose approval it must be; null: anyone's
     * @param hash - of the call that `by` was shown
     * @throws SESSION_REQUIRED 40352; NOT_FOUND 40400; APPROVAL_MISMATCH 40951; APPROVAL_CLOSED 40950; FORBIDDEN 40300 without the route's permission
     */
    async approve(by: Actor, id: number, userId: number | null, hash: string): Promise<ApprovalRow> {
        if (by.kind !== 'user' || by.tokenId !== null) {
            throw agentErrors.SESSION_REQUIRED();
        }
        const row = await this.get(id, userId);
        if (row.hash !== hash) {
            throw agentErrors.APPROVAL_MISMATCH();
        }
        const routes = await this.#options.ctx.api.routes({ for: by });
        if (!routes.some((route) => route.id === row.route)) {
            throw errors.forbidden((JSON.parse(row.plan) as Plan).permission ?? row.route);
        }
        return this.#decide(by, id, { state: 'approved', expiresAt: this.#until() });
    }

    /**
     * Allows the call by word of the client that asked for it, where the plugin is told to trust clients.
     *
     * @throws NOT_FOUND 40400 for another actor's; APPROVAL_CLOSED 40950
     */
    async confirm(actor: Actor, id: number): Promise<ApprovalRow> {
        await this.#mine(actor, id);
        return this.#decide(actor, id, { state: 'approved', expiresAt: this.#until() });
    }

    /** Refuses the call. @throws NOT_FOUND 40400; APPROVAL_CLOSED 40950 */
    async reject(by: Actor, id: number, userId: number | null, reason: string | null): Promise<ApprovalRow> {
        await this.get(id, userId);
        return this.#decide(by, id, { state: 'rejected', reason, sealed: null });
    }

    /** Resolves with the row when it is decided or over, or when the signal aborts, whichever comes first. */
    async decided(id: number, signal: AbortSignal): Promise<ApprovalRow> {
        const { promise, resolve } = Promise.withResolvers<void>();
        const waiting = this.#waiting.get(id) ?? new Set();
        this.#waiting.set(id, waiting.add(resolve));
        signal.addEventListener('abort', () => resolve(), { once: true });
        let timer: NodeJS.Timeout | undefined;
        try {
            const row = await this.get(id, null);
            if (row.state !== 'pending' || signal.aborted) {
                return row;
            }
            timer = setTimeout(resolve, row.expiresAt - this.#now() + 1);
            await promise;
        } finally {
            clearTimeout(timer);
            waiting.delete(resolve);
            if (waiting.size === 0) {
                this.#waiting.delete(id);
            }
        }
        return this.get(id, null);
    }

    /**
     * Makes an approved call, for the version of the object that was shown. It is made at most once, whatever happens meanwhile.
     *
     * @param actor - who asked for the approval: with the same token, unless `madeBy` of the options says otherwise
     * @throws APPROVAL_CLOSED 40950 when it is not approved, expired or used; NOT_FOUND 40400 for another actor
     */
    async execute(actor: Actor, id: number, execution: Execution = {}): Promise<ApiAnswer> {
        const row = await this.#mine(actor, id);
        const claimed = await this.#update(
            { id, state: 'approved', claimedAt: null, expiresAt: { $gt: this.#now() } },
            { claimedAt: this.#now() }
        );
        if (claimed !== 1 || row.sealed === null) {
            throw agentErrors.APPROVAL_CLOSED();
        }
        let code = cut;
        try {
            const given = JSON.parse(await this.#options.ctx.secrets.open(row.sealed)) as ToolArguments;
            const answer = await this.#options.ctx.api.call(actor, {
                id: row.route,
                ...given,
                ...(row.etag === null ? {} : { ifMatch: row.etag }),
                ...execution
            });
            code = answer.code;
            return answer;
        } catch (error) {
            code = isFailure(error) ? error.code : cut;
            throw error;
        } finally {
            await this.#update({ id }, { state: code === 0 ? 'executed' : 'failed', code, sealed: null });
            this.#tell(id);
        }
    }

    /** Removes those that are over and older than a time, or all of one scope or user. */
    async remove(
        which: { readonly before: number } | { readonly scope: string } | { readonly userId: number }
    ): Promise<void> {
        const where = 'before' in which ? { createdAt: { $lt: which.before }, state: { $nin: open } } : which;
        await this.#options.ctx.db.write((em) => em.nativeDelete(this.#entity, where));
    }

    async #mine(actor: Actor, id: number): Promise<ApprovalRow> {
        const row = await this.get(id, null);
        const isMine =
            this.#options.madeBy === 'user'
                ? actor.id !== null && row.userId === actor.id
                : row.actorKey === actor.key;
        if (!isMine) {
            throw errors.notFound('There is no such approval');
        }
        return row;
    }

    async #decide(by: Actor, id: number, change: Partial<ApprovalRow>): Promise<ApprovalRow> {
        const decided = await this.#update(
            { id, state: 'pending', expiresAt: { $gt: this.#now() } },
            { ...change, decidedBy: by.username, decidedAt: this.#now() }
        );
        if (decided !== 1) {
            throw agentErrors.APPROVAL_CLOSED();
        }
        this.#tell(id);
        return this.get(id, null);
    }

    async #update(where: object, change: Partial<ApprovalRow>): Promise<number> {
        return this.#options.ctx.db.write((em) => em.nativeUpdate(this.#entity, where, change));
    }

    async #first(em: EntityManager, where: object): Promise<ApprovalRow | null> {
        const [row] = await findRows(em, this.#entity, where, { orderBy: { id: 'desc' }, limit: 1 });
        return row ?? null;
    }

    #tell(id: number): void {
        this.#waiting.get(id)?.forEach((wake) => wake());
    }

    #now(): number {
        return (this.#options.now ?? Date.now)();
    }

    #until(): number {
        return this.#now() + this.#options.minutes() * 60_000;
    }
}
