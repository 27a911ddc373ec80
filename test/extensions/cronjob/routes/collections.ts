/** Many tasks at once, and what is known of a task before it is made. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const never = '0 0 1 1 *';

describe('many tasks', { timeout: 60_000 }, () => {
    let rig: CronjobRig;
    before(async () => {
        rig = await createCronjobRig();
    });
    after(() => rig.close());

    const names = async (query: string): Promise<string[]> =>
        (await rig.ask('GET', `/tasks?${query}`)).data.map(({ name }: { name: string }) => name);

    it('have tags, by which lists, batches and statistics find them', async () => {
        const ids = [
            await rig.task({ name: 'one', command: ['true'], tags: ['night', 'web'] }),
            await rig.task({ name: 'two', script: 'exit 3', tags: ['night'] }),
            await rig.task({ name: 'three', command: ['true'] })
        ];
        expect((await rig.ask('GET', '/tags')).data).to.equal([
            { tag: 'night', tasks: 2 },
            { tag: 'web', tasks: 1 }
        ]);
        await rig.finish(ids[0] ?? 0);
        await rig.finish(ids[1] ?? 0);
        expect(await names('tag=night')).to.equal(['one', 'two']);
        expect(await names('kind=script')).to.equal(['two']);
        expect(await names('state=failed')).to.equal(['two']);
        expect(await names('state=succeeded&tag=night&kind=command')).to.equal(['one']);
        for (const tags of [
            ['A'],
            ['a b'],
            ['-a'],
            ['a', 'a'],
            Array.from({ length: 21 }, (_, n) => `t${n}`)
        ]) {
            const refused = await rig.ask('POST', '/tasks', {
                name: 'x',
                schedule: never,
                command: ['true'],
                tags
            });
            expect([tags, refused.code]).to.equal([tags, 40001]);
        }
        const { data } = await rig.ask('GET', '/stats?tag=night');
        expect(data).to.include({
            runs: 2,
            succeeded: 1,
            failed: 1,
            timeout: 0,
            skipped: 0,
            successRate: 0.5
        });
        expect([data.days.length, data.days[0].succeeded, data.seconds.max >= data.seconds.p50]).to.equal([
            1,
            1,
            true
        ]);
        const alone = await rig.ask('GET', `/tasks/${ids[0]}/stats?days=1`);
        expect(alone.data).to.include({ runs: 1, succeeded: 1, successRate: 1 });
        expect((await rig.ask('GET', `/tasks/${ids[2]}/stats`)).data).to.include({
            runs: 0,
            successRate: null
        });
        expect((await rig.ask('GET', '/tasks/999/stats')).code).to.equal(40400);
    });

    it('are changed by a batch all or none', async () => {
        const [one = 0, two = 0] = (await rig.ask('GET', '/tasks?tag=night')).data.map(
            ({ id }: { id: number }) => id
        );
        const batch = (body: object, as: 'admin' | 'operator' | 'tired' = 'admin') =>
            rig.ask('POST', '/tasks/batch', body, { as });
        const missing = await batch({ ids: [one, 999], action: 'disable' });
        expect([missing.code, await names('enabled=false')]).to.equal([40400, []]);
        expect((await batch({ ids: [one, two], action: 'disable' })).data).to.equal({ tasks: 2 });
        expect(await names('enabled=false')).to.equal(['one', 'two']);
        expect((await rig.ask('GET', `/tasks/${one}`)).data.nextRunAt).to.be.null();
        await batch({ ids: [one, two], action: 'enable' });
        expect((await rig.ask('GET', `/tasks/${one}`)).data.nextRunAt).to.not.be.null();
        await batch({ ids: [one, two], action: 'tag', tags: ['new'] });
        await batch({ ids: [one], action: 'untag', tags: ['night', 'web'] });
        expect([await names('tag=new'), await names('tag=night')]).to.equal([['one', 'two'], ['two']]);
        const full = Array.from({ length: 20 }, (_, n) => `t${n}`);
        expect((await batch({ ids: [one, two], action: 'tag', tags: full })).code).to.equal(40001);
        expect(await names('tag=t0')).to.equal([]);
        const before = (await rig.ask('GET', `/tasks/${one}/runs`)).data.length;
        await batch({ ids: [one, two], action: 'run' });
        expect((await rig.ask('GET', `/tasks/${one}/runs`)).data.length).to.equal(before + 1);
        expect((await batch({ ids: [one], action: 'run' }, 'operator')).code).to.equal(40300);
        expect((await batch({ ids: [one], action: 'enable' }, 'tired')).code).to.equal(40301);
        expect((await batch({ ids: [], action: 'run' })).code).to.equal(40001);
        await batch({ ids: [one, two], action: 'delete' });
        expect(await names('')).to.equal(['three']);
    });

    it('are copied with what is secret, disabled', async () => {
        const id = await rig.task({
            name: 'source',
            script: 'printf %s "$TOKEN"',
            env: { TOKEN: 'open sesame' }
        });
        const copy = await rig.ask('POST', `/tasks/${id}/clone`, {});
        expect([copy.status, copy.data.name, copy.data.enabled]).to.equal([201, 'source (copy)', false]);
        expect(copy.data.env).to.equal({ TOKEN: { set: true } });
        expect((await rig.finish(copy.data.id as number)).output).to.equal('open sesame');
        expect((await rig.ask('POST', `/tasks/${id}/clone`, { name: 'named' })).data.name).to.equal('named');
        expect((await rig.ask('POST', '/tasks/999/clone', {})).code).to.equal(40400);
    });

    it('are looked at before they are made, with what is odd about them', async () => {
        const validate = (task: object) =>
            rig.ask('POST', '/tasks/validate', { name: 'x', command: ['true'], ...task });
        const total = (await names('limit=500')).length;
        const rare = await validate({ schedule: '0 12 24 12 *', timezone: 'UTC', env: { A: 'secret' } });
        expect([rare.code, rare.data.task.env]).to.equal([0, { A: { set: true } }]);
        expect(rare.data.warnings).to.equal([{ path: 'schedule', message: 'It is due once within a year' }]);
        expect(rare.text).to.not.contain('secret');
        const gap = await validate({ schedule: '30 2 * * *', timezone: 'Europe/Berlin' });
        expect(gap.data.warnings[0].message).to.match(
            /clocks in Europe\/Berlin skip 02:30: it is then due at 03:00/
        );
        const usual = await validate({ schedule: '*/5 * * * *', timezone: 'Europe/Berlin' });
        expect([usual.data.warnings, usual.data.nextRunAt === null]).to.equal([[], false]);
        expect((await validate({ schedule: '0 0 31 2 *' })).code).to.equal(40001);
        const chained = { schedule: '@daily', then: [{ taskId: 9_999, on: 'success' }] };
        for (const path of ['/tasks/validate', '/tasks']) {
            const refused = await rig.ask('POST', path, { name: 'x', command: ['true'], ...chained });
            expect([refused.code, refused.data.errors[0].path], path).to.equal([40001, 'then.0.taskId']);
        }
        const odd = await rig.ask('POST', '/tasks/validate', {
            name: 'x',
            schedule: '@daily',
            command: ['echo', '{{WHO}}', 'hello {{WHO}}'],
            parameters: [{ name: 'WHO', type: 'text' }]
        });
        expect(odd.data.warnings).to.equal([
            {
                path: 'command.2',
                message: '{{WHO}} stays as it is: a value replaces a whole element only'
            }
        ]);
        const script = { schedule: '@daily', command: null, script: 'echo {{A}} $CRONJOB_PARAM_A' };
        const inScript = await validate({ ...script, parameters: [{ name: 'A', type: 'text' }] });
        expect(inScript.data.warnings.map(({ path }: { path: string }) => path)).to.equal(['script']);
        const later = await validate({ schedule: '@daily', command: null, route: { id: 'no.such' } });
        expect(later.data.warnings.map(({ path }: { path: string }) => path)).to.equal(['route.id']);
        expect((await names('limit=500')).length).to.equal(total);
    });

    it('are shown in a calendar, and schedules in words', async () => {
        await rig.task({ name: 'hourly', schedule: '15 * * * *', command: ['true'], tags: ['calendar'] });
        await rig.task({ name: 'often', schedule: '* * * * * *', command: ['true'], enabled: false });
        const day = await rig.ask(
            'GET',
            '/calendar?tag=calendar&from=2030-01-01T00:00:00Z&to=2030-01-02T00:00:00Z'
        );
        expect([day.data.length, day.data[0].at, day.data[0].name]).to.equal([
            24,
            '2030-01-01T00:15:00.000Z',
            'hourly'
        ]);
        expect(day.headers.get('x-truncated')).to.be.null();
        await rig.task({ name: 'busy', schedule: '* * * * *', command: ['true'], tags: ['busy'] });
        const full = await rig.ask(
            'GET',
            '/calendar?tag=busy&from=2030-01-01T00:00:00Z&to=2030-02-01T00:00:00Z'
        );
        expect([full.data.length, full.headers.get('x-truncated') === null]).to.equal([5_000, false]);
        expect(full.data.at(-1).at).to.equal('2030-01-04T11:19:00.000Z');
        for (const period of ['from=2030-01-01&to=2030-03-01', 'from=2030-01-02&to=2030-01-01']) {
            expect((await rig.ask('GET', `/calendar?${period}`)).code).to.equal(40001);
        }
        const preview = (schedule: string) =>
            rig.ask('POST', '/schedule/preview', { schedule, timezone: 'UTC' });
        expect((await preview('30 3 * * 1')).data.text).to.equal('At 03:30, only on Monday');
        expect((await preview('@reboot')).data).to.equal({
            text: 'After each boot of the machine',
            times: []
        });
    });

    it('give lines of their output to a search, and lose old runs on request', async () => {
        const id = await rig.task({
            name: 'talks',
            script: 'echo first; echo "Needle 100%_"; echo needle',
            tags: ['talk']
        });
        for (let count = 0; count < 3; count += 1) {
            await rig.finish(id);
        }
        const search = (query: string) => rig.ask('GET', `/output?${query}`);
        const found = await search('q=NEEDLE&tag=talk&limit=2');
        expect(found.data.map(({ line, text }: { line: number; text: string }) => [line, text])).to.equal([
            [2, 'Needle 100%_'],
            [3, 'needle']
        ]);
        const [, cursor] = /cursor=([^>&]+)/.exec(String(found.headers.get('link'))) ?? [];
        const rest = await search(`q=NEEDLE&tag=talk&limit=100&cursor=${cursor}`);
        expect([
            rest.data.length,
            new Set(rest.data.map(({ runId }: { runId: number }) => runId)).size
        ]).to.equal([4, 2]);
        expect((await search(`q=${encodeURIComponent('100%_')}&taskId=${id}`)).data.length).to.equal(3);
        expect((await search('q=100%25x')).data).to.equal([]);
        expect((await search('q=x')).code).to.equal(40001);
        expect((await rig.ask('GET', '/output?q=needle', undefined, { as: 'viewer' })).code).to.equal(40300);
        expect((await rig.ask('DELETE', `/tasks/${id}/runs?before=2000-01-01`)).data).to.equal({
            removed: 0
        });
        expect((await rig.ask('DELETE', `/tasks/${id}/runs`)).data).to.equal({ removed: 3 });
        expect([(await rig.ask('GET', `/tasks/${id}/runs`)).data, (await search('q=needle')).data]).to.equal([
            [],
            []
        ]);
    });
});

describe('crontabs', { timeout: 60_000 }, () => {
    let rig: CronjobRig;
    before(async () => {
        rig = await createCronjobRig();
    });
    after(() => rig.close());

    const crontab = [
        '# a comment',
        'MAILTO=root@example.org',
        'GREETING="hello there"',
        '*/5 * * * * echo "$GREETING" \\%d',
        '@daily  /usr/bin/true',
        '0 3 * * * cat%input',
        'nonsense',
        '61 * * * * true'
    ].join('\n');

    it('are taken in after a look that says what is different', async () => {
        const look = await rig.ask('POST', '/import', { text: crontab });
        expect(
            look.data.map(({ line, task }: { line: number; task: object | null }) => [line, task !== null])
        ).to.equal([
            [2, false],
            [4, true],
            [5, true],
            [6, true],
            [7, false],
            [8, false]
        ]);
        const problems = look.data.map(({ problem }: { problem: string | null }) => problem);
        expect(
            [problems[0], problems[3], problems[4], problems[5]].every((each) => each !== null)
        ).to.be.true();
        expect([problems[1], problems[2]]).to.equal([null, null]);
        expect((await rig.ask('GET', '/tasks')).data).to.equal([]);
        const made = await rig.ask('POST', '/import', { text: crontab, dryRun: false });
        const ids = made.data.flatMap(({ taskId }: { taskId?: number }) => taskId ?? []);
        expect(ids.length).to.equal(3);
        expect((await rig.finish(ids[0])).output).to.equal('hello there %d\n');
        const system = await rig.ask('POST', '/import', {
            text: '0 1 * * * nobody-here true',
            format: 'system'
        });
        expect([system.data[0].task, system.data[0].problem]).to.equal([
            null,
            'user is no account of this machine'
        ]);
        expect((await rig.ask('POST', '/import', { text: '' }, { as: 'operator' })).code).to.equal(40300);
    });

    it('are given with what cron cannot do as comments, and nothing of a name or an argument escapes its line', async () => {
        await rig.task({
            name: 'plain',
            command: ['echo', "it's 100%", 'a\n* * * * * root evil'],
            overlap: 'allow'
        });
        await rig.task({
            name: 'seconds',
            schedule: '*/10 * * * * *',
            command: ['true'],
            env: { KEY: 'value' }
        });
        const { text } = await rig.ask('GET', '/export');
        const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
        expect(lines).to.equal([`0 0 1 1 * root echo 'it'\\''s 100\\%' 'a * * * * * root evil'`]);
        expect(text).to.contain('# not in this file: cron knows no seconds').and.to.contain('variables KEY');
        expect(text).to.not.contain('value');
    });
});
