import { mock } from 'node:test';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { UsageLog } from '../../../../../core/src/plugins/runtime/records/usage-log.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let recorded: string[];
let usage: UsageLog;

const pass = (ms: number): void => mock.timers.tick(ms);
const taken = (): readonly string[] => recorded.splice(0);

describe('UsageLog', () => {
    beforeEach(() => {
        mock.timers.enable({ apis: ['setInterval'] });
        recorded = [];
        usage = new UsageLog({
            plugin: 'probe',
            recorder: {
                async recordAlone({ resourceId, after }) {
                    const { args, count } = after as { readonly args: string; readonly count: number };
                    recorded.push(`${resourceId} ${args} ${count}`);
                }
            },
            log: {} as never, // nothing fails here
            clock: { now: () => 0 }
        });
    });
    afterEach(() => mock.timers.reset());

    it('records the very same command once a day, as health checks repeat it', async () => {
        for (let minute = 0; minute < 24 * 60; minute += 1) {
            usage.exec('restic', ['version'], null);
            pass(minuteMs);
        }
        expect(taken()).to.equal(['restic ["version"] 1', 'restic ["version"] 1439']);
        usage.exec('restic', ['version'], 'nobody');
        expect(taken()).to.equal(['restic ["version"] 1']);
        await usage.close();
    });

    it('records another command at once, and one again that did not run for a day', async () => {
        usage.exec('restic', ['version'], null);
        pass(minuteMs);
        usage.exec('restic', ['forget'], null);
        expect(taken()).to.equal(['restic ["version"] 1', 'restic ["forget"] 1']);
        usage.exec('restic', ['forget'], null);
        await usage.close();
        expect(taken()).to.equal(['restic ["forget"] 1']);
    });

    it('forgets a command that did not run for a day, and writes what is left at the end', async () => {
        usage.exec('git', ['fetch'], null);
        pass(dayMs);
        usage.exec('git', ['fetch'], null);
        pass(2 * dayMs);
        usage.exec('git', ['fetch'], null);
        usage.exec('git', ['fetch'], null);
        await usage.close();
        expect(taken()).to.equal([1, 1, 1, 1].map((count) => `git ["fetch"] ${count}`));
    });

    it('records different commands of one program by the minute', async () => {
        for (let n = 0; n < 1_000; n += 1) {
            usage.exec('git', ['show', String(n)], null);
        }
        pass(minuteMs);
        expect(taken()).to.equal(['git ["show","0"] 1', 'git ["show","0"] 999']);
        await usage.close();
        expect(taken()).to.equal([]);
    });
});
