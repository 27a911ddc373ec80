import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import process from 'node:process';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createMachine } from '../../../../../extensions/monitoring/src/machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../../rig.ts';

export const lab = Lab.script();
const { after, before, beforeEach, afterEach, describe, it } = lab;

let rig: MonitoringRig;
let child: ChildProcess;

const signal = (pid: number, payload: object, as: 'root' | 'op' = 'root') =>
    rig.ask(as, 'POST', `${base}/processes/${pid}/signal`, payload);
const startOf = async (pid: number): Promise<string> =>
    (await rig.get(`/processes/${pid}`)).data.startedAt as string;
const isAlive = (): boolean => child.exitCode === null && child.signalCode === null;

/** A child that ends by signals alone. @param args - beside its program's name, as `ps` shows them */
function startChild(args: readonly string[] = []): ChildProcess {
    return spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', ...args], {
        stdio: 'ignore'
    });
}

describe('/api/plugins/monitoring/processes/{pid}', () => {
    before(async () => {
        rig = await createMonitoringRig({ on: createMachine() });
        rig.host.programs.real('kill');
    });
    after(() => rig.end());
    beforeEach(async () => {
        child = startChild();
        await once(child, 'spawn');
    });
    afterEach(() => {
        child.kill('SIGKILL');
    });

    it('shows relatives, open files and ports, disk use and the unit', async () => {
        const server: Server = createServer().listen(0, '127.0.0.1');
        await once(server, 'listening');
        const { port } = server.address() as { port: number };
        const { data } = await rig.get(`/processes/${process.pid}`, 'root');
        server.close();
        expect(data.command).to.contain('node');
        expect(data.parents[0].pid).to.equal(process.ppid);
        expect(data.children.map(({ pid }: { pid: number }) => pid)).to.include(child.pid);
        expect(data.openFiles as number).to.be.above(3);
        expect(data.io.readBytes as number).to.be.at.least(0);
        expect(data.ports).to.include({
            protocol: 'tcp',
            address: '127.0.0.1',
            port,
            pid: process.pid,
            process: data.name,
            user: 'root',
            scope: 'loopback'
        });
        expect((await rig.get(`/processes/${process.pid}`)).data.command).to.equal(null);
        expect((await rig.get('/processes/4194304')).code).to.equal(40400);
    });

    it('sends a signal to the process that is meant', async () => {
        const pid = child.pid ?? 0;
        const answer = await signal(pid, { signal: 'TERM', startedAt: await startOf(pid) });
        expect([answer.status, answer.data.signal]).to.equal([200, 'TERM']);
        if (isAlive()) {
            await once(child, 'exit');
        }
        expect(child.signalCode).to.equal('SIGTERM');
    });

    it('sends nothing to a later process with the same number', async () => {
        const pid = child.pid ?? 0;
        const earlier = new Date(Date.parse(await startOf(pid)) - 10).toISOString();
        expect((await signal(pid, { signal: 'KILL', startedAt: earlier })).code).to.equal(41200);
        expect(isAlive()).to.be.true();
        expect((await signal(pid, { signal: 'KILL', startedAt: await startOf(pid) }, 'op')).code).to.equal(
            40300
        );
        expect((await signal(pid, { signal: 'SEGV', startedAt: earlier })).code).to.equal(40001);
        expect((await signal(pid, { signal: 'TERM' })).code).to.equal(40001);
        expect((await signal(4_194_304, { signal: 'TERM', startedAt: earlier })).code).to.equal(40400);
    });

    it('protects the first process, the panel, what it was started by, and the engine', async () => {
        const pids = [1, process.pid, process.ppid];
        rig.host.panel.folders.push('/srv/the panel');
        const engine = startChild(['run', '--config', '/srv/the panel/engine/start.json']);
        await once(engine, 'spawn');
        for (const pid of [...pids, engine.pid ?? 0]) {
            const { code } = await signal(pid, { signal: 'CONT', startedAt: await startOf(pid) });
            expect(code, String(pid)).to.equal(40351);
        }
        engine.kill('SIGKILL');
    });

    it('does not take a thread of the panel for a process', async () => {
        const thread = Number(readdirSync('/proc/self/task').find((each) => Number(each) !== process.pid));
        const startedAt = await startOf(process.pid);
        expect((await signal(thread, { signal: 'CONT', startedAt })).code).to.equal(40400);
    });
});
