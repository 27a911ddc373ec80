/** What was told by a channel, and how that went: to be looked at, tried and repeated. */
import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { channelOf, resource } from '../channels/channels.ts';
import type { DeliveryRow } from '../entities.ts';
import type { DeliveryQuery, DeliveryView } from '../schema.ts';
import type { Store } from '../store.ts';
import { type Courier, messageOf } from './courier.ts';
import { compose, messageId } from './message.ts';

export interface DeliveriesOptions {
    readonly db: Database;
    readonly store: Store;
    readonly courier: Courier;
    readonly clock: Clock;
}

export interface Deliveries {
    /** Newest first. @throws NOT_FOUND */
    list(channelId: number, query: DeliveryQuery): Reply<readonly DeliveryView[]>;
    /** Sends a message of its own at once, past the outbox, also by a channel that is disabled. @throws NOT_FOUND */
    test(channelId: number, call: Call): Promise<DeliveryView>;
    /** Sends a message once more under the same name: one that ended becomes a new delivery, one that waits is due now. @throws NOT_FOUND, CONFLICT when too much waits */
    replay(channelId: number, n: number, call: Call): Promise<DeliveryView>;
}

export function createDeliveries({ db, store, courier, clock }: DeliveriesOptions): Deliveries {
    const present = (channelId: number, n: number): DeliveryRow => {
        const row = store.delivery(channelId, n);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `Channel ${channelId} has no delivery ${n}` });
        }
        return row;
    };
    return {
        list(channelId, { state = null, limit, cursor }) {
            channelOf(store, channelId);
            const rows = store.deliveries(
                channelId,
                state,
                cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor),
                limit + 1
            );
            return reply.list(rows.slice(0, limit).map(viewOf), {
                next: rows.length > limit ? String(rows[limit - 1]?.n) : null
            });
        },
        async test(channelId, call) {
            const channel = channelOf(store, channelId);
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
            const attempt = await courier.attempt(channel, message, call.signal);
            return db.write(async (tx) => {
                const made = await store.enqueue(tx, { channelId, message, createdAt, replayOf: null });
                if (made === null) {
                    throw store.channel(channelId) === undefined ? fail.NOT_FOUND() : tooMuch(channelId);
                }
                await courier.record(tx, { n: made, channelId, attempts: 0 }, attempt, false);
                return call.complete(tx, {
                    action: 'run',
                    resource,
                    resourceId: channelId,
                    reply: viewOf(await store.deliveryIn(tx, made))
                });
            });
        },
        async replay(channelId, n, call) {
            channelOf(store, channelId);
            const row = present(channelId, n);
            const now = clock.now();
            return db.write(async (tx) => {
                const made = (await store.hasten(tx, n, now))
                    ? n
                    : await store.enqueue(tx, {
                          channelId,
                          message: messageOf(row),
                          createdAt: now,
                          replayOf: n
                      });
                if (made === null) {
                    throw store.channel(channelId) === undefined ? fail.NOT_FOUND() : tooMuch(channelId);
                }
                tx.afterCommit(() => courier.wake());
                return call.complete(tx, {
                    action: 'run',
                    resource,
                    resourceId: channelId,
                    reply: viewOf(await store.deliveryIn(tx, made))
                });
            });
        }
    };
}

function tooMuch(channelId: number): Error {
    return fail.CONFLICT({ field: 'n' }, { message: `Too much waits for channel ${channelId}` });
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
