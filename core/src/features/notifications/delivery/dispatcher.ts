/**
 * Sends the deliveries of the outbox: one attempt at a time for each channel, and all channels at once, so that a slow receiver delays no
 * other. An attempt that the end of the process interrupted is repeated, so every message arrives at least once or its failure is recorded.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomInt } from 'node:crypto';

import { messageOf } from '@portico/sdk';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { ChannelStore } from '../channels/store.ts';
import type { ChannelRow, DeliveryRow } from '../entities.ts';
import type { Message } from './message.ts';
import type { Attempt } from './sender.ts';
import type { DeliveryStore } from './store.ts';

/** Waits before the second attempt and each later one: 5 s, 30 s, 2 min, 10 min, 1 h, 6 h. */
export const usualRetryMs: readonly number[] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000];

/** The time limit of one attempt. */
const attemptMs = 25_000;
/** The fraction by which a wait is randomly made longer or shorter, so that a receiver that returns does not get all retries at once. */
const jitter = 0.2;
/** No wait is longer. A delivery that seems due later is due now: the clock was set back. */
const longestWaitMs = 24 * 3_600_000;
/** The outbox is read at least this often, since the clock can be set and the machine can sleep. */
const longestSleepMs = 60_000;
/** The pause of a channel whose attempts cannot be recorded. Without it, the same message would be sent again and again. */
const holdMs = 60_000;
/** How long running attempts may take when the panel stops. */
const graceMs = 3_000;

/** What {@link Dispatcher} needs. */
export interface DispatcherOptions {
    readonly db: Database;
    readonly channels: ChannelStore;
    readonly deliveries: DeliveryStore;
    readonly clock: Clock;
    readonly log: Logger;
    readonly retryMs: readonly number[];
    /** Makes one attempt. May throw. */
    send(channel: ChannelRow, message: Message, signal: AbortSignal): Promise<Attempt>;
    /** Disables a channel whose receiver refuses all further messages. */
    disable(tx: Transaction, channel: ChannelRow): Promise<void>;
}

/** Makes attempts when they are due, and records how they ended. */
export class Dispatcher {
    readonly #options: DispatcherOptions;
    /** Runs work outside the transaction and the request that are open. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #busy = new Map<number, Promise<void>>();
    readonly #held = new Map<number, number>();
    readonly #ending = new AbortController();
    #timer: NodeJS.Timeout | null = null;
    #closed = false;

    constructor(options: DispatcherOptions) {
        this.#options = options;
    }

    /** Reads the outbox soon. */
    wake(): void {
        this.#sleep(0);
    }

    /** Makes one attempt now, within the time limit. Never throws. */
    async attempt(
        channel: ChannelRow,
        message: Message,
        signal: AbortSignal = this.#ending.signal
    ): Promise<Attempt> {
        const { send, log } = this.#options;
        const controller = new AbortController();
        const aborted = (): void => controller.abort(new Error('The attempt was interrupted'));
        const timer = setTimeout(
            () => controller.abort(new Error(`No end within ${attemptMs / 1000} s`)),
            attemptMs
        );
        signal.addEventListener('abort', aborted);
        if (signal.aborted) {
            aborted();
        }
        try {
            return await send(channel, message, controller.signal);
        } catch (error) {
            log.debug('An attempt to notify failed', { channel: channel.id, message: message.id, error });
            return {
                ok: false,
                status: null,
                error: messageOf(error),
                response: null
            };
        } finally {
            clearTimeout(timer);
            signal.removeEventListener('abort', aborted);
        }
    }

    /** Records an attempt. `retry`: whether there may be another one. */
    async record(
        tx: Transaction,
        delivery: Pick<DeliveryRow, 'n' | 'channelId' | 'attempts'>,
        attempt: Attempt,
        retry: boolean
    ): Promise<void> {
        const { clock, deliveries, retryMs } = this.#options;
        const now = clock.now();
        const wait = retry && !attempt.ok && attempt.gone !== true ? retryMs[delivery.attempts] : undefined;
        const at = new Date(now).toISOString();
        await deliveries.recordAttempt(tx, delivery, {
            state: attempt.ok ? 'delivered' : wait === undefined ? 'failed' : 'pending',
            nextAttemptAt:
                wait === undefined ? null : now + Math.max(spread(wait), attempt.retryAfterMs ?? 0),
            lastAttemptAt: at,
            finishedAt: wait === undefined ? at : null,
            status: attempt.status,
            error: attempt.error,
            response: attempt.response
        });
    }

    /** Waits a little for running attempts. Those that do not end are repeated after the next start. */
    async close(): Promise<void> {
        this.#closed = true;
        clearTimeout(this.#timer ?? undefined);
        const timer = setTimeout(() => this.#ending.abort(), graceMs);
        await Promise.all(this.#busy.values());
        clearTimeout(timer);
        this.#ending.abort();
    }

    #sleep(ms: number): void {
        if (!this.#closed) {
            clearTimeout(this.#timer ?? undefined);
            this.#timer = this.#outside(() =>
                setTimeout(() => this.#readOutbox(), Math.min(Math.max(ms, 0), longestSleepMs)).unref()
            );
        }
    }

    #readOutbox(): void {
        const now = this.#options.clock.now();
        let soonest = Infinity;
        try {
            for (const { channelId, at } of this.#options.deliveries.due()) {
                const from = Math.max(at > now + longestWaitMs ? now : at, this.#held.get(channelId) ?? 0);
                if (from > now) {
                    soonest = Math.min(soonest, from);
                } else if (!this.#busy.has(channelId)) {
                    this.#busy.set(
                        channelId,
                        this.#deliverNext(channelId).finally(() => {
                            this.#busy.delete(channelId);
                            this.wake();
                        })
                    );
                }
            }
        } catch (error) {
            this.#options.log.error('The outbox of notifications cannot be read', { error });
            soonest = now + holdMs;
        }
        if (soonest < Infinity) {
            this.#sleep(soonest - now);
        }
    }

    /** Makes the next delivery of a channel. Never throws. */
    async #deliverNext(channelId: number): Promise<void> {
        const { db, channels, deliveries, clock, log } = this.#options;
        try {
            const channel = channels.find(channelId);
            const delivery = deliveries.next(channelId);
            if (channel === undefined || delivery === undefined) {
                return;
            }
            const attempt = await this.attempt(channel, toMessage(delivery));
            if (this.#ending.signal.aborted && !attempt.ok) {
                return;
            }
            await db.write(async (tx) => {
                await this.record(tx, delivery, attempt, true);
                if (attempt.gone === true) {
                    await this.#options.disable(tx, channel);
                }
            });
            this.#held.delete(channelId);
            if (!attempt.ok) {
                log.warn('A notification was not delivered', {
                    channel: channelId,
                    n: delivery.n,
                    event: delivery.event,
                    attempt: delivery.attempts + 1,
                    error: attempt.error
                });
            }
        } catch (error) {
            this.#held.set(channelId, clock.now() + holdMs);
            log.error('The outcome of a notification cannot be recorded: it will be sent again', {
                channel: channelId,
                error
            });
        }
    }
}

/** The message that a delivery carries. */
export function toMessage({ messageId, event, severity, title, body }: DeliveryRow): Message {
    return { id: messageId, event, severity: severity as Message['severity'], title, body };
}

function spread(ms: number): number {
    const range = Math.round(ms * jitter);
    return ms + randomInt(-range, range + 1);
}
