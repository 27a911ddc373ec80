import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { identify, isAlive, startOf } from '../../../../core/src/platform/process/process-identity.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, afterEach } = lab;
const children: ChildProcess[] = [];

const run = (file: string, ...args: string[]): ChildProcess => {
    const child = spawn(file, args, { stdio: 'ignore' });
    children.push(child);
    return child;
};

afterEach(() => {
    for (const child of children.splice(0)) {
        child.kill('SIGKILL');
    }
});

describe('identify', () => {
    it('tells a process by its id and its start', async () => {
        const child = run('sleep', '60');
        const identity = identify(child.pid ?? 0);
        expect(identity?.pid).to.equal(child.pid);
        expect(isAlive({ pid: child.pid ?? 0, ticks: identity?.ticks ?? 0 })).to.be.true();
        expect(isAlive({ pid: child.pid ?? 0, ticks: (identity?.ticks ?? 0) - 1 })).to.be.false();
        expect(Math.abs(startOf({ pid: 0, ticks: identity?.ticks ?? 0 }).getTime() - Date.now())).to.be.below(
            60_000
        );
        child.kill('SIGKILL');
        await once(child, 'exit');
        expect(identify(child.pid ?? 0)).to.be.null();
    });

    it('takes a zombie for dead', async () => {
        // The shell's child ends, and the sleep that the shell becomes never asks for it.
        const shell = spawn('/bin/sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 60'], {
            stdio: ['ignore', 'pipe', 'ignore']
        });
        children.push(shell);
        const [chunk] = (await once(shell.stdout, 'data')) as [Buffer];
        const pid = Number(chunk.toString());
        await until(() => identify(pid) === null, 'it is dead');
        expect(() => process.kill(pid, 0)).to.not.throw();
    });
});
