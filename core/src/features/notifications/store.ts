/** Channels and deliveries in the database. Reads are as of the last commit; every write is part of a transaction that the caller opened. */
import type { Database, Transaction } from '../../platform/database/database.ts';
import { Writer } from '../../platform/database/writer.ts';
import type { Message } from './delivery/message.ts';
import type { ChannelRow, DeliveryRow } from './entities.ts';

/** Ended deliveries that are kept for a channel. */
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
    readonly createdAt: number;
    readonly replayOf: number | null;
}

export interface Store {
    channels(): readonly ChannelRow[];
    channel(id: number): ChannelRow | undefined;
    insertChannel(tx: Transaction, row: Omit<ChannelRow, 'id'>): Promise<number>;
    /** False when the row is gone or its version is not the one before. */
    updateChannel(tx: Transaction, row: ChannelRow): Promise<boolean>;
    /** Switches off; false when it is off or gone. */
    disableChannel(tx: Transaction, id: number, at: string): Promise<boolean>;
    removeChannel(tx: Transaction, id: number, version: number): Promise<boolean>;

    deliveries(
        channelId: number,
        state: string | null,
        before: number,
        limit: number
    ): readonly DeliveryRow[];
    delivery(channelId: number, n: number): DeliveryRow | undefined;
    /** As the transaction sees it. */
    deliveryIn(tx: Transaction, n: number): Promise<DeliveryRow>;
    /** For each enabled channel for which something waits, when its first is due: milliseconds since 1970. */
    due(): readonly { readonly channelId: number; readonly at: number }[];
    /** The one that is due first. */
    next(channelId: number): DeliveryRow | undefined;
    /** Null when the channel is gone, or too much waits for it already. */
    enqueue(tx: Transaction, delivery: NewDelivery): Promise<number | null>;
    /** Makes a waiting delivery due; false when it does not wait. */
    hasten(tx: Transaction, n: number, now: number): Promise<boolean>;
    /** Records an attempt, and forgets the oldest of the channel's ended deliveries. */
    attempted(
        tx: Transaction,
        delivery: Pick<DeliveryRow, 'n' | 'channelId'>,
        after: AttemptRow
    ): Promise<void>;
}

const channelColumns =
    'id, name, type, events, enabled, fields, sealed, version, created_at as createdAt, updated_at as updatedAt';
const deliveryColumns = `n, channel_id as channelId, message_id as messageId, event, severity, title, body, state, attempts, next_attempt_at as nextAttemptAt, created_at as createdAt,
    last_attempt_at as lastAttemptAt, finished_at as finishedAt, status, error, response, replay_of as replayOf`;

export function createStore(db: Database): Store {
    const writer = new Writer();
    const all = db.prepare<[], ChannelRow>(`select ${channelColumns} from notification_channel order by id`);
    const one = db.prepare<[number], ChannelRow>(
        `select ${channelColumns} from notification_channel where id = ?`
    );
    const page = db.prepare<[number, string | null, string | null, number, number], DeliveryRow>(
        `select ${deliveryColumns} from notification_delivery where channel_id = ? and (? is null or state = ?) and n < ? order by n desc limit ?`
    );
    const single = db.prepare<[number, number], DeliveryRow>(
        `select ${deliveryColumns} from notification_delivery where channel_id = ? and n = ?`
    );
    const waiting = db.prepare<[], { channelId: number; at: number }>(
        `select d.channel_id as channelId, min(d.next_attempt_at) as at from notification_delivery d join notification_channel c on c.id = d.channel_id where d.state = 'pending' and c.enabled = 1 group by d.channel_id`
    );
    const first = db.prepare<[number], DeliveryRow>(
        `select ${deliveryColumns} from notification_delivery where channel_id = ? and state = 'pending' order by next_attempt_at, n limit 1`
    );
    return {
        channels: () => all.all(),
        channel: (id) => one.get(id),
        async insertChannel(tx, row) {
            const statement = await writer.statement(
                tx,
                'insert into notification_channel (name, type, events, enabled, fields, sealed, version, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id'
            );
            return (
                statement.get(
                    row.name,
                    row.type,
                    row.events,
                    row.enabled,
                    row.fields,
                    row.sealed,
                    row.version,
                    row.createdAt,
                    row.updatedAt
                ) as { id: number }
            ).id;
        },
        async updateChannel(tx, row) {
            const statement = await writer.statement(
                tx,
                'update notification_channel set name = ?, events = ?, enabled = ?, fields = ?, sealed = ?, version = ?, updated_at = ? where id = ? and version = ?'
            );
            return (
                statement.run(
                    row.name,
                    row.events,
                    row.enabled,
                    row.fields,
                    row.sealed,
                    row.version,
                    row.updatedAt,
                    row.id,
                    row.version - 1
                ).changes === 1
            );
        },
        async disableChannel(tx, id, at) {
            return (
                (
                    await writer.statement(
                        tx,
                        'update notification_channel set enabled = 0, version = version + 1, updated_at = ? where id = ? and enabled = 1'
                    )
                ).run(at, id).changes === 1
            );
        },
        async removeChannel(tx, id, version) {
            return (
                (
                    await writer.statement(
                        tx,
                        'delete from notification_channel where id = ? and version = ?'
                    )
                ).run(id, version).changes === 1
            );
        },
        deliveries: (channelId, state, before, limit) => page.all(channelId, state, state, before, limit),
        delivery: (channelId, n) => single.get(channelId, n),
        deliveryIn: async (tx, n) =>
            (
                await writer.statement(tx, `select ${deliveryColumns} from notification_delivery where n = ?`)
            ).get(n) as DeliveryRow,
        due: () => waiting.all(),
        next: (channelId) => first.get(channelId),
        async enqueue(tx, { channelId, message, createdAt, replayOf }) {
            const statement = await writer.statement(
                tx,
                `insert into notification_delivery (channel_id, message_id, event, severity, title, body, state, attempts, next_attempt_at, created_at, replay_of)
                select id, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ? from notification_channel
                where id = ? and (select count(*) from notification_delivery where channel_id = ? and state = 'pending') < ${mostWaiting} returning n`
            );
            const { id, event, severity, title, body } = message;
            const row = statement.get(
                id,
                event,
                severity,
                title,
                body,
                createdAt,
                new Date(createdAt).toISOString(),
                replayOf,
                channelId,
                channelId
            ) as { n: number } | undefined;
            return row?.n ?? null;
        },
        async hasten(tx, n, now) {
            return (
                (
                    await writer.statement(
                        tx,
                        `update notification_delivery set next_attempt_at = ? where n = ? and state = 'pending'`
                    )
                ).run(now, n).changes === 1
            );
        },
        async attempted(tx, { n, channelId }, after) {
            const statement = await writer.statement(
                tx,
                'update notification_delivery set state = ?, attempts = attempts + 1, next_attempt_at = ?, last_attempt_at = ?, finished_at = ?, status = ?, error = ?, response = ? where n = ?'
            );
            statement.run(
                after.state,
                after.nextAttemptAt,
                after.lastAttemptAt,
                after.finishedAt,
                after.status,
                after.error,
                after.response,
                n
            );
            if (after.state !== 'pending') {
                const prune = await writer.statement(
                    tx,
                    `delete from notification_delivery where channel_id = ? and state <> 'pending' and n <= (select n from notification_delivery where channel_id = ? and state <> 'pending' order by n desc limit 1 offset ${mostKept})`
                );
                prune.run(channelId, channelId);
            }
        }
    };
}
