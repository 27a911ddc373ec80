/** The tables of notifications: channels, and deliveries. A delivery is in the outbox while it waits, and in the log once it ended. */
import { defineEntity, type InferEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';
import type { Row } from '@portico/sdk/db';

const ChannelEntity = defineEntity({
    name: 'NotificationChannel',
    tableName: 'notification_channel',
    properties: (p) => ({
        id: p.integer().primary(),
        name: p.string(),
        type: p.string(),
        /** JSON array of patterns. */
        events: p.text(),
        /** 0 or 1. */
        enabled: p.integer(),
        /** JSON object of the fields of the type, without secrets. */
        fields: p.text(),
        /** Sealed under the label `notifications`: the password of an email channel, or JSON with address and secret of a webhook; null without any. */
        sealed: p.text().nullable(),
        version: p.integer(),
        createdAt: p.string(),
        updatedAt: p.string()
    })
});

const DeliveryEntity = defineEntity({
    name: 'NotificationDelivery',
    tableName: 'notification_delivery',
    properties: (p) => ({
        n: p.integer().primary(),
        channelId: p.integer(),
        /** The same for all attempts and replays, so that receivers recognise a repetition. */
        messageId: p.string(),
        event: p.string(),
        severity: p.string(),
        title: p.string(),
        /** The message as JSON, exactly as webhooks get it. */
        body: p.text(),
        /** pending, delivered or failed. */
        state: p.string(),
        attempts: p.integer(),
        /** Milliseconds since 1970; null once it ended. */
        nextAttemptAt: p.integer().nullable(),
        createdAt: p.string(),
        lastAttemptAt: p.string().nullable(),
        finishedAt: p.string().nullable(),
        /** Status code of HTTP or SMTP at the last attempt. */
        status: p.integer().nullable(),
        error: p.text().nullable(),
        /** The beginning of the answer of the receiver. */
        response: p.text().nullable(),
        replayOf: p.integer().nullable()
    })
});

/** A row of `notification_channel`. */
export type ChannelRow = Readonly<Row<InferEntity<typeof ChannelEntity>>>;
/** A row of `notification_delivery`. */
export type DeliveryRow = Readonly<Row<InferEntity<typeof DeliveryEntity>>>;

/** The entities of notifications. */
export const notificationEntities = [ChannelEntity, DeliveryEntity] as const;

class CreateNotifications extends Migration {
    override up(): void {
        // AUTOINCREMENT: the id of a removed channel is never used again.
        this.addSql(`create table notification_channel (
            id integer primary key autoincrement not null,
            name text not null,
            type text not null,
            events text not null,
            enabled integer not null,
            fields text not null,
            sealed text,
            version integer not null,
            created_at text not null,
            updated_at text not null
        )`);
        this.addSql(`create table notification_delivery (
            n integer primary key autoincrement not null,
            channel_id integer not null references notification_channel (id) on delete cascade,
            message_id text not null,
            event text not null,
            severity text not null,
            title text not null,
            body text not null,
            state text not null check (state in ('pending', 'delivered', 'failed')),
            attempts integer not null,
            next_attempt_at integer,
            created_at text not null,
            last_attempt_at text,
            finished_at text,
            status integer,
            error text,
            response text,
            replay_of integer
        )`);
        this.addSql('create index notification_delivery_channel on notification_delivery (channel_id, n)');
        this.addSql(
            `create index notification_delivery_pending on notification_delivery (channel_id, next_attempt_at) where state = 'pending'`
        );
    }
}

/** The migrations of notifications. */
export const notificationMigrations: readonly MigrationObject[] = [
    { name: '0001-notifications', class: CreateNotifications }
];
