/**
 * Takes what waits in the outbox to its receivers: one attempt at a time for each channel, channels side by side, so that a slow one holds up
 * nobody else. An attempt that was cut by the end of the process is made again: every message arrives at least once, or fails on record.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomInt } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log.ts';
import type { ChannelRow, DeliveryRow } from '../entities.ts';
import type { Store } from '../store.ts';
import type { Message } from './message.ts';
import type { Attempt } from './sender.ts';

/** Waits before the second attempt and each later one: 5 s, 30 s, 2 min, 10 min, 1 h, 6 h. */
export const usualRetryMs: readonly number[] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000];

/** For all of one attempt. */
const attemptMs = 25_000;
/** Part of a wait by which it is made longer or shorter, so that receivers that come back are not met by everybody at once. */
const jitter = 0.2;
/** No wait is longer: what seems due later than this is due, for the clock was turned back. */
const longestWaitMs = 24 * 3_600_000;
/** How often the outbox is looked at when nothing is due: clocks are set, machines sleep. */
const longestSleepMs = 60_000;
/** A channel whose attempts cannot be recorded is left alone for so long, or it would be flooded. */
const holdMs = 60_000;
/** For attempts under way when the panel stops. */
const graceMs = 3_000;

export interface CourierOptions {
    readonly db: Database;
    readonly store: Store;
    readonly clock: Clock;
    readonly log: Logger;
    readonly retryMs: readonly number[];
    /** Makes one attempt. May throw. */
    send(channel: ChannelRow, message: Message, signal: AbortSignal): Promise<Attempt>;
    /** Switches a channel off whose receiver wants nothing more. */
    disable(tx: Transaction, channel: ChannelRow): Promise<void>;
}

export class Courier {
    readonly #options: CourierOptions;
    /** Runs outside of whatever transaction or request it is called in. */
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #busy = new Map<number, Promise<void>>();
    readonly #held = new Map<number, number>();
    readonly #ending = new AbortController();
    #timer: NodeJS.Timeout | null = null;
    #closed = false;

    constructor(options: CourierOptions) {
        this.#options = options;
    }

    /** Looks into the outbox soon. */
    wake(): void {
        this.#sleep(0);
    }

    /** One attempt now, within its time. Never throws. */
    async attempt(
        channel: ChannelRow,
        message: Message,
        signal: AbortSignal = this.#ending.signal
    ): Promise<Attempt> {
        const { send, log } = this.#options;
        const controller = new AbortController();
        const aborted = (): void => controller.abort(new Error('The attempt was cut'));
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
                error: error instanceof Error ? error.message : String(error),
                response: null
            };
        } finally {
            clearTimeout(timer);
            signal.removeEventListener('abort', aborted);
        }
    }

    /** What an attempt makes of its delivery. `retry`: whether there may be another one. */
    async record(
        tx: Transaction,
        delivery: Pick<DeliveryRow, 'n' | 'channelId' | 'attempts'>,
        attempt: Attempt,
        retry: boolean
    ): Promise<void> {
        const { clock, store, retryMs } = this.#options;
        const now = clock.now();
        const wait = retry && !attempt.ok && attempt.gone !== true ? retryMs[delivery.attempts] : undefined;
        const at = new Date(now).toISOString();
        await store.attempted(tx, delivery, {
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

    /** Waits a little for attempts under way; what is not done by then is done after the next start. */
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
                setTimeout(() => this.#look(), Math.min(Math.max(ms, 0), longestSleepMs)).unref()
            );
        }
    }

    #look(): void {
        const now = this.#options.clock.now();
        let soonest = Infinity;
        try {
            for (const { channelId, at } of this.#options.store.due()) {
                const from = Math.max(at > now + longestWaitMs ? now : at, this.#held.get(channelId) ?? 0);
                if (from > now) {
                    soonest = Math.min(soonest, from);
                } else if (!this.#busy.has(channelId)) {
                    this.#busy.set(
                        channelId,
                        this.#serve(channelId).finally(() => {
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

    /** One delivery; the next look sees whether there is another one. Never throws. */
    async #serve(channelId: number): Promise<void> {
        const { db, store, clock, log } = this.#options;
        try {
            const channel = store.channel(channelId);
            const delivery = store.next(channelId);
            if (channel === undefined || delivery === undefined) {
                return;
            }
            const attempt = await this.attempt(channel, messageOf(delivery));
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
export function messageOf({ messageId, event, severity, title, body }: DeliveryRow): Message {
    return { id: messageId, event, severity: severity as Message['severity'], title, body };
}

function spread(ms: number): number {
    const range = Math.round(ms * jitter);
    return ms + randomInt(-range, range + 1);
}
