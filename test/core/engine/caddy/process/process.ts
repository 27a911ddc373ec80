import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { endProcess, findEngine } from '../../../../../core/src/engine/caddy/process/process.ts';
import { prepareHome } from '../../../../../core/src/engine/files/home.ts';
import { identify, isAlive } from '../../../../../core/src/platform/process/process-identity.ts';
import { createRealEngine } from '../../../../support/engine/real.ts';
import { until } from '../../../../support/until.ts';

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

describe('endProcess', { timeout: 20_000 }, () => {
    it('insists when asking does not help', async () => {
        const child = spawn('/bin/sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 0.05; done'], {
            stdio: ['ignore', 'pipe', 'ignore']
        });
        children.push(child);
        await once(child.stdout, 'data');
        const identity = identify(child.pid ?? 0) ?? { pid: 0, ticks: 0 };
        const ended = once(child, 'exit');
        await endProcess(identity, 100);
        expect(await ended).to.equal([null, 'SIGKILL']);
    });

    it('sends no signal when the process id was given to another process', async () => {
        const child = run('sleep', '60');
        const identity = identify(child.pid ?? 0) ?? { pid: 0, ticks: 0 };
        await endProcess({ ...identity, ticks: identity.ticks - 1 }, 100);
        expect(isAlive(identity)).to.be.true();
    });
});

describe('findEngine', { timeout: 20_000 }, () => {
    it('is not fooled by a process that only looks like the engine', async () => {
        const engine = createRealEngine();
        try {
            prepareHome(engine.folders);
            expect(findEngine(engine.folders)).to.be.null();
            const impostor = run(
                '/bin/sh',
                '-c',
                'while :; do sleep 0.1; done',
                'run',
                '--config',
                engine.folders.startFile
            );
            await until(() => identify(impostor.pid ?? 0), 'it runs');
            if (engine.folders.owner.switched) {
                expect(findEngine(engine.folders)).to.be.null();
            }

            // Under the lock, but started with another file: not an engine of these folders.
            const holder = run('flock', '-n', '-F', engine.folders.lockFile, 'sleep', '60');
            await until(() => identify(holder.pid ?? 0), 'it runs');
            expect(findEngine(engine.folders)).to.be.null();
        } finally {
            await engine.close();
        }
    });
});
