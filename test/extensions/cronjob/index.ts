import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { ControlGroup } from '../../../core/src/platform/process/control-group/control-group.ts';
import { ControlGroups } from '../../../core/src/platform/process/control-group/control-groups.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { createCronjobRig, type CronjobRig, lives, notRoot, processesWith } from './rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('a generation of cronjob', () => {
    let cron: CronjobRig;
    let scratch: string;
    let shelter: ControlGroup | null = null;

    beforeEach(async () => {
        scratch = mkdtempSync(join(tmpdir(), 'portico-cronjob-'));
        cron = await createCronjobRig();
    });

    afterEach(async () => {
        await cron.close();
        await shelter?.remove();
        shelter = null;
        rmSync(scratch, { recursive: true, force: true });
    });

    it('ends all that runs, with every descendant, and says so of each run', async () => {
        const pids = join(scratch, 'pids');
        const id = await cron.task({
            script: `trap '' TERM\nsh -c 'trap "" TERM; echo $$ >> ${pids}; while :; do sleep 1; done' &\nsetsid sh -c 'echo $$ >> ${pids}; exec sleep 600' &\necho $$ >> ${pids}\necho begun\nwhile :; do sleep 1; done\n`,
            overlap: 'allow'
        });
        const queue = await cron.task({ command: ['sleep', '600'], overlap: 'queue' });
        const runs: number[] = [];
        for (const task of [id, id, queue, queue]) {
            runs.push((await cron.ask('POST', `/tasks/${task}/run`)).data.id);
        }
        await until(
            async () => existsSync(pids) && readFileSync(pids, 'utf8').trim().split('\n').length === 6,
            'all processes'
        );
        const report = await cron.host.stop();
        expect([report.leaked, report.failures]).to.equal([[], []]);
        expect(readFileSync(pids, 'utf8').trim().split('\n').map(Number).filter(lives)).to.equal([]);
        await cron.host.start();
        const ended = await Promise.all(
            runs.map(async (run) => (await cron.ask('GET', `/runs/${run}`)).data)
        );
        expect(ended.map(({ state, reason }) => [state, reason])).to.equal(
            Array.from({ length: 4 }, () => ['stopped', 'PLUGIN_STOPPED'])
        );
        expect(ended[0].output).to.equal('begun\n');
        expect(readdirSync(join(cron.folder, 'scripts'))).to.equal([]);
    });

    it('refuses to start anything once it ends', async () => {
        const id = await cron.task({ command: ['sleep', '600'] });
        await cron.ask('POST', `/tasks/${id}/run`);
        const closing = cron.host.stop();
        const answer = await cron.ask('POST', `/tasks/${id}/run`);
        await closing;
        expect(answer.status).to.not.equal(202);
        await cron.host.start();
        expect(await cron.runs(id)).to.have.length(1);
    });

    // A hundred times, under traffic, in a panel: test/extensions/hundred.
    it('leaves nothing behind, twenty times', { timeout: 120_000 }, async () => {
        const id = await cron.task({
            schedule: '* * * * * *',
            command: ['sleep', '600'],
            env: { TELLTALE: scratch },
            overlap: 'allow'
        });
        await cron.task({ name: 'quiet', command: ['true'], deadManSeconds: 1_000, retries: 1 });
        const open = (): number => readdirSync('/proc/self/fd').length;
        const timers = (): number =>
            process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
        await cron.ask('PUT', `/tasks/${id}`, { schedule: '@yearly' });
        await cron.host.stop();
        const [files, clocks] = [open(), timers()];
        for (let round = 0; round < 20; round += 1) {
            await cron.host.start();
            if (round % 4 === 0) {
                await cron.ask('POST', `/tasks/${id}/run`);
                await until(async () => processesWith(scratch).length > 0, 'the process');
            }
            const { leaked, failures } = await cron.host.stop();
            expect([leaked, failures]).to.equal([[], []]);
        }
        expect(processesWith(scratch)).to.equal([]);
        expect(open() - files).to.be.below(4);
        expect(timers() - clocks).to.be.below(4);
        expect(readdirSync(cron.folder).filter((name) => !name.startsWith('data.db'))).to.equal([]);
        await cron.host.start();
    });

    const killed = async (
        task: object
    ): Promise<{ root: string; folder: string; task: number; run: number }> => {
        const child = spawn(
            process.execPath,
            [
                '--conditions=portico-source',
                '--disable-warning=ExperimentalWarning',
                new URL('panel.mjs', import.meta.url).pathname,
                JSON.stringify(task)
            ],
            { stdio: ['ignore', 'pipe', 'inherit'] }
        );
        try {
            const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
            await until(async () => processesWith(`TELLTALE=${scratch}`).length >= 3, 'the processes');
            // Every panel of the machine ends the control groups of a panel that was killed. The plugin must find the processes without that.
            shelter = await new ControlGroups().create({}, `cronjob-${process.pid}`).catch(() => null);
            for (const pid of processesWith(`TELLTALE=${scratch}`)) {
                await shelter?.add(pid);
            }
            return JSON.parse(line) as Awaited<ReturnType<typeof killed>>;
        } finally {
            child.kill('SIGKILL');
            await once(child, 'exit');
        }
    };

    it(
        'ends what a killed panel left running, writes its run down as cut, and tries it again where the task asks for it',
        { timeout: 60_000 },
        async () => {
            const before = await killed({
                name: 'cut',
                command: ['sh', '-c', 'setsid sleep 600 & sleep 600; true'],
                env: { TELLTALE: scratch },
                retries: 1,
                backoffSeconds: 3_600
            });
            await cron.host.stop();
            rmSync(cron.folder, { recursive: true });
            cpSync(before.folder, cron.folder, { recursive: true });
            rmSync(before.root, { recursive: true, force: true });
            // The kernel has ended the shell with its panel; what the shell had started goes on.
            await until(() => processesWith(`TELLTALE=${scratch}`).length === 2, 'the shell to end');
            await cron.host.start();
            expect(processesWith(`TELLTALE=${scratch}`)).to.equal([]);
            const { data: run } = await cron.ask('GET', `/runs/${before.run}`);
            expect(run).to.include({ state: 'failed', reason: 'PANEL_DIED', exitCode: null });
            const { data: task } = await cron.ask('GET', `/tasks/${before.task}`);
            expect(Date.parse(task.retryAt)).to.be.above(Date.now());
            expect(await cron.runs(before.task)).to.have.length(1);
            expect(cron.notified).to.equal([]);
        }
    );

    itUnless(notRoot, it)(
        'removes the script of another account that a killed panel left, and tells of the failure',
        async () => {
            const before = await killed({
                name: 'cut',
                script: 'sleep 600 & sleep 600\ntrue\n',
                user: 'nobody',
                env: { TELLTALE: scratch }
            });
            const folder = '/run/portico-cronjob';
            const left = readdirSync(folder);
            expect(left.length).to.be.above(0);
            await cron.host.stop();
            rmSync(cron.folder, { recursive: true });
            cpSync(before.folder, cron.folder, { recursive: true });
            rmSync(before.root, { recursive: true, force: true });
            await cron.host.start();
            expect((await cron.ask('GET', `/runs/${before.run}`)).data).to.include({
                state: 'failed',
                reason: 'PANEL_DIED'
            });
            expect(readdirSync(folder).filter((name) => left.includes(name))).to.have.length(left.length - 1);
            await until(async () => cron.notified.length === 1, 'the notice');
            expect(cron.notified).to.equal([
                {
                    event: 'cronjob.task-failed',
                    title: 'The task cut failed',
                    data: { taskId: before.task, runId: before.run }
                }
            ]);
        }
    );
});
