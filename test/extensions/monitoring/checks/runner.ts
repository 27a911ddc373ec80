import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Outcome } from '../../../../extensions/monitoring/src/checks/probes/outcome.ts';
import {
    CheckRunner,
    type Job,
    mostAtOnce,
    untilDue
} from '../../../../extensions/monitoring/src/checks/runner.ts';
import { advance, isPending, untried } from '../../../../extensions/monitoring/src/checks/state.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const outcome = (state: Outcome['state']): Outcome => ({
    state,
    latencyMs: state === 'up' ? 5 : null,
    code: state === 'up' ? null : 'CONNECT_REFUSED',
    message: state === 'up' ? null : 'refused',
    phases: { name: null, connect: null, tls: null, firstByte: null },
    certificate: null
});
const job = (id: number, intervalSeconds = 60): Job => ({
    id,
    intervalSeconds,
    spec: { kind: 'tcp', target: 'x:1', timeoutSeconds: 1, expect: {}, headers: {} }
});

/** A clock that a test moves. */
class Clock {
    time = 0;
    #due: { readonly at: number; readonly work: () => void } | null = null;

    now(): number {
        return this.time;
    }

    after(milliseconds: number, work: () => void): () => void {
        const due = { at: this.time + milliseconds, work };
        this.#due = due;
        return () => {
            this.#due = this.#due === due ? null : this.#due;
        };
    }

    /** Moves to the next timer up to a time. */
    async until(end: number): Promise<void> {
        for (let turns = 0; turns < 5; turns += 1) {
            await Promise.resolve();
        }
        while (this.#due !== null && this.#due.at <= end) {
            const { at, work } = this.#due;
            this.#due = null;
            this.time = at;
            work();
            for (let turns = 0; turns < 5; turns += 1) {
                await Promise.resolve();
            }
        }
        this.time = end;
    }
}

describe('CheckRunner', () => {
    it('tries each check once in its interval, spread over it', async () => {
        const clock = new Clock();
        const tries: { readonly id: number; readonly at: number }[] = [];
        const runner = new CheckRunner({
            timing: clock,
            probe: async ({ id }) => {
                tries.push({ id, at: clock.time });
                return outcome('up');
            },
            conclude: () => false,
            failed: () => undefined
        });
        for (let id = 1; id <= 500; id += 1) {
            runner.put(job(id), false);
        }
        runner.start();
        await clock.until(180_000);
        await runner.stop();
        const counts = Map.groupBy(tries, ({ id }) => id);
        expect([counts.size, [...counts.values()].every(({ length }) => length === 3)]).to.equal([500, true]);
        const seconds = Map.groupBy(tries, ({ at }) => Math.floor(at / 1000));
        expect(Math.max(...[...seconds.values()].map(({ length }) => length))).to.be.at.most(11);
        await clock.until(400_000);
        expect(tries).to.have.length(1_500);
    });

    it('tries no more than twenty at once, and the rest as soon as there is room', async () => {
        const clock = new Clock();
        const open: (() => void)[] = [];
        let most = 0;
        const runner = new CheckRunner({
            timing: clock,
            probe: () =>
                new Promise((resolve) => {
                    open.push(() => resolve(outcome('up')));
                    most = Math.max(most, runner.active);
                }),
            conclude: () => false,
            failed: () => undefined
        });
        for (let id = 1; id <= 50; id += 1) {
            runner.put(job(id, 86_400), true);
        }
        runner.start();
        await clock.until(10);
        expect([open.length, runner.active]).to.equal([mostAtOnce, mostAtOnce]);
        for (let done = 0; done < 50; done += 1) {
            open[done]?.();
            await clock.until(clock.time + 1);
        }
        expect([open.length, most, runner.active]).to.equal([50, mostAtOnce, 0]);
        await runner.stop();
    });

    it('tries again soon as long as it is asked to, and drops the outcome of what was changed meanwhile', async () => {
        const clock = new Clock();
        const at: number[] = [];
        const settled: number[] = [];
        let answer: ((result: Outcome) => void) | null = null;
        let isSlow = false;
        const runner = new CheckRunner({
            timing: clock,
            probe: async () => {
                at.push(clock.time);
                return isSlow
                    ? new Promise<Outcome>((resolve) => {
                          answer = resolve;
                      })
                    : outcome('down');
            },
            conclude: () => settled.push(clock.time) < 3,
            failed: () => undefined
        });
        runner.start();
        runner.put(job(1, 3_600), true);
        await clock.until(60_000);
        expect(at).to.equal([0, 5_000, 10_000]);
        isSlow = true;
        runner.put(job(1, 3_600), true);
        await clock.until(61_000);
        runner.put(job(1, 3_600), false);
        (answer as ((result: Outcome) => void) | null)?.(outcome('up'));
        await clock.until(62_000);
        expect([at.length, settled.length]).to.equal([4, 3]);
        runner.remove(1);
        await clock.until(8_000_000);
        expect(at).to.have.length(4);
        await runner.stop();
    });

    it('is due within its interval, also where the clock began anew', () => {
        for (const now of [0, 1, 59_999, 60_000, 1e12 + 7]) {
            for (let id = 1; id < 100; id += 1) {
                const wait = untilDue(id, 60, now);
                expect(wait > 0 && wait <= 60_000).to.be.true();
            }
        }
    });
});

describe('The state of a check', () => {
    it('is down after its retries, and up with the first good try', () => {
        let status = untried(0);
        const move = (state: Outcome['state'], at: number): string => {
            status = advance(status, outcome(state), 2, at);
            return `${status.state}${isPending(status) ? ' pending' : ''} ${status.since}`;
        };
        expect([
            move('down', 1),
            move('down', 2),
            move('down', 3),
            move('down', 4),
            move('up', 5),
            move('down', 6),
            move('up', 7),
            move('degraded', 8),
            move('down', 9)
        ]).to.equal([
            'unknown pending 0',
            'unknown pending 0',
            'down 3',
            'down 3',
            'up 5',
            'up pending 5',
            'up 5',
            'degraded 8',
            'degraded pending 8'
        ]);
    });
});
