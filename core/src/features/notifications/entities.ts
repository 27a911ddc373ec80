/** Channels by which people are told, and what was or is to be told: the outbox and the log of deliveries are one table. */
import { defineEntity, type InferEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

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
        /** JSON object of what the type needs, without secrets. */
        fields: p.text(),
        /** The type's one secret, sealed under the label `notifications`; null without one. */
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
        /** Stays the same over attempts and replays: receivers know a repetition by it. */
        messageId: p.string(),
        event: p.string(),
        severity: p.string(),
        title: p.string(),
        /** The message as JSON, byte for byte as webhooks get it. */
        body: p.text(),
        /** pending, delivered or failed. */
        state: p.string(),
        attempts: p.integer(),
        /** Milliseconds since 1970; null once it ended. */
        nextAttemptAt: p.integer().nullable(),
        createdAt: p.string(),
        lastAttemptAt: p.string().nullable(),
        finishedAt: p.string().nullable(),
        /** Of HTTP or SMTP, from the last attempt. */
        status: p.integer().nullable(),
        error: p.text().nullable(),
        /** The beginning of what the other side said. */
        response: p.text().nullable(),
        replayOf: p.integer().nullable()
    })
});

/** As statements read it: every column is there, null where it is empty. */
type Row<E> = { readonly [K in keyof E as K extends symbol ? never : K]-?: Exclude<E[K], undefined> };

export type ChannelRow = Row<InferEntity<typeof ChannelEntity>>;
export type DeliveryRow = Row<InferEntity<typeof DeliveryEntity>>;

export const notificationEntities = [ChannelEntity, DeliveryEntity] as const;

class CreateNotifications extends Migration {
    override up(): void {
        // AUTOINCREMENT: the number of a channel that is gone is never given to another.
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

export const notificationMigrations: readonly MigrationObject[] = [
    { name: '0001-notifications', class: CreateNotifications }
];
