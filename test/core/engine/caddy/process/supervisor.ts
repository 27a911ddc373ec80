import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type Supervised,
    Supervisor,
    type SupervisorTiming
} from '../../../../../core/src/engine/caddy/process/supervisor.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, afterEach } = lab;

const quickTiming: SupervisorTiming = {
    tickMs: 5,
    pingEveryMs: 10,
    pingsMissed: 3,
    backoffMs: 8,
    backoffCapMs: 64,
    stableMs: 200
};

describe('Supervisor', { timeout: 20_000 }, () => {
    const supervisors: Supervisor[] = [];
    afterEach(() => supervisors.splice(0).forEach((supervisor) => supervisor.close()));

    /** An engine that is alive, answers and recovers as told, and what the supervisor did with it. */
    const scene = (timing: Partial<SupervisorTiming> = {}) => {
        const state = {
            alive: true,
            answers: true,
            /** How many of the next pings are missed, whatever `answers` says. */
            misses: 0,
            recovers: true,
            failures: [] as string[],
            attempts: [] as number[],
            pings: 0
        };
        const supervised: Supervised = {
            isAlive: () => state.alive,
            answers: async () => {
                state.pings += 1;
                state.misses -= 1;
                return state.answers && state.misses < 0;
            },
            failed: (reason) => {
                state.failures.push(reason);
                supervisor.retry();
            },
            recover: async () => {
                state.attempts.push(performance.now());
                if (state.recovers) {
                    state.alive = true;
                    state.answers = true;
                    supervisor.watch();
                } else {
                    supervisor.retry();
                }
            },
            tidy: () => undefined
        };
        const supervisor = new Supervisor({ ...quickTiming, ...timing }, supervised);
        supervisors.push(supervisor);
        return { state, supervisor };
    };

    it('restarts what died, and goes on watching', async () => {
        const { state, supervisor } = scene();
        supervisor.expectRunning();
        supervisor.watch();
        for (const deaths of [1, 2, 3]) {
            state.alive = false;
            await until(() => state.attempts.length === deaths, 'attempt');
        }

        expect(state.failures).to.equal(Array<string>(3).fill("the engine's process ended unexpectedly"));
        expect(supervisor.isSuspected()).to.be.false();
    });

    it('suspects what misses several pings, not what misses fewer', async () => {
        const { state, supervisor } = scene();
        supervisor.expectRunning();
        supervisor.watch();
        await until(() => state.pings > 0, 'ping');
        const before = state.pings;
        state.misses = 2;
        await until(() => state.pings > before + 4, 'it answers again');
        expect(state.failures).to.equal([]);

        state.answers = false;
        state.recovers = false;
        await until(() => state.attempts.length > 0, 'attempt');
        expect(state.failures).to.equal(['the engine does not answer']);
        expect(supervisor.isSuspected()).to.be.true();
    });

    it('waits longer and longer up to a cap, never less than three quarters of it', async () => {
        const { state, supervisor } = scene();
        supervisor.expectRunning();
        state.recovers = false;
        const begin = performance.now();
        supervisor.retry();
        await until(() => state.attempts.length === 7, 'attempts');
        const waits = state.attempts.map((at, index) => at - (state.attempts[index - 1] ?? begin));
        for (const [index, least] of [8, 16, 32, 64, 64, 64, 64].entries()) {
            expect((waits[index] ?? 0) > least * 0.75 - 2, `wait ${index}`).to.be.true();
        }
    });

    it('begins with the short wait again after a stable time', async () => {
        const { state, supervisor } = scene({ backoffMs: 20, backoffCapMs: 100_000, stableMs: 100 });
        supervisor.expectRunning();
        state.recovers = false;
        supervisor.retry();
        await until(() => state.attempts.length === 5, 'attempts');
        state.recovers = true;
        await until(() => state.attempts.length === 6, 'recovery');
        const pings = state.pings;
        await until(() => state.pings > pings + 12, 'a stable time');
        const died = performance.now();
        state.alive = false;
        await until(() => state.attempts.length === 7, 'next recovery');
        // Without the reset the wait would be 20 ms × 2⁶.
        expect((state.attempts[6] ?? 0) - died).to.be.below(900);
    });

    it('leaves alone what was stopped by wish, and does nothing once closed', async () => {
        const { state, supervisor } = scene();
        supervisor.expectRunning();
        supervisor.watch();
        supervisor.pause();
        state.alive = false;
        supervisor.checkNow();
        supervisor.retry();
        supervisor.watch();

        const closed = scene();
        closed.supervisor.expectRunning();
        closed.supervisor.watch();
        closed.supervisor.close();
        closed.state.alive = false;
        closed.supervisor.expectRunning();
        closed.supervisor.watch();
        closed.supervisor.retry();

        // A third one, which does act, shows that there was time enough.
        const other = scene({ backoffMs: 50 });
        other.supervisor.expectRunning();
        other.supervisor.retry();
        await until(() => other.state.attempts.length === 1, 'the other one acts');
        expect([state.failures, state.attempts, closed.state.failures, closed.state.attempts]).to.equal([
            [],
            [],
            [],
            []
        ]);
    });
});
