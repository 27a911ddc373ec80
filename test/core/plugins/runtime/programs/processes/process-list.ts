import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { lookAtProcesses } from '../../../../../../core/src/plugins/runtime/programs/processes/process-list.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('lookAtProcesses', () => {
    it('looks once for all who ask before a look begins, and sees what is there by then', async () => {
        const first = lookAtProcesses();
        const child = spawn('sleep', ['600'], { env: { PATH: process.env['PATH'], MARK: 'seen once' } });
        const ended = once(child, 'exit');
        try {
            const [one, other] = await Promise.all([first, lookAtProcesses()]);
            expect(one).to.shallow.equal(other);
            const seen = one.find(({ pid }) => pid === child.pid);
            expect((await seen?.environment())?.split('\0')).to.include('MARK=seen once');
            expect(await lookAtProcesses()).to.not.shallow.equal(one);
        } finally {
            child.kill('SIGKILL');
            await ended;
        }
        expect((await lookAtProcesses()).find(({ pid }) => pid === child.pid)).to.be.undefined();
    });
});
