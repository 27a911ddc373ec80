/** Sends notifications: puts them into the outbox of every channel that wants them, from where the dispatcher takes them. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Notification } from '@portico/sdk';

import type { Section } from '../../engine/section.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Logger } from '../../platform/log/log.ts';
import type { Outbound } from '../../platform/outbound/client.ts';
import type { Recorder } from '../../server/http/ports.ts';
import { Channels, fieldsOf, resource, viewOf } from './channels/channels.ts';
import { createChannelSection } from './channels/export-section.ts';
import { matches } from './channels/patterns.ts';
import { ChannelStore } from './channels/store.ts';
import { Deliveries } from './delivery/deliveries.ts';
import { Dispatcher, usualRetryMs } from './delivery/dispatcher.ts';
import { createEmailSender } from './delivery/email.ts';
import { compose, type Message, messageId, type Payload } from './delivery/message.ts';
import { DeliveryStore } from './delivery/store.ts';
import { createWebhookSender } from './delivery/webhook.ts';
import type { ChannelRow } from './entities.ts';

/** Notifications that may wait to be written. When a part of the panel sends more at once, the newest are dropped. */
const mostUnwritten = 1000;
/** Messages that are sent at once when the outbox cannot be written. */
const mostUnsaved = 20;

/** The hook `notification.raised`, with which taps get every notification as channels send it. */
export interface RaisedHook {
    readonly used: boolean;
    run(payload: Payload): Promise<void>;
}

/** What {@link Notifications} needs. */
export interface NotificationsOptions {
    readonly db: Database;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly outbound: Outbound;
    readonly clock: Clock;
    readonly log: Logger;
    /** Records that a channel was disabled, because its receiver asked for it. */
    readonly recorder: Pick<Recorder, 'record'>;
    /** Tells the plugins that tap notifications. */
    readonly raised?: RaisedHook;
    /** PEM of authorities to trust in addition to those of the system; default: none. */
    readonly ca?: readonly string[];
    /** Waits between attempts in milliseconds; default: 5 s, 30 s, 2 min, 10 min, 1 h, 6 h. */
    readonly retryMs?: readonly number[];
}

/** A message that is in no outbox yet. */
interface Composed extends Omit<Message, 'id'> {
    /** Null: every channel whose events match. */
    readonly channels: readonly number[] | null;
}

interface Addressed {
    readonly channel: ChannelRow;
    readonly message: Message;
}

/** The notifications of the panel. */
export class Notifications {
    readonly channels: Channels;
    readonly deliveries: Deliveries;
    /** The channels in exports and imports. */
    readonly section: Section;
    readonly #options: NotificationsOptions;
    readonly #channelStore: ChannelStore;
    readonly #deliveryStore: DeliveryStore;
    readonly #dispatcher: Dispatcher;
    /** Runs work outside the transaction or request that notifies; it may end before the work does. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #unwritten: Composed[] = [];
    #dropped = 0;
    #writing: Promise<void> | null = null;
    #closed = false;

    constructor(options: NotificationsOptions) {
        const { db, keyring, outbound, clock, log, ca = [], retryMs = usualRetryMs } = options;
        this.#options = options;
        const channels = new ChannelStore(db);
        const deliveries = new DeliveryStore(db);
        const webhook = createWebhookSender({ outbound, clock, ca });
        const email = createEmailSender({ outbound, ca });
        const dispatcher = new Dispatcher({
            db,
            channels,
            deliveries,
            clock,
            log,
            retryMs,
            async send(channel, message, signal) {
                const { type, fields, secret } = fieldsOf(channel, keyring);
                return type === 'webhook'
                    ? webhook(fields, secret, message, signal)
                    : email(fields, secret, message, signal);
            },
            disable: (tx, channel) => this.#disable(tx, channel)
        });
        this.#channelStore = channels;
        this.#deliveryStore = deliveries;
        this.#dispatcher = dispatcher;
        const changed = (): void => dispatcher.wake();
        this.channels = new Channels({ db, store: channels, keyring, clock, changed });
        this.section = createChannelSection({ store: channels, keyring, clock, changed });
        this.deliveries = new Deliveries({ db, channels, store: deliveries, dispatcher, clock });
    }

    /** Sends a notification to every channel that wants it; its event is whole, such as `certificate.expiring`. Returns at once, never throws, and may be called inside a transaction. */
    notify(notification: Notification): void {
        if (this.#closed || this.#unwritten.length >= mostUnwritten) {
            this.#dropped += 1;
            return;
        }
        try {
            const { channels = null } = notification;
            this.#unwritten.push({ ...compose(notification, this.#options.clock.now()), channels });
            this.#writing ??= this.#outside(async () => {
                await new Promise((resolve) => setImmediate(resolve));
                await this.#writeAll();
                this.#writing = null;
            });
        } catch (error) {
            this.#options.log.error('A notification is unusable', { error });
        }
    }

    /** Continues with the outbox. To be called once, when the panel may make connections. */
    start(): void {
        this.#dispatcher.wake();
    }

    /** Writes the last notifications, waits a little for running attempts, and stops. The rest of the outbox is sent after the next start. */
    async close(): Promise<void> {
        this.#closed = true;
        await this.#writing;
        await this.#dispatcher.close();
    }

    /** Never throws. */
    async #writeAll(): Promise<void> {
        while (this.#unwritten.length > 0) {
            const batch = this.#unwritten.splice(0);
            if (this.#dropped > 0) {
                this.#options.log.error('Notifications were dropped: too many at once', {
                    dropped: this.#dropped
                });
                this.#dropped = 0;
            }
            await this.#write(batch);
            this.#tellTaps(batch);
        }
    }

    /** Puts messages into the outbox in one transaction. When that fails, each is sent once: an admin wants to hear of a full disk. */
    async #write(batch: readonly Composed[]): Promise<void> {
        let addressed: readonly Addressed[] = [];
        try {
            addressed = this.#address(batch);
            if (addressed.length > 0) {
                await this.#options.db.write((tx) => this.#enqueue(tx, addressed));
                this.#dispatcher.wake();
            }
        } catch (error) {
            this.#options.log.error('Notifications cannot be stored; each is sent once', {
                events: batch.map(({ event }) => event),
                error
            });
            void Promise.all(
                addressed
                    .slice(0, mostUnsaved)
                    .map(({ channel, message }) => this.#dispatcher.attempt(channel, message))
            );
        }
    }

    #address(batch: readonly Composed[]): readonly Addressed[] {
        const enabled = this.#channelStore
            .all()
            .filter((channel) => channel.enabled === 1)
            .flatMap((channel) => {
                const events = this.#options.db.skipped.read(
                    'notification_channel',
                    channel.id,
                    () => JSON.parse(channel.events) as string[]
                );
                return events === undefined ? [] : [{ channel, events }];
            });
        return batch.flatMap(({ channels, ...each }) =>
            enabled
                .filter(
                    ({ channel, events }) => channels?.includes(channel.id) ?? matches(events, each.event)
                )
                .map(({ channel }) => ({ channel, message: { id: messageId(), ...each } }))
        );
    }

    async #enqueue(tx: Transaction, addressed: readonly Addressed[]): Promise<void> {
        const createdAt = this.#options.clock.now();
        for (const { channel, message } of addressed) {
            const delivery = { channelId: channel.id, message, createdAt, replayOf: null };
            if ((await this.#deliveryStore.enqueue(tx, delivery)) === null) {
                this.#options.log.error('A notification was dropped: too many wait for its channel', {
                    channel: channel.id,
                    event: message.event
                });
            }
        }
    }

    #tellTaps(batch: readonly Composed[]): void {
        const { raised, log } = this.#options;
        if (raised?.used === true) {
            void Promise.all(batch.map(({ body }) => raised.run(JSON.parse(body) as Payload))).catch(
                (error: unknown) => log.warn('A notification did not reach every tap', { error })
            );
        }
    }

    async #disable(tx: Transaction, channel: ChannelRow): Promise<void> {
        const updatedAt = new Date(this.#options.clock.now()).toISOString();
        if (await this.#channelStore.disable(tx, channel.id, updatedAt)) {
            const before = viewOf(channel);
            await this.#options.recorder.record(tx, {
                actor: { id: null, username: null, tokenId: null, plugin: null },
                action: 'disable',
                resource,
                resourceId: channel.id,
                before,
                after: { ...before, enabled: false, version: channel.version + 1, updatedAt },
                outcome: 'success',
                status: null,
                code: 0,
                ip: null,
                userAgent: null,
                requestId: null
            });
        }
    }
}
