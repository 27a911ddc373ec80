/** Sessions: all that live are in memory, so that one which ended is refused at once; the rows are for the next start. */
import { randomBytes } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { SessionEntity } from '../entities.ts';

/** One login. Its ids, its user, `createdAt`, `ip` and `userAgent` never change. Times are milliseconds since 1970. */
export interface Session {
    readonly id: number;
    readonly userId: number;
    /** The id of the one refresh token that is not spent. */
    refreshId: string;
    /** The id of the refresh token that was spent last, and when; null before the first was. */
    spentId: string | null;
    spentAt: number | null;
    readonly createdAt: number;
    lastSeenAt: number;
    provenAt: number;
    expiresAt: number;
    readonly ip: string;
    readonly userAgent: string | null;
}

interface Row {
    readonly id: number;
    readonly user_id: number;
    readonly refresh_id: string;
    readonly spent_id: string | null;
    readonly spent_at: number | null;
    readonly created_at: number;
    readonly last_seen_at: number;
    readonly proven_at: number;
    readonly expires_at: number;
    readonly ip: string;
    readonly user_agent: string | null;
}

const seenEveryMs = 60_000;
const mostOfOneUser = 100;
const longestAgent = 256;
const repeatedMs = 30_000;

/** The sessions, all of them in memory and on disk. */
export class Sessions {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #live = new Map<number, Session>();
    readonly #byUser = new Map<number, Set<Session>>();
    readonly #seen = new Set<Session>();
    readonly #listeners: ((session: Session) => void)[] = [];

    constructor({ db, clock }: { readonly db: Database; readonly clock: Clock }) {
        this.#db = db;
        this.#clock = clock;
        for (const row of db
            .prepare<[number], Row>('select * from auth_sessions where expires_at > ? order by id')
            .all(clock.now())) {
            this.#keep({
                id: row.id,
                userId: row.user_id,
                refreshId: row.refresh_id,
                spentId: row.spent_id,
                spentAt: row.spent_at,
                createdAt: row.created_at,
                lastSeenAt: row.last_seen_at,
                provenAt: row.proven_at,
                expiresAt: row.expires_at,
                ip: row.ip,
                userAgent: row.user_agent
            });
        }
    }

    /** A session that has neither ended nor expired. */
    get(id: number): Session | undefined {
        const session = this.#live.get(id);
        return session !== undefined && session.expiresAt > this.#clock.now() ? session : undefined;
    }

    /** The sessions of an account, the newest first. */
    of(userId: number): Session[] {
        const now = this.#clock.now();
        return [...(this.#byUser.get(userId) ?? [])]
            .filter((session) => session.expiresAt > now)
            .sort((a, b) => b.id - a.id);
    }

    /** Calls back once for each session that ends; one that only expires is not told. */
    onEnd(listener: (session: Session) => void): void {
        this.#listeners.push(listener);
    }

    /** Makes a session; of more than a hundred of one account the one unused for longest ends. */
    async create(
        tx: Transaction,
        login: {
            readonly userId: number;
            readonly ip: string;
            readonly userAgent: string | null;
            readonly expiresAt: number;
        }
    ): Promise<Session> {
        const now = this.#clock.now();
        const row = {
            ...login,
            userAgent: login.userAgent?.slice(0, longestAgent) ?? null,
            refreshId: refreshId(),
            spentId: null,
            spentAt: null,
            createdAt: now,
            lastSeenAt: now,
            provenAt: now
        };
        await this.#endWhere(
            tx,
            [...(this.#byUser.get(login.userId) ?? [])].filter(({ expiresAt }) => expiresAt <= now)
        );
        const idle = this.of(login.userId)
            .sort((a, b) => b.lastSeenAt - a.lastSeenAt)
            .slice(mostOfOneUser - 1);
        await this.#endWhere(tx, idle);
        const id = await tx.em.insert(SessionEntity, row);
        const session: Session = { id, ...row };
        tx.afterCommit(() => this.#keep(session));
        return session;
    }

    /**
     * Spends a refresh token. The one that was spent last is `repeated` for 30 s, since its answer may have been lost, or two tabs of a browser
     * may have used it at once; any other is `reused`, and so has been copied.
     */
    async rotate(
        tx: Transaction,
        session: Session,
        spent: string,
        expiresAt: number
    ): Promise<'rotated' | 'repeated' | 'reused'> {
        const now = this.#clock.now();
        const { refreshId: current, spentId, spentAt } = session;
        if (spent !== current) {
            return spent === spentId && Math.abs(now - (spentAt ?? 0)) < repeatedMs ? 'repeated' : 'reused';
        }
        const next = { refreshId: refreshId(), spentId: spent, spentAt: now, expiresAt, lastSeenAt: now };
        await tx.em.nativeUpdate(SessionEntity, { id: session.id }, next);
        tx.afterCommit(() => Object.assign(session, next));
        return 'rotated';
    }

    /** Makes a session fresh. */
    async prove(tx: Transaction, session: Session): Promise<void> {
        const provenAt = this.#clock.now();
        await tx.em.nativeUpdate(SessionEntity, { id: session.id }, { provenAt });
        tx.afterCommit(() => {
            session.provenAt = provenAt;
        });
    }

    async end(tx: Transaction, session: Session): Promise<void> {
        await this.#endWhere(tx, [session]);
    }

    /** Ends the sessions of an account, but for the one named. */
    async endOf(tx: Transaction, userId: number, but: number | null): Promise<void> {
        await this.#endWhere(
            tx,
            [...(this.#byUser.get(userId) ?? [])].filter(({ id }) => id !== but)
        );
    }

    /** Notes that a session is in use: at once in memory, later on disk. */
    touch(session: Session, now: number): void {
        if (now - session.lastSeenAt >= seenEveryMs) {
            session.lastSeenAt = now;
            this.#seen.add(session);
        }
    }

    /** Writes who was seen. To be called now and then, and before the panel stops. */
    async flush(): Promise<void> {
        if (this.#seen.size === 0) {
            return;
        }
        const seen = [...this.#seen];
        this.#seen.clear();
        await this.#db.write(async (tx) => {
            for (const { id, lastSeenAt } of seen) {
                await tx.em.nativeUpdate(SessionEntity, { id }, { lastSeenAt });
            }
            await tx.em.nativeDelete(SessionEntity, { expiresAt: { $lte: this.#clock.now() } });
        });
    }

    async #endWhere(tx: Transaction, sessions: readonly Session[]): Promise<void> {
        if (sessions.length === 0) {
            return;
        }
        await tx.em.nativeDelete(SessionEntity, { id: { $in: sessions.map(({ id }) => id) } });
        tx.afterCommit(() => sessions.forEach((session) => this.#drop(session)));
    }

    #keep(session: Session): void {
        this.#live.set(session.id, session);
        const own = this.#byUser.get(session.userId) ?? new Set();
        this.#byUser.set(session.userId, own.add(session));
    }

    #drop(session: Session): void {
        if (!this.#live.delete(session.id)) {
            return;
        }
        const own = this.#byUser.get(session.userId);
        own?.delete(session);
        if (own?.size === 0) {
            this.#byUser.delete(session.userId);
        }
        this.#seen.delete(session);
        this.#listeners.forEach((listener) => listener(session));
    }
}

function refreshId(): string {
    return randomBytes(16).toString('base64url');
}
