/** The rows of deliveries: the outbox, and the log of what was sent. Every write is part of a transaction that the caller opened. */
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import type { DeliveryRow } from '../entities.ts';
import type { Message } from './message.ts';

/** Finished deliveries that are kept for each channel. */
const mostKept = 200;
/** Deliveries that may wait for a channel. */
const mostWaiting = 1000;

/** How an attempt changes its row. */
export type AttemptRow = Pick<
    DeliveryRow,
    'state' | 'nextAttemptAt' | 'lastAttemptAt' | 'finishedAt' | 'status' | 'error' | 'response'
>;

/** A delivery to be put into the outbox. */
export interface NewDelivery {
    readonly channelId: number;
    readonly message: Message;
    /** Milliseconds since 1970. */
    readonly createdAt: number;
    /** The delivery that this one repeats; null for a new message. */
    readonly replayOf: number | null;
}

const columns = `n, channel_id as channelId, message_id as messageId, event, severity, title, body, state, attempts, next_attempt_at as nextAttemptAt, created_at as createdAt,
    last_attempt_at as lastAttemptAt, finished_at as finishedAt, status, error, response, replay_of as replayOf`;

/** Reads and writes deliveries. Reads see the last commit, unless they take a transaction. */
export class DeliveryStore {
    readonly #writer = new Writer();
    readonly #page: Statement<[number, string | null, string | null, number, number], DeliveryRow>;
    readonly #one: Statement<[number, number], DeliveryRow>;
    readonly #due: Statement<[], { channelId: number; at: number }>;
    readonly #next: Statement<[number], DeliveryRow>;

    constructor(db: Database) {
        this.#page = db.prepare(
            `select ${columns} from notification_delivery where channel_id = ? and (? is null or state = ?) and n < ? order by n desc limit ?`
        );
        this.#one = db.prepare(`select ${columns} from notification_delivery where channel_id = ? and n = ?`);
        this.#due = db.prepare(
            `select d.channel_id as channelId, min(d.next_attempt_at) as at from notification_delivery d join notification_channel c on c.id = d.channel_id where d.state = 'pending' and c.enabled = 1 group by d.channel_id`
        );
        this.#next = db.prepare(
            `select ${columns} from notification_delivery where channel_id = ? and state = 'pending' order by next_attempt_at, n limit 1`
        );
    }

    /** The deliveries of a channel whose number is smaller than `before`, newest first. */
    list(channelId: number, state: string | null, before: number, limit: number): readonly DeliveryRow[] {
        return this.#page.all(channelId, state, state, before, limit);
    }

    /** One delivery of a channel. */
    find(channelId: number, n: number): DeliveryRow | undefined {
        return this.#one.get(channelId, n);
    }

    /** One delivery as the transaction sees it. */
    async read(tx: Transaction, n: number): Promise<DeliveryRow> {
        const sql = `select ${columns} from notification_delivery where n = ?`;
        return (await this.#writer.statement(tx, sql)).get(n) as DeliveryRow;
    }

    /** When the first waiting delivery of each enabled channel is due, in milliseconds since 1970. */
    due(): readonly { readonly channelId: number; readonly at: number }[] {
        return this.#due.all();
    }

    /** The delivery of a channel that is due first. */
    next(channelId: number): DeliveryRow | undefined {
        return this.#next.get(channelId);
    }

    /** Adds a waiting delivery and returns its number; null when the channel is gone, or too many deliveries wait for it. */
    async enqueue(
        tx: Transaction,
        { channelId, message, createdAt, replayOf }: NewDelivery
    ): Promise<number | null> {
        const statement = await this.#writer.statement(
            tx,
            `insert into notification_delivery (channel_id, message_id, event, severity, title, body, state, attempts, next_attempt_at, created_at, replay_of)
                select id, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ? from notification_channel
                where id = ? and (select count(*) from notification_delivery where channel_id = ? and state = 'pending') < ${mostWaiting} returning n`
        );
        const { id, event, severity, title, body } = message;
        const at = new Date(createdAt).toISOString();
        const row = statement.get(
            ...[id, event, severity, title, body, createdAt, at, replayOf, channelId, channelId]
        ) as { n: number } | undefined;
        return row?.n ?? null;
    }

    /** Makes a waiting delivery due now; false when it does not wait. */
    async hasten(tx: Transaction, n: number, now: number): Promise<boolean> {
        const statement = await this.#writer.statement(
            tx,
            `update notification_delivery set next_attempt_at = ? where n = ? and state = 'pending'`
        );
        return statement.run(now, n).changes === 1;
    }

    /** Records an attempt, and removes the oldest finished deliveries of the channel. */
    async recordAttempt(
        tx: Transaction,
        { n, channelId }: Pick<DeliveryRow, 'n' | 'channelId'>,
        after: AttemptRow
    ): Promise<void> {
        const statement = await this.#writer.statement(
            tx,
            'update notification_delivery set state = ?, attempts = attempts + 1, next_attempt_at = ?, last_attempt_at = ?, finished_at = ?, status = ?, error = ?, response = ? where n = ?'
        );
        const { state, nextAttemptAt, lastAttemptAt, finishedAt, status, error, response } = after;
        statement.run(state, nextAttemptAt, lastAttemptAt, finishedAt, status, error, response, n);
        if (state !== 'pending') {
            const prune = await this.#writer.statement(
                tx,
                `delete from notification_delivery where channel_id = ? and state <> 'pending' and n <= (select n from notification_delivery where channel_id = ? and state <> 'pending' order by n desc limit 1 offset ${mostKept})`
            );
            prune.run(channelId, channelId);
        }
    }
}
