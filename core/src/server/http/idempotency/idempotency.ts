/**
 * Idempotency keys. A key is claimed durably before its request does anything, and its answer is kept in the transaction of the change: after
 * a crash a retry gets the first answer, or learns that the first request has no known end, and never acts a second time. While the first
 * request is under way, others with its key wait for its answer.
 */
import { createHash } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import { fail } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import type { Idempotency, KeptReply } from '../ports.ts';

/** What the store of idempotency keys is built from. */
export interface IdempotencyOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly clock: Clock;
}

const label = 'idempotency';
const lifeMs = 24 * 60 * 60_000;
const mostPerActor = 1_000;
/** A larger answer is not kept: its key then has no known end. */
const mostAnswerBytes = 1024 * 1024;
/** A request with the same key waits so long for the answer of the first one. */
const longestWaitMs = 60_000;
/** Expired keys that a claim clears away. */
const purgedAtOnce = 50;

interface Row {
    readonly fingerprint: string;
    readonly claimed_at: number;
    readonly answer: string | null;
}

/** A first request that has no end yet. */
interface UnderWay {
    readonly fingerprint: string;
    readonly ended: Promise<void>;
}

type Claim = Awaited<ReturnType<Idempotency['claim']>>;

/** The store of idempotency keys. */
export class IdempotencyKeys implements Idempotency {
    readonly #db: Database;
    readonly #keyring: IdempotencyOptions['keyring'];
    readonly #clock: Clock;
    readonly #find: Statement<[string], Row>;
    readonly #count: Statement<[string], { count: number }>;
    readonly #writer = new Writer();
    /** The first requests that have no end yet, by the id of their key. */
    readonly #underWay = new Map<string, UnderWay>();

    constructor({ db, keyring, clock }: IdempotencyOptions) {
        this.#db = db;
        this.#keyring = keyring;
        this.#clock = clock;
        this.#find = db.prepare('select fingerprint, claimed_at, answer from idempotency_keys where id = ?');
        this.#count = db.prepare('select count(*) as count from idempotency_keys where actor = ?');
    }

    async claim(
        caller: { readonly key: string },
        key: string,
        fingerprint: string,
        call: { readonly signal: AbortSignal }
    ): Promise<Claim> {
        const id = createHash('sha256')
            .update(`${caller.key.length} ${caller.key} ${key}`)
            .digest('base64url');
        for (let other = this.#underWay.get(id); other !== undefined; other = this.#underWay.get(id)) {
            if (other.fingerprint !== fingerprint) {
                throw fail.IDEMPOTENCY_MISMATCH();
            }
            await endOf(other, call.signal);
        }
        const known = this.#find.get(id);
        if (known !== undefined && !this.#isExpired(known)) {
            return { replay: this.#replay(id, known, fingerprint) };
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        const end = (): void => {
            this.#underWay.delete(id);
            resolve();
        };
        this.#underWay.set(id, { fingerprint, ended: promise });
        try {
            await this.#db.write((tx) => this.#insert(tx, id, caller.key, fingerprint));
        } catch (error) {
            end();
            throw error;
        }
        return {
            first: {
                keep: (tx, answer) => this.#keep(tx, id, answer),
                keepAlone: (answer) => this.#db.write((tx) => this.#keep(tx, id, answer)),
                end
            }
        };
    }

    #isExpired(row: Row): boolean {
        return row.claimed_at <= this.#clock.now() - lifeMs;
    }

    /** @throws IDEMPOTENCY_MISMATCH, IDEMPOTENCY_UNRESOLVED */
    #replay(id: string, row: Row, fingerprint: string): KeptReply {
        if (row.fingerprint !== fingerprint) {
            throw fail.IDEMPOTENCY_MISMATCH();
        }
        if (row.answer === null) {
            throw fail.IDEMPOTENCY_UNRESOLVED();
        }
        const { of, ...answer } = JSON.parse(this.#keyring.open(label, row.answer)) as KeptReply & {
            readonly of: string;
        };
        if (of !== id) {
            throw new Error('A kept answer belongs to another key');
        }
        return answer;
    }

    async #insert(tx: Transaction, id: string, actor: string, fingerprint: string): Promise<void> {
        const now = this.#clock.now();
        const run = async (sql: string, parameters: readonly unknown[]): Promise<number> =>
            (await this.#writer.statement(tx, sql)).run(...parameters).changes;
        await run('delete from idempotency_keys where id = ? and claimed_at <= ?', [id, now - lifeMs]);
        await run(
            'delete from idempotency_keys where id in (select id from idempotency_keys where claimed_at <= ? order by claimed_at limit ?)',
            [now - lifeMs, purgedAtOnce]
        );
        await run(
            'insert into idempotency_keys (id, actor, fingerprint, claimed_at, answer) values (?, ?, ?, ?, null)',
            [id, actor, fingerprint, now]
        );
        if ((this.#count.get(actor)?.count ?? 0) >= mostPerActor) {
            // Answers go before claims without one: those still keep a request from acting twice.
            await run(
                'delete from idempotency_keys where id in (select id from idempotency_keys where actor = ? and id <> ? order by answer is not null, claimed_at desc, id limit -1 offset ?)',
                [actor, id, mostPerActor - 1]
            );
        }
    }

    async #keep(tx: Transaction, id: string, answer: KeptReply): Promise<void> {
        if (Buffer.byteLength(answer.body) > mostAnswerBytes) {
            return;
        }
        const { status, headers, body } = answer;
        (await this.#writer.statement(tx, 'update idempotency_keys set answer = ? where id = ?')).run(
            this.#keyring.seal(label, JSON.stringify({ of: id, status, headers, body })),
            id
        );
    }
}

/** Waits for the first request with the key. @throws IDEMPOTENCY_UNRESOLVED 40903 when it takes too long, or the call is over before */
async function endOf({ ended }: UnderWay, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(longestWaitMs)]);
    const { promise, reject } = Promise.withResolvers<never>();
    const give = (): void => reject(fail.IDEMPOTENCY_UNRESOLVED());
    over.addEventListener('abort', give, { once: true });
    try {
        await Promise.race([ended, promise]);
    } finally {
        over.removeEventListener('abort', give);
    }
}
