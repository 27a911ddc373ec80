/** Parameters of tasks: which values a run takes, how programs get them, and that secret ones are shown to no caller. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('parameters of a task', { timeout: 60_000 }, () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });
    after(() => cron.close());

    const problems = async (body: object): Promise<string[]> => {
        const answer = await cron.ask('POST', '/tasks', { name: 'refused', schedule: '@yearly', ...body });
        expect(answer.code).to.equal(40001);
        return answer.data.errors.map(({ path }: { path: string }) => path);
    };

    it('reach the program as variables and in the place of whole elements', async () => {
        const id = await cron.task({
            command: [
                '/bin/sh',
                '-c',
                'printf "%s|" "$@" "$CRONJOB_PARAM_BRANCH" "$CRONJOB_PARAM_COUNT" "$CRONJOB_PARAM_FORCE" "${CRONJOB_PARAM_NOTE-unset}"',
                'program',
                '{{BRANCH}}',
                'x{{BRANCH}}',
                '{{NOTE}}'
            ],
            parameters: [
                { name: 'BRANCH', type: 'choice', choices: ['main', 'next $(id)'], default: 'main' },
                { name: 'COUNT', type: 'number', default: 3 },
                { name: 'FORCE', type: 'boolean' },
                { name: 'NOTE' }
            ]
        });
        const usual = await cron.finish(id);
        expect([usual.output, usual.parameters, usual.by, usual.trigger]).to.equal([
            'main|x{{BRANCH}}|main|3||unset|',
            { BRANCH: 'main', COUNT: 3 },
            'admin',
            'manual'
        ]);
        const { data } = await cron.ask('POST', `/tasks/${id}/run`, {
            parameters: { BRANCH: 'next $(id)', COUNT: 2.5, FORCE: true, NOTE: '`id` "quoted"' }
        });
        expect((await cron.over(data.id)).output).to.equal(
            'next $(id)|x{{BRANCH}}|`id` "quoted"|next $(id)|2.5|true|`id` "quoted"|'
        );
        // Values need the permission `output`.
        const seen = await cron.ask('GET', `/runs/${data.id}`, undefined, { as: 'viewer' });
        expect([seen.status, seen.data.parameters, seen.text.includes('quoted')]).to.equal([
            200,
            undefined,
            false
        ]);
    });

    it('are never put into the text of a script', async () => {
        const id = await cron.task({
            script: 'echo "{{WORD}} $CRONJOB_PARAM_WORD"\n',
            parameters: [{ name: 'WORD', default: 'hello' }]
        });
        expect((await cron.finish(id)).output).to.equal('{{WORD}} hello\n');
    });

    it('are refused where they have another type, another form, or look like an option', async () => {
        const id = await cron.task({
            command: ['echo', '{{NAME}}'],
            enabled: false,
            parameters: [
                { name: 'NAME', required: true, pattern: '[a-z-]+' },
                { name: 'SIZE', type: 'number' },
                { name: 'SLOW', pattern: '(a+)+b' }
            ]
        });
        const refused = async (parameters: object): Promise<string[]> => {
            const answer = await cron.ask('POST', `/tasks/${id}/run`, { parameters });
            expect(answer.code).to.equal(40001);
            return answer.data.errors.map(({ path }: { path: string }) => path);
        };
        expect(await refused({})).to.equal(['parameters.NAME']);
        expect(await refused({ NAME: '--rm' })).to.equal(['parameters.NAME']);
        expect(await refused({ NAME: 'UP' })).to.equal(['parameters.NAME']);
        expect(await refused({ NAME: 'up\nx' })).to.equal(['parameters.NAME']);
        expect(await refused({ NAME: 1 })).to.equal(['parameters.NAME']);
        expect(await refused({ NAME: 'a', SIZE: '7' })).to.equal(['parameters.SIZE']);
        expect(await refused({ NAME: 'a', OTHER: 'x' })).to.equal(['parameters.OTHER']);
        // A pattern that takes for ever ends the comparison, not the panel.
        const begun = process.cpuUsage();
        expect(await refused({ NAME: 'a', SLOW: `${'a'.repeat(60)}c` })).to.equal(['parameters.SLOW']);
        expect(process.cpuUsage(begun).user).to.be.below(5e6);
        expect(await cron.runs(id)).to.equal([]);
    });

    it('are declared so that the schedule can run the task, and nothing secret gets into a list of processes', async () => {
        const command = ['echo', '{{A}}'];
        expect(await problems({ command })).to.equal(['command.1']);
        expect(await problems({ command: ['{{A}}'], parameters: [{ name: 'A' }] })).to.contain('command.0');
        expect(await problems({ command, parameters: [{ name: 'A', required: true }] })).to.equal([
            'parameters.0.default'
        ]);
        expect(await problems({ command, parameters: [{ name: 'A', default: '-x' }] })).to.equal([
            'parameters.0'
        ]);
        expect(await problems({ command, parameters: [{ name: 'A', secret: true }] })).to.equal([
            'parameters.0'
        ]);
        expect(await problems({ command: ['true'], parameters: [{ name: 'A', type: 'choice' }] })).to.equal([
            'parameters.0'
        ]);
        expect(await problems({ command: ['true'], parameters: [{ name: 'A', pattern: '(' }] })).to.equal([
            'parameters.0'
        ]);
        expect(await problems({ request: { url: 'http://a.test' }, parameters: [{ name: 'A' }] })).to.equal([
            'parameters'
        ]);
        const off = await cron.task({
            command: ['true'],
            enabled: false,
            parameters: [{ name: 'A', required: true }]
        });
        const batch = await cron.ask('POST', '/tasks/batch', { ids: [off], action: 'enable' });
        expect([batch.code, (await cron.ask('GET', `/tasks/${off}`)).data.enabled]).to.equal([40001, false]);
    });

    it('that are secret are sealed, masked and kept, and a retry gets them again', async () => {
        const id = await cron.task({
            command: ['sh', '-c', 'test "$CRONJOB_PARAM_TOKEN-$CRONJOB_PARAM_KEY" = $WANTED'],
            env: { WANTED: 'opensesame-swordfish' },
            retries: 1,
            backoffSeconds: 1,
            parameters: [
                { name: 'TOKEN', secret: true, default: 'opensesame' },
                { name: 'KEY', secret: true }
            ]
        });
        const { data } = await cron.ask('POST', `/tasks/${id}/run`, { parameters: { KEY: 'swordfish' } });
        expect(await cron.over(data.id)).to.include({ state: 'succeeded' });
        const run = await cron.ask('GET', `/runs/${data.id}`);
        expect(run.data.parameters).to.equal({ TOKEN: { set: true }, KEY: { set: true } });
        const { data: task, text } = await cron.ask('GET', `/tasks/${id}`);
        expect(task.parameters[0].default).to.equal({ set: true });
        // What was read can be written back, and keeps the default.
        await cron.ask('PUT', `/tasks/${id}`, {
            parameters: task.parameters,
            command: ['sh', '-c', 'printf %s "$CRONJOB_PARAM_TOKEN" | wc -c; exit 3']
        });
        const failed = await cron.finish(id);
        expect(failed).to.include({ output: '10\n', exitCode: 3 });
        const runs = await until(async () => {
            const all = await cron.runs(id);
            return all.length === 3 && all[2].finishedAt !== null ? all : null;
        }, 'the retry');
        expect(runs[2]).to.include({ trigger: 'retry', by: 'admin' });
        expect((await cron.ask('GET', `/runs/${runs[2].id}`)).data.output).to.equal('10\n');
        const stored = ['data.db', 'data.db-wal']
            .map((name) => readFileSync(join(cron.folder, name), 'latin1'))
            .join('');
        const told = JSON.stringify([cron.host.audit, cron.host.notifications, cron.host.log]);
        for (const secret of ['swordfish', 'opensesame']) {
            expect([stored, text, run.text, told].map((each) => each.includes(secret))).to.equal([
                false,
                false,
                false,
                false
            ]);
        }
    });
});
