import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { errors } from '@portico/sdk';

import { groupsMissing } from '../../../support/machine/control-groups.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig, lives, notRoot, processesWith } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('POST /api/plugins/cronjob/tasks/{id}/run', () => {
    let cron: CronjobRig;
    let scratch: string;

    before(async () => {
        scratch = mkdtempSync(join(tmpdir(), 'portico-cronjob-'));
        cron = await createCronjobRig();
    });

    after(async () => {
        await cron.close();
        rmSync(scratch, { recursive: true, force: true });
    });

    it('answers 202 with the run, and keeps what it printed and how it ended', async () => {
        const id = await cron.task({ command: ['sh', '-c', 'echo out; echo err >&2; exit 3'] });
        const begun = await cron.ask('POST', `/tasks/${id}/run`);
        expect([begun.status, begun.code, begun.data.state, begun.data.trigger, begun.data.taskId]).to.equal([
            202,
            0,
            'running',
            'manual',
            id
        ]);
        expect(begun.headers.get('location')).to.equal(`/api/plugins/cronjob/runs/${begun.data.id}`);
        const run = await cron.over(begun.data.id);
        expect(run).to.include({
            state: 'failed',
            exitCode: 3,
            signal: null,
            reason: 'EXIT_CODE',
            truncated: false,
            attempt: 1
        });
        expect(run.output.split('\n').sort()).to.equal(['', 'err', 'out']);
        const { data: task } = await cron.ask('GET', `/tasks/${id}`);
        expect(task.lastRun).to.include({ id: run.id, state: 'failed', exitCode: 3 });
        expect(task.lastRun.output).to.be.undefined();
    });

    it('hands arguments over as they are, and never through a shell', async () => {
        const id = await cron.task({
            command: ['printf', '%s|', '$HOME', '`id`', '; echo no', '', '-x', 'ü\n']
        });
        expect((await cron.finish(id)).output).to.equal('$HOME|`id`|; echo no||-x|ü\n|');
    });

    it('runs scripts by their first line, from a file that is gone afterwards', async () => {
        const plain = await cron.finish(
            await cron.task({ script: 'echo "plain $0"\nread line || echo "no input"\n' })
        );
        expect(plain).to.include({ state: 'succeeded', exitCode: 0 });
        expect(plain.output).to.match(/^plain .*\/scripts\/[0-9a-f-]{36}\nno input\n$/);
        const node = await cron.finish(
            await cron.task({
                script: `#!${process.execPath} --no-warnings\nconsole.log('node', process.execArgv.join());\n`
            })
        );
        expect(node.output).to.equal('node --no-warnings\n');
        const env = await cron.finish(await cron.task({ script: '#!/usr/bin/env sh\necho "by env"\n' }));
        expect(env.output).to.equal('by env\n');
        expect(readdirSync(join(cron.folder, 'scripts'))).to.equal([]);
    });

    it('sets the environment and the folder that a task names, and little else', async () => {
        const id = await cron.task({ command: ['env'], cwd: '/usr', env: { GREETING: 'hello', EMPTY: '' } });
        const { output } = await cron.finish(id);
        const names = output
            .trim()
            .split('\n')
            .map((line: string) => line.split('=')[0])
            .sort();
        expect(output).to.contain('GREETING=hello\n').and.to.contain('EMPTY=\n');
        expect(
            names.filter(
                (name: string) =>
                    ![
                        'CRONJOB_MARK',
                        'CRONJOB_RUN',
                        'CRONJOB_TASK',
                        'EMPTY',
                        'GREETING',
                        'HOME',
                        'LANG',
                        'LOGNAME',
                        'PATH',
                        'PORTICO_CHILD',
                        'SHELL',
                        'TZ',
                        'USER'
                    ].includes(name)
            )
        ).to.equal([]);
        expect((await cron.finish(await cron.task({ command: ['pwd'], cwd: '/usr' }))).output).to.equal(
            '/usr\n'
        );
    });

    itUnless(notRoot, it)(
        'runs as the account that a task names, with its own groups only, and hides a script from all others',
        async () => {
            const command = await cron.finish(
                await cron.task({
                    command: ['sh', '-c', 'id -un; id -G; pwd; echo $HOME $USER'],
                    user: 'nobody'
                })
            );
            const [name, groups, folder, home] = command.output.split('\n');
            expect(command.state).to.equal('succeeded');
            expect(name).to.equal('nobody');
            expect(groups).to.match(/^\d+$/);
            expect(folder).to.match(/^\//);
            expect(home).to.match(/ nobody$/);
            const script = await cron.finish(
                await cron.task({
                    script: '#!/bin/sh\nid -un\nstat -c "%a %U" "$0" "$(dirname "$0")"\nls "$(dirname "$0")" 2>&1 | grep -c denied\necho "$0"\n',
                    user: 'nobody'
                })
            );
            const lines = script.output.trim().split('\n');
            expect(lines.slice(0, 4)).to.equal(['nobody', '400 nobody', '711 root', '1']);
            expect(existsSync(lines[4])).to.be.false();
        }
    );

    it('says why a run could not begin', async () => {
        const missing = await cron.finish(await cron.task({ command: ['no-such-program-here'] }));
        expect(missing).to.include({ state: 'failed', exitCode: null, reason: 'TOOL_MISSING' });
        const folder = await cron.finish(await cron.task({ command: ['true'], cwd: '/no/such/folder' }));
        expect(folder).to.include({ state: 'failed', reason: 'NOT_FOUND' });
        const unknown = await cron.finish(await cron.task({ script: '#!/no/such/interpreter\n' }));
        expect(unknown).to.include({ state: 'failed', reason: 'TOOL_MISSING' });
        expect((await cron.ask('POST', '/tasks/999999/run')).code).to.equal(40400);
    });

    it('ends what takes too long with all of its descendants, also those that ignore being asked and those that left the group', async () => {
        const pids = join(scratch, 'pids');
        const id = await cron.task({
            script: `trap '' TERM\nsh -c 'trap "" TERM; echo $$ >> ${pids}; while :; do sleep 1; done' &\nsetsid sh -c 'echo $$ >> ${pids}; exec sleep 600' &\necho $$ >> ${pids}\nwhile :; do sleep 1; done\n`,
            timeoutSeconds: 1
        });
        const run = await cron.finish(id);
        expect(run).to.include({ state: 'timeout', reason: 'TIMEOUT' });
        const started = readFileSync(pids, 'utf8').trim().split('\n').map(Number);
        expect(started).to.have.length(3);
        expect(started.filter(lives)).to.equal([]);
    });

    it('ends what a run leaves behind in the background', async () => {
        const run = await cron.finish(await cron.task({ command: ['sh', '-c', 'sleep 600 & echo $!'] }));
        expect(run.state).to.equal('succeeded');
        expect(lives(Number(run.output))).to.be.false();
    });

    it('says by which signal a run ended', async () => {
        expect(await cron.finish(await cron.task({ command: ['sh', '-c', 'kill -SEGV $$'] }))).to.include({
            state: 'failed',
            exitCode: null,
            signal: 'SIGSEGV',
            reason: 'SIGNAL'
        });
    });

    it('keeps the beginning and the end of much output, in whole characters', async () => {
        const small = await createCronjobRig({ settings: { outputBytes: 4_096 } });
        try {
            const run = await small.finish(
                await small.task({
                    script: 'i=0; while [ $i -lt 3000 ]; do echo "ü line $i"; i=$((i+1)); done'
                })
            );
            expect(run.truncated).to.be.true();
            expect(run.output as string)
                .to.startWith('ü line 0\n')
                .and.to.endWith('ü line 2999\n')
                .and.to.contain('bytes were left out]')
                .and.not.to.contain('\uFFFD');
            expect(Buffer.byteLength(run.output)).to.be.between(3_900, 4_200);
        } finally {
            await small.close();
        }
    });

    it('ends a run that prints zero bytes, and shows each as ␀', async () => {
        const id = await cron.task({ script: "printf 'a\\0b\\0'; printf '\\0' >&2; exit 3" });
        const run = await cron.finish(id);
        expect([run.state, run.exitCode, run.reason]).to.equal(['failed', 3, 'EXIT_CODE']);
        expect([...run.output].sort().join('')).to.equal('ab␀␀␀');
        const { data } = await cron.ask('GET', `/runs/${run.id}`);
        expect([data.output, data.truncated]).to.equal([run.output, false]);
    });

    it('records the end of a run whose output cannot be saved', async () => {
        const id = await cron.task({ command: ['echo', 'unlucky'] });
        const database = new DatabaseSync(join(cron.folder, 'data.db'));
        database.exec(
            "create trigger unlucky before insert on outputs when new.head like 'unlucky%' begin select raise(abort, 'no'); end"
        );
        try {
            expect(await cron.finish(id)).to.include({ state: 'succeeded', exitCode: 0, output: '' });
        } finally {
            database.exec('drop trigger unlucky');
            database.close();
        }
    });

    it('skips, queues or allows a run beside another, as the task says', async () => {
        const gate = join(scratch, 'gate');
        const command = ['sh', '-c', `while [ ! -e ${gate} ]; do sleep 0.05; done; echo done`];
        const states = async (id: number, times: number): Promise<unknown[]> => {
            const answers = [];
            for (let index = 0; index < times; index += 1) {
                answers.push((await cron.ask('POST', `/tasks/${id}/run`)).data.state);
            }
            return answers;
        };
        const [skip, queue, allow] = [
            await cron.task({ command, overlap: 'skip' }),
            await cron.task({ command, overlap: 'queue' }),
            await cron.task({ command, overlap: 'allow' })
        ];
        expect(await states(skip, 3)).to.equal(['running', 'skipped', 'skipped']);
        expect(await states(queue, 3)).to.equal(['running', 'queued', 'queued']);
        expect(await states(allow, 3)).to.equal(['running', 'running', 'running']);
        writeFileSync(gate, '');
        const all = ['succeeded', 'succeeded', 'succeeded'];
        for (const [id, expected] of [
            [skip, ['succeeded', 'skipped', 'skipped']],
            [queue, all],
            [allow, all]
        ] as [number, string[]][]) {
            const runs = await until(async () => {
                const seen = await cron.runs(id);
                return seen.every(({ finishedAt }) => finishedAt !== null) && seen;
            }, 'all runs to end');
            expect(runs.map(({ state }) => state)).to.equal(expected);
        }
        const queued = await cron.runs(queue);
        expect(
            queued[1].startedAt >= queued[0].finishedAt && queued[2].startedAt >= queued[1].finishedAt
        ).to.be.true();
    });

    it('runs no more at once than the settings allow', async () => {
        const few = await createCronjobRig({ settings: { concurrentRuns: 2 } });
        try {
            const id = await few.task({ command: ['sleep', '600'], overlap: 'allow' });
            const states = [];
            for (let index = 0; index < 3; index += 1) {
                const { state, reason } = (await few.ask('POST', `/tasks/${id}/run`)).data;
                states.push([state, reason]);
            }
            expect(states).to.equal([
                ['running', null],
                ['running', null],
                ['queued', null]
            ]);
            const other = await few.task({ command: ['true'], overlap: 'skip' });
            const { data: waits } = await few.ask('POST', `/tasks/${other}/run`);
            expect([waits.state, (await few.ask('POST', `/tasks/${other}/run`)).data.state]).to.equal([
                'queued',
                'skipped'
            ]);
            await few.ask('DELETE', `/runs/${(await few.runs(id))[0].id}`);
            expect((await few.runs(id)).map(({ state }) => state)).to.equal([
                'stopped',
                'running',
                'running'
            ]);
            await few.ask('DELETE', `/runs/${(await few.runs(id))[2].id}`);
            expect((await few.over(waits.id)).state).to.equal('succeeded');
            const many = [await few.task({ command: ['sleep', '600'] }), other];
            await few.ask('POST', '/tasks/batch', { ids: many, action: 'run' });
            const begun = await Promise.all(many.map(async (task) => (await few.runs(task)).at(-1).state));
            expect(begun.sort()).to.equal(['queued', 'running']);
        } finally {
            await few.close();
        }
    });

    itUnless(groupsMissing(), it)(
        'limits and measures all processes of a run together, and says when memory ended it',
        async () => {
            const hungry = 'const held = []; for (;;) held.push(Buffer.alloc(1 << 20, 1))';
            const command = ['sh', '-c', `'${process.execPath}' -e '${hungry}'; echo went on`];
            const limits = { memoryBytes: 96 * 1024 * 1024, cpuPercent: 200, processes: 64 };
            const id = await cron.task({ command, limits, channels: [7] });
            const run = await cron.finish(id);
            expect(run).to.include({ state: 'failed', reason: 'LIMIT_MEMORY', exitCode: 0 });
            expect(run.message).to.contain('100663296 bytes');
            expect(Number(run.usage.memoryPeakBytes)).to.be.between(64 * 1024 * 1024, limits.memoryBytes + 1);
            expect(Number(run.usage.cpuSeconds)).to.be.above(0);
            const { data: stats } = await cron.ask('GET', `/tasks/${id}/stats?days=1`);
            expect([stats.memoryPeakBytes, stats.cpuSeconds]).to.equal([
                run.usage.memoryPeakBytes,
                run.usage.cpuSeconds
            ]);
            await until(async () => cron.notified.some(({ channels }) => channels?.[0] === 7), 'the notice');

            const forks = await cron.finish(
                await cron.task({ script: 'sleep 5 & sleep 5 & sleep 5 & wait\n', limits: { processes: 2 } })
            );
            expect(forks).to.include({ state: 'failed', reason: 'EXIT_CODE' });
            const freeId = await cron.task({ command: ['true'] });
            const free = await cron.finish(freeId);
            expect(free).to.include({ state: 'succeeded' });
            expect(Number(free.usage.memoryPeakBytes)).to.be.above(0);
            // Of several runs: all of their processor time, and the highest of their peaks.
            const { usage } = await cron.finish(freeId);
            const { data: both } = await cron.ask('GET', `/tasks/${freeId}/stats?days=1`);
            expect(both).to.include({
                runs: 2,
                cpuSeconds: free.usage.cpuSeconds + usage.cpuSeconds,
                memoryPeakBytes: Math.max(free.usage.memoryPeakBytes, usage.memoryPeakBytes)
            });
        }
    );

    it('refuses limits that the machine cannot keep, and runs nothing without its limits', async () => {
        const file = join(scratch, 'ran');
        const task = { name: 'held', schedule: '@yearly', command: ['touch', file] };
        // What the panel says of a machine where no control group is writable.
        const missing = errors.toolMissing('control groups', 'run the panel as root');
        cron.host.faults.fail('exec', missing);
        const limited = await cron.ask('POST', '/tasks', { ...task, limits: { processes: 5 } });
        expect([limited.code, limited.data.tool]).to.equal([50302, 'control groups']);
        const { data: plain } = await cron.ask('POST', '/tasks', task);
        const changed = await cron.ask('PUT', `/tasks/${plain.id}`, { limits: { memoryBytes: 1 << 26 } });
        expect(changed.code).to.equal(50302);
        expect((await cron.ask('GET', `/tasks/${plain.id}`)).data.limits).to.be.null();
        cron.host.faults.clear('exec');

        cron.host.faults.fail('spawn', missing);
        const run = await cron.finish(plain.id);
        cron.host.faults.clear('spawn');
        expect(run).to.include({ state: 'failed', reason: 'TOOL_MISSING', usage: null });
        expect(existsSync(file)).to.be.false();
    });

    it('tries again with growing pauses, and tells once that it failed', async () => {
        const told = cron.notified.length;
        const id = await cron.task({ name: 'flaky', command: ['false'], retries: 2, backoffSeconds: 1 });
        await cron.finish(id);
        const runs = await until(async () => {
            const all = await cron.runs(id);
            return all.length === 3 && all.every(({ finishedAt }) => finishedAt !== null) && all;
        }, 'two retries');
        expect(runs.map(({ trigger, attempt, state }) => [trigger, attempt, state])).to.equal([
            ['manual', 1, 'failed'],
            ['retry', 2, 'failed'],
            ['retry', 3, 'failed']
        ]);
        const pauses = [1, 2].map(
            (index) => Date.parse(runs[index].startedAt) - Date.parse(runs[index - 1].finishedAt)
        );
        expect(pauses.map((pause, index) => pause >= 1_000 * 2 ** index)).to.equal([true, true]);
        await until(async () => cron.notified.length > told, 'the notice');
        expect(cron.notified.slice(told)).to.equal([
            {
                event: 'cronjob.task-failed',
                title: 'The task flaky failed',
                data: { taskId: id, runId: runs[2].id }
            }
        ]);
        expect((await cron.ask('GET', `/tasks/${id}`)).data.retryAt).to.be.null();
    });

    it('tells what each task asks for', async () => {
        const switchFile = join(scratch, 'switch');
        const command = ['test', '-e', switchFile];
        const ids = new Map<string, number>();
        for (const notifyOn of ['never', 'failure', 'change', 'always']) {
            ids.set(notifyOn, await cron.task({ name: notifyOn, command, notifyOn }));
        }
        const told = cron.notified.length;
        for (const there of [false, false, true, true]) {
            there ? writeFileSync(switchFile, '') : rmSync(switchFile, { force: true });
            await Promise.all([...ids.values()].map((id) => cron.finish(id)));
        }
        const events = (name: string): string[] =>
            cron.notified
                .slice(told)
                .filter(({ title }) => title.includes(` ${name} `))
                .map(({ event }) => event.replace('cronjob.task-', ''));
        await until(async () => events('always').length === 4, 'the last notice');
        expect(['never', 'failure', 'change', 'always'].map(events)).to.equal([
            [],
            ['failed', 'failed'],
            ['failed', 'recovered'],
            ['failed', 'failed', 'recovered', 'succeeded']
        ]);
    });
});

describe('DELETE /api/plugins/cronjob/runs/{id}', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });

    after(async () => cron.close());

    it('ends a run with its descendants, does not try again, and may be asked twice', async () => {
        const id = await cron.task({
            command: ['sh', '-c', 'sleep 600 & echo $!; wait'],
            retries: 3,
            backoffSeconds: 1
        });
        const { data: begun } = await cron.ask('POST', `/tasks/${id}/run`);
        await until(
            async () => (await cron.ask('GET', `/runs/${begun.id}`)).data.output !== '',
            'its output'
        );
        const stopped = await cron.ask('DELETE', `/runs/${begun.id}`, undefined, { as: 'operator' });
        expect([stopped.status, stopped.data.state, stopped.data.reason]).to.equal([
            200,
            'stopped',
            'STOPPED'
        ]);
        expect(lives(Number(stopped.data.output))).to.be.false();
        const again = await cron.ask('DELETE', `/runs/${begun.id}`);
        expect(again.data).to.equal(stopped.data);
        expect((await cron.ask('GET', `/tasks/${id}`)).data.retryAt).to.be.null();
        expect((await cron.ask('DELETE', '/runs/999999')).code).to.equal(40400);
        expect(cron.notified).to.equal([]);
    });

    it('takes one that waits out of the queue', async () => {
        const id = await cron.task({ command: ['sleep', '600'], overlap: 'queue' });
        const [first, second] = [
            (await cron.ask('POST', `/tasks/${id}/run`)).data,
            (await cron.ask('POST', `/tasks/${id}/run`)).data
        ];
        expect((await cron.ask('DELETE', `/runs/${second.id}`)).data).to.include({
            state: 'stopped',
            startedAt: null
        });
        expect((await cron.ask('DELETE', `/runs/${first.id}`)).data.state).to.equal('stopped');
        expect((await cron.runs(id)).map(({ state }) => state)).to.equal(['stopped', 'stopped']);
    });

    it('ends everything with the task that goes', async () => {
        const id = await cron.task({ command: ['sleep', '600'], env: { TELLTALE: 'goes-with-its-task' } });
        const { data: run } = await cron.ask('POST', `/tasks/${id}/run`);
        await until(async () => processesWith('goes-with-its-task').length === 1, 'the process');
        expect((await cron.ask('DELETE', `/tasks/${id}`)).data).to.be.null();
        expect(processesWith('goes-with-its-task')).to.equal([]);
        expect((await cron.ask('GET', `/runs/${run.id}`)).code).to.equal(40400);
        expect((await cron.ask('DELETE', `/tasks/${id}`)).code).to.equal(40400);
    });
});
