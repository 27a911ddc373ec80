/** Sends what waits of one export, the oldest first, and waits longer after each failure. */
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { countDropped, type ExportQueue, type WaitingBatch } from './queue.ts';
import { send, type Sent, type Target } from './send.ts';

const firstPauseSeconds = 5;
const longestPauseSeconds = 300;

/** One export sends one batch at a time. */
export class Sender {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #queue: ExportQueue;
    readonly #id: number;
    readonly #signal: AbortSignal;
    #failures = 0;
    #isSending = false;
    /** Nothing is sent before, by the clock that does not jump. */
    #retryAt = Number.NEGATIVE_INFINITY;

    constructor(ctx: Ctx, machine: Machine, queue: ExportQueue, id: number, signal: AbortSignal) {
        this.#ctx = ctx;
        this.#machine = machine;
        this.#queue = queue;
        this.#id = id;
        this.#signal = signal;
    }

    /** Forgets earlier failures: what is sent, or where to, has changed. */
    retryNow(): void {
        this.#failures = 0;
        this.#retryAt = Number.NEGATIVE_INFINITY;
    }

    /** Sends until nothing waits, or until a request fails. Does nothing while it is at it, or waits after a failure. */
    async run(target: Target): Promise<void> {
        if (this.#isSending || this.#machine.monotonic() < this.#retryAt) {
            return;
        }
        this.#isSending = true;
        try {
            for (;;) {
                this.#signal.throwIfAborted();
                const batch = await this.#queue.first(this.#id);
                if (batch === null || !(await this.#send(target, batch))) {
                    return;
                }
            }
        } finally {
            this.#isSending = false;
        }
    }

    /** Whether the next one may follow. */
    async #send(target: Target, { id, body }: WaitingBatch): Promise<boolean> {
        const sent = await send(this.#ctx, target, body, this.#signal);
        const isDone = sent.ok || sent.isRefused;
        await this.#ctx.db.write(async (em) => {
            if (isDone) {
                await em.execute('delete from export_batches where id = ?', [id], 'run');
            }
            if (sent.isRefused) {
                await countDropped(em, this.#id, 1);
            }
            await (sent.ok
                ? em.execute(
                      'update exports set last_success_at = ?, last_error = null where id = ?',
                      [this.#machine.now(), this.#id],
                      'run'
                  )
                : em.execute(
                      'update exports set last_error = ? where id = ?',
                      [sent.message, this.#id],
                      'run'
                  ));
        });
        this.#failures = isDone ? 0 : this.#failures + 1;
        if (!isDone) {
            this.#retryAt = this.#machine.monotonic() + this.#pauseOf(sent);
        }
        return isDone;
    }

    #pauseOf({ retrySeconds }: Sent): number {
        const pause = firstPauseSeconds * 2 ** Math.min(this.#failures - 1, 10);
        return Math.min(Math.max(pause, retrySeconds ?? 0), longestPauseSeconds) * 1000;
    }
}
