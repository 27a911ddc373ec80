/** Telling people: the outbox between whatever happened and the channels, and the channels themselves. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { Logger } from '../../platform/log.ts';
import type { Outbound } from '../../platform/outbound/client.ts';
import type { Recorder } from '../../server/http/ports.ts';
import { type Channels, createChannels, resource, settledOf, viewOf } from './channels/channels.ts';
import { matches } from './channels/patterns.ts';
import { Courier, usualRetryMs } from './delivery/courier.ts';
import { createDeliveries, type Deliveries } from './delivery/deliveries.ts';
import { createEmailSender } from './delivery/email.ts';
import { compose, type Message, messageId, type Notification, type Payload } from './delivery/message.ts';
import { createWebhookSender } from './delivery/webhook.ts';
import type { ChannelRow } from './entities.ts';
import { createStore } from './store.ts';

export type { Notification } from './delivery/message.ts';

/** Notifications that may wait to be written; beyond, something is shouting, and the newest are dropped. */
const mostUnwritten = 1000;

/** What taps hear: every notification, as channels send it. Published by the core as the hook `notification.raised`. */
export interface RaisedHook {
    readonly used: boolean;
    run(payload: Payload): Promise<void>;
}

export interface NotificationsOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly outbound: Outbound;
    readonly clock: Clock;
    readonly log: Logger;
    /** Puts on record what a receiver's answer changed: a channel that was disabled. */
    readonly recorder: Pick<Recorder, 'record'>;
    /** Where plugins take notifications to other places. */
    readonly raised?: RaisedHook;
    /** PEM of authorities to trust beside the system's; default: none. */
    readonly ca?: readonly string[];
    /** Waits between attempts, milliseconds; default: 5 s, 30 s, 2 min, 10 min, 1 h, 6 h. */
    readonly retryMs?: readonly number[];
}

export interface Notifications {
    readonly channels: Channels;
    readonly deliveries: Deliveries;
    /** Tells every channel that wants to know. Returns at once and never throws; may be called from anywhere, a transaction included. */
    notify(notification: Notification): void;
    /** Goes on with what waits. To be called once, when the panel may reach out. */
    start(): void;
    /** Writes down what was told, gives attempts under way a moment, and stops; what waits goes on at the next start. */
    close(): Promise<void>;
}

export function createNotifications({
    db,
    keyring,
    outbound,
    clock,
    log,
    recorder,
    raised,
    ca = [],
    retryMs = usualRetryMs
}: NotificationsOptions): Notifications {
    const store = createStore(db);
    const webhook = createWebhookSender({ outbound, clock, ca });
    const email = createEmailSender({ outbound, ca });
    const courier = new Courier({
        db,
        store,
        clock,
        log,
        retryMs,
        async send(channel, message, signal) {
            const { type, fields, secret } = settledOf(channel, keyring);
            return type === 'webhook'
                ? webhook(fields, secret, message, signal)
                : email(fields, secret, message, signal);
        },
        async disable(tx, channel) {
            await switchOff(tx, channel);
        }
    });
    // Whoever notifies may be inside a transaction, or in a request that ends before this does.
    const outside = AsyncLocalStorage.snapshot();
    const unwritten: Omit<Message, 'id'>[] = [];
    let dropped = 0;
    let writing: Promise<void> | null = null;
    let closed = false;

    async function switchOff(tx: Transaction, channel: ChannelRow): Promise<void> {
        const at = new Date(clock.now()).toISOString();
        if (await store.disableChannel(tx, channel.id, at)) {
            await recorder.record(tx, {
                actor: { id: null, username: null, tokenId: null, plugin: null },
                action: 'disable',
                resource,
                resourceId: channel.id,
                before: viewOf(channel),
                after: { ...viewOf(channel), enabled: false, version: channel.version + 1, updatedAt: at },
                outcome: 'success',
                status: null,
                code: 0,
                ip: null,
                userAgent: null,
                requestId: null
            });
        }
    }

    /** Everything that was told until now, in one transaction. Never throws. */
    async function write(): Promise<void> {
        while (unwritten.length > 0) {
            const batch = unwritten.splice(0);
            if (dropped > 0) {
                log.error('Notifications were dropped: too many at once', { dropped });
                dropped = 0;
            }
            let mail: { readonly channel: ChannelRow; readonly message: Message }[] = [];
            try {
                const channels = store.channels().filter(({ enabled }) => enabled === 1);
                mail = batch.flatMap((each) =>
                    channels
                        .filter(({ events }) => matches(JSON.parse(events) as string[], each.event))
                        .map((channel) => ({ channel, message: { id: messageId(), ...each } }))
                );
                if (mail.length > 0) {
                    await db.write((tx) => enqueue(tx, mail));
                    courier.wake();
                }
            } catch (error) {
                // A full disk is what one wants to hear of: what cannot be kept is sent once, as it is.
                log.error('Notifications cannot be kept; each is tried once', {
                    events: batch.map(({ event }) => event),
                    error
                });
                void Promise.all(
                    mail.slice(0, 20).map(({ channel, message }) => courier.attempt(channel, message))
                );
            }
            if (raised?.used === true) {
                void Promise.all(batch.map(({ body }) => raised.run(JSON.parse(body) as Payload))).catch(
                    (error: unknown) => log.warn('A notification did not reach every tap', { error })
                );
            }
        }
    }

    async function enqueue(
        tx: Transaction,
        mail: readonly { readonly channel: ChannelRow; readonly message: Message }[]
    ): Promise<void> {
        const createdAt = clock.now();
        for (const { channel, message } of mail) {
            if (
                (await store.enqueue(tx, { channelId: channel.id, message, createdAt, replayOf: null })) ===
                null
            ) {
                log.error('A notification was dropped: too much waits for its channel', {
                    channel: channel.id,
                    event: message.event
                });
            }
        }
    }

    return {
        channels: createChannels({ db, store, keyring, clock, changed: () => courier.wake() }),
        deliveries: createDeliveries({ db, store, courier, clock }),
        notify(notification) {
            if (closed || unwritten.length >= mostUnwritten) {
                dropped += 1;
                return;
            }
            try {
                unwritten.push(compose(notification, clock.now()));
                writing ??= outside(async () => {
                    await new Promise((resolve) => setImmediate(resolve));
                    await write();
                    writing = null;
                });
            } catch (error) {
                log.error('A notification is unusable', { error });
            }
        },
        start: () => courier.wake(),
        async close() {
            closed = true;
            await writing;
            await courier.close();
        }
    };
}
