/** The deliveries of a channel as the API shows and repeats them. */
import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { channelOf, resource } from '../channels/channels.ts';
import type { ChannelStore } from '../channels/store.ts';
import type { DeliveryRow } from '../entities.ts';
import type { DeliveryQuery, DeliveryView } from '../schema.ts';
import { type Dispatcher, toMessage } from './dispatcher.ts';
import { compose, messageId } from './message.ts';
import type { DeliveryStore, NewDelivery } from './store.ts';

/** What {@link Deliveries} needs. */
export interface DeliveriesOptions {
    readonly db: Database;
    readonly channels: ChannelStore;
    readonly store: DeliveryStore;
    readonly dispatcher: Dispatcher;
    readonly clock: Clock;
}

/** Lists the deliveries of a channel, tests the channel, and repeats deliveries. */
export class Deliveries {
    readonly #options: DeliveriesOptions;

    constructor(options: DeliveriesOptions) {
        this.#options = options;
    }

    /** The deliveries of a channel, newest first. @throws NOT_FOUND 40400 */
    list(channelId: number, { state, limit, cursor }: DeliveryQuery): Reply<readonly DeliveryView[]> {
        channelOf(this.#options.channels, channelId);
        const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor);
        const rows = this.#options.store.list(channelId, state ?? null, before, limit + 1);
        return reply.list(rows.slice(0, limit).map(viewOf), {
            next: rows.length > limit ? String(rows[limit - 1]?.n) : null
        });
    }

    /** Sends a test message at once, without the outbox and also when the channel is disabled. @throws NOT_FOUND 40400 */
    async test(channelId: number, call: Call): Promise<DeliveryView> {
        const { db, channels, dispatcher, clock } = this.#options;
        const channel = channelOf(channels, channelId);
        const createdAt = clock.now();
        const message = {
            id: messageId(),
            ...compose(
                {
                    event: 'notification.test',
                    severity: 'info',
                    title: `Test of the channel ${channel.name}`,
                    text: 'If you read this, the channel works.'
                },
                createdAt
            )
        };
        const attempt = await dispatcher.attempt(channel, message, call.signal);
        return db.write(async (tx) => {
            const n = await this.#enqueue(tx, { channelId, message, createdAt, replayOf: null });
            await dispatcher.record(tx, { n, channelId, attempts: 0 }, attempt, false);
            return this.#complete(tx, call, channelId, n);
        });
    }

    /**
     * Sends a message again with the same message id. A delivery that ended is repeated as a new one; one that waits becomes due now.
     *
     * @throws NOT_FOUND 40400, CONFLICT 40900 when too many deliveries wait
     */
    async replay(channelId: number, n: number, call: Call): Promise<DeliveryView> {
        const { db, channels, store, dispatcher, clock } = this.#options;
        channelOf(channels, channelId);
        const row = store.find(channelId, n);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `Channel ${channelId} has no delivery ${n}` });
        }
        const createdAt = clock.now();
        return db.write(async (tx) => {
            const due = (await store.hasten(tx, n, createdAt))
                ? n
                : await this.#enqueue(tx, { channelId, message: toMessage(row), createdAt, replayOf: n });
            tx.afterCommit(() => dispatcher.wake());
            return this.#complete(tx, call, channelId, due);
        });
    }

    /** @throws NOT_FOUND 40400 when the channel is gone, CONFLICT 40900 when too many deliveries wait for it */
    async #enqueue(tx: Transaction, delivery: NewDelivery): Promise<number> {
        const { channels, store } = this.#options;
        const n = await store.enqueue(tx, delivery);
        if (n === null) {
            throw channels.find(delivery.channelId) === undefined
                ? fail.NOT_FOUND()
                : tooMany(delivery.channelId);
        }
        return n;
    }

    async #complete(tx: Transaction, call: Call, channelId: number, n: number): Promise<DeliveryView> {
        return call.complete(tx, {
            action: 'run',
            resource,
            resourceId: channelId,
            reply: viewOf(await this.#options.store.read(tx, n))
        });
    }
}

function tooMany(channelId: number): Error {
    return fail.CONFLICT({ field: 'n' }, { message: `Too many deliveries wait for channel ${channelId}` });
}

function viewOf(row: DeliveryRow): DeliveryView {
    return {
        n: row.n,
        messageId: row.messageId,
        event: row.event,
        severity: row.severity as DeliveryView['severity'],
        title: row.title,
        state: row.state as DeliveryView['state'],
        attempts: row.attempts,
        createdAt: row.createdAt,
        lastAttemptAt: row.lastAttemptAt,
        nextAttemptAt: row.nextAttemptAt === null ? null : new Date(row.nextAttemptAt).toISOString(),
        finishedAt: row.finishedAt,
        status: row.status,
        error: row.error,
        response: row.response,
        replayOf: row.replayOf
    };
}
