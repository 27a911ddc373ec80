import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { createCronjobRig, type CronjobRig, notRoot, type Person } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const plain = { name: 'report', schedule: '30 4 * * *', timezone: 'Europe/Berlin', command: ['true'] };

describe('POST /api/plugins/cronjob/tasks', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
    });

    after(async () => cron.close());

    it('makes a task with the documented defaults, and answers what a read of it answers', async () => {
        const made = await cron.ask('POST', '/tasks', plain);
        expect([made.status, made.code]).to.equal([201, 0]);
        expect(made.headers.get('location')).to.equal(`/api/plugins/cronjob/tasks/${made.data.id}`);
        expect(made.headers.get('etag')).to.equal('"1"');
        expect(made.data).to.include({
            ...plain,
            version: 1,
            script: null,
            env: {},
            user: null,
            cwd: null,
            timeoutSeconds: null,
            overlap: 'skip',
            retries: 0,
            backoffSeconds: 60,
            missed: 'skip',
            enabled: true,
            notifyOn: 'failure',
            deadManSeconds: null,
            nextRunAt: '2026-06-01T02:30:00.000Z',
            retryAt: null,
            overdueSince: null,
            lastRun: null,
            createdAt: '2026-06-01T00:00:00.000Z'
        });
        const read = await cron.ask('GET', `/tasks/${made.data.id}`);
        expect(read.data).to.equal(made.data);
        expect(read.headers.get('etag')).to.equal('"1"');
    });

    it('plans a disabled task and one for the next boot for no time', async () => {
        expect((await cron.ask('POST', '/tasks', { ...plain, enabled: false })).data.nextRunAt).to.be.null();
        expect(
            (await cron.ask('POST', '/tasks', { ...plain, schedule: '@reboot' })).data.nextRunAt
        ).to.be.null();
    });

    it('uses the time zone of the settings for a task that names none', async () => {
        const other = await createCronjobRig({
            at: '2026-06-01T00:00:00Z',
            settings: { timezone: 'Asia/Kathmandu' }
        });
        try {
            const { data } = await other.ask('POST', '/tasks', {
                name: 'x',
                schedule: '0 12 * * *',
                command: ['true']
            });
            expect(data).to.include({ timezone: 'Asia/Kathmandu', nextRunAt: '2026-06-01T06:15:00.000Z' });
        } finally {
            await other.close();
        }
    });

    it('refuses each bad field by its name, all at once, and makes nothing', async () => {
        const total = async (): Promise<string | null> =>
            (await cron.ask('GET', '/tasks')).headers.get('x-total-count');
        const before = await total();
        const refused = async (body: object): Promise<string[]> => {
            const { status, code, data } = await cron.ask('POST', '/tasks', body);
            expect([status, code, data?.reason]).to.equal([400, 40001, 'VALIDATION_FAILED']);
            return data.errors.map(({ path }: { path: string }) => path).sort();
        };
        expect(
            await refused({
                ...plain,
                schedule: '61 * * * *',
                timezone: 'Mars/Olympus',
                user: 'no-such-account-x',
                env: { PATH: '/x', LD_PRELOAD: 'x', '1A': 'x', KEEP: { set: true } }
            })
        ).to.equal(['env.1A', 'env.KEEP', 'env.LD_PRELOAD', 'env.PATH', 'schedule', 'timezone', 'user']);
        expect(await refused({ ...plain, schedule: '0 0 30 2 *' })).to.equal(['schedule']);
        expect(await refused({ ...plain, schedule: '2026-05-13T10:20:30Z' })).to.equal(['schedule']);
        expect(await refused({ ...plain, script: 'echo' })).to.equal(['command']);
        expect(await refused({ ...plain, command: null })).to.equal(['command']);
        expect(await refused({ ...plain, command: [] })).to.equal(['command']);
        expect(await refused({ ...plain, command: ['./here'] })).to.equal(['command.0']);
        expect(await refused({ ...plain, command: ['-x'] })).to.equal(['command.0']);
        expect(await refused({ ...plain, command: ['true', 'a\0b'] })).to.equal(['command.1']);
        expect(await refused({ ...plain, command: 'true' })).to.equal(['command']);
        expect(await refused({ ...plain, command: null, script: '#!sh\n' })).to.equal(['script']);
        expect(await refused({ ...plain, command: null, script: '#!/bin/sh\r\necho\r\n' })).to.equal([
            'script'
        ]);
        expect(
            await refused({
                ...plain,
                cwd: 'relative',
                timeoutSeconds: 0,
                retries: 21,
                backoffSeconds: 0,
                overlap: 'maybe',
                missed: 'maybe',
                notifyOn: 'maybe',
                deadManSeconds: 0,
                enabled: 'true'
            })
        ).to.equal([
            'backoffSeconds',
            'cwd',
            'deadManSeconds',
            'enabled',
            'missed',
            'notifyOn',
            'overlap',
            'retries',
            'timeoutSeconds'
        ]);
        expect(await refused({ schedule: '* * * * *', surprise: 1 })).to.equal(['name', 'surprise']);
        expect(await refused({ ...plain, user: '-u', name: ' ' })).to.equal(['name']);
        expect(await refused({ ...plain, user: '-u' })).to.equal(['user']);
        expect(await total()).to.equal(before);
    });

    itUnless(notRoot, it)('takes an account of the machine', async () => {
        expect((await cron.ask('POST', '/tasks', { ...plain, user: 'nobody' })).data.user).to.equal('nobody');
    });

    it('makes one task for a repeated key, and tells its end to no later request, as of all routes that need a fresh session', async () => {
        const headers = { 'idempotency-key': 'the-same' };
        const count = async () => (await cron.ask('GET', '/tasks?limit=500')).data.length as number;
        const before = await count();
        expect((await cron.ask('POST', '/tasks', plain, { headers })).status).to.equal(201);
        expect((await cron.ask('POST', '/tasks', plain, { headers })).code).to.equal(40903);
        expect(await count()).to.equal(before + 1);
        expect((await cron.ask('POST', '/tasks', { ...plain, name: 'other' }, { headers })).code).to.equal(
            40902
        );
    });
});

describe('a session that is not fresh', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });

    after(() => cron.close());

    it('can neither say nor change what runs, but may run, stop and remove', async () => {
        const id = await cron.task({ ...plain, name: 'kept' });
        expect((await cron.ask('POST', '/tasks', plain, { as: 'tired' })).code).to.equal(40301);
        const change = { command: ['id'] };
        expect((await cron.ask('PUT', `/tasks/${id}`, change, { as: 'tired' })).code).to.equal(40301);
        expect((await cron.ask('GET', '/tasks')).data).to.have.length(1);
        expect((await cron.ask('GET', `/tasks/${id}`)).data).to.include({ name: 'kept', version: 1 });
        expect((await cron.ask('POST', `/tasks/${id}/run`, {}, { as: 'tired' })).status).to.equal(202);
        expect((await cron.ask('DELETE', `/tasks/${id}`, undefined, { as: 'tired' })).status).to.equal(200);
    });
});

describe('GET /api/plugins/cronjob/tasks', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        for (const name of ['one', 'two', '100%', 'four', 'five']) {
            await cron.task({ ...plain, name, enabled: name !== 'two' });
        }
    });

    after(async () => cron.close());

    it('refuses a zero byte in a search', async () => {
        expect((await cron.ask('GET', '/tasks?q=a%00b')).code).to.equal(40001);
    });

    it('pages, stays right while rows are added, filters, and knows its content', async () => {
        const names = async (query: string): Promise<string[]> =>
            (await cron.ask('GET', `/tasks${query}`)).data.map(({ name }: { name: string }) => name);
        const first = await cron.ask('GET', '/tasks?limit=2');
        expect(first.data.map(({ name }: { name: string }) => name)).to.equal(['one', 'two']);
        expect(first.headers.get('x-total-count')).to.equal('5');
        const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
        const second = await cron.ask('GET', next.replace('/api/plugins/cronjob', ''));
        expect(second.data.map(({ name }: { name: string }) => name)).to.equal(['100%', 'four']);
        expect(await names('?q=%25')).to.equal(['100%']);
        expect(await names('?q=F')).to.equal(['four', 'five']);
        expect(await names('?enabled=false')).to.equal(['two']);
        expect(
            (
                await cron.ask('GET', '/tasks', undefined, {
                    headers: { 'if-none-match': (await cron.ask('GET', '/tasks')).headers.get('etag') ?? '' }
                })
            ).status
        ).to.equal(304);
        expect((await cron.ask('GET', '/tasks?cursor=nonsense')).code).to.equal(40001);
        expect((await cron.ask('GET', '/tasks/x')).code).to.equal(40400);
    });
});

describe('PUT /api/plugins/cronjob/tasks/{id}', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
    });

    after(async () => cron.close());

    it('changes what is sent, keeps the rest, takes null for the default, and takes back what it showed', async () => {
        const id = await cron.task({
            ...plain,
            retries: 3,
            timeoutSeconds: 5,
            env: { TOKEN: 's3cret-value' }
        });
        const changed = await cron.ask('PUT', `/tasks/${id}`, {
            name: 'renamed',
            retries: null,
            timeoutSeconds: null
        });
        expect(changed.data).to.include({
            name: 'renamed',
            retries: 0,
            timeoutSeconds: null,
            version: 2,
            schedule: plain.schedule,
            command: ['true'],
            env: { TOKEN: { set: true } }
        });
        const { data: shown } = await cron.ask('GET', `/tasks/${id}`);
        expect(shown).to.equal(changed.data);
        const { data: same } = await cron.ask('PUT', `/tasks/${id}`, shown);
        expect(same).to.equal({ ...shown, version: 3 });
    });

    it('lets a script take the place of a command, and plans anew by a new schedule', async () => {
        const id = await cron.task(plain);
        expect((await cron.ask('PUT', `/tasks/${id}`, { script: 'echo new' })).data).to.include({
            command: null,
            script: 'echo new'
        });
        expect((await cron.ask('PUT', `/tasks/${id}`, { command: ['true'] })).data).to.include({
            command: ['true'],
            script: null
        });
        expect((await cron.ask('PUT', `/tasks/${id}`, { schedule: '@hourly' })).data.nextRunAt).to.equal(
            '2026-06-01T01:00:00.000Z'
        );
        expect((await cron.ask('PUT', `/tasks/${id}`, { enabled: false })).data.nextRunAt).to.be.null();
        expect(
            (await cron.ask('PUT', `/tasks/${id}`, { enabled: true, timezone: 'Asia/Kathmandu' })).data
                .nextRunAt
        ).to.equal('2026-06-01T00:15:00.000Z');
    });

    it('refuses a change of what has changed, and changes nothing', async () => {
        const id = await cron.task(plain);
        expect(
            (await cron.ask('PUT', `/tasks/${id}`, { name: 'two' }, { headers: { 'if-match': '"1"' } })).data
                .version
        ).to.equal(2);
        const stale = await cron.ask(
            'PUT',
            `/tasks/${id}`,
            { name: 'three' },
            { headers: { 'if-match': '"1"' } }
        );
        expect([stale.status, stale.code, stale.data.reason, stale.data.version]).to.equal([
            412,
            41200,
            'VERSION_STALE',
            2
        ]);
        expect((await cron.ask('PUT', `/tasks/${id}`, { name: 'three', version: 1 })).code).to.equal(41200);
        expect(
            (await cron.ask('DELETE', `/tasks/${id}`, undefined, { headers: { 'if-match': '"1"' } })).code
        ).to.equal(41200);
        expect(
            (
                await cron.ask('PUT', `/tasks/${id}`, { schedule: 'x', env: { A: { set: true } } })
            ).data.errors.map(({ path }: { path: string }) => path)
        ).to.equal(['schedule', 'env.A']);
        expect((await cron.ask('GET', `/tasks/${id}`)).data).to.include({ name: 'two', version: 2 });
        const answers = await Promise.all(
            Array.from({ length: 6 }, (_, index) =>
                cron.ask(
                    'PUT',
                    `/tasks/${id}`,
                    { name: `writer ${index}` },
                    { headers: { 'if-match': '"2"' } }
                )
            )
        );
        expect(answers.filter(({ code }) => code === 0)).to.have.length(1);
        expect(answers.filter(({ code }) => code === 41200)).to.have.length(5);
    });
});

describe('the secrets of cronjob', () => {
    const secret = 'hunter2-is-not-a-good-one';
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });

    after(async () => cron.close());

    it('never shows a value of env, keeps it sealed, and hands it to the program', async () => {
        const id = await cron.task({
            ...plain,
            command: ['sh', '-c', 'printf %s "$TOKEN" | wc -c'],
            env: { TOKEN: secret }
        });
        expect((await cron.finish(id)).output.trim()).to.equal(String(secret.length));
        await cron.ask('PUT', `/tasks/${id}`, { env: { TOKEN: { set: true }, MORE: 'x' } });
        expect((await cron.finish(id)).output.trim()).to.equal(String(secret.length));
        const seen = await Promise.all(
            ['/tasks', `/tasks/${id}`, `/tasks/${id}/runs`, '/runs'].map(
                async (path) => (await cron.ask('GET', path)).text
            )
        );
        expect(seen.join()).to.not.contain(secret);
        expect(JSON.stringify(cron.host.audit)).to.not.contain(secret);
        expect(JSON.stringify(cron.host.log)).to.not.contain(secret);
        const { readFileSync, readdirSync } = await import('node:fs');
        expect(
            readdirSync(cron.folder)
                .filter((name) => name.startsWith('data.db'))
                .map((name) => readFileSync(`${cron.folder}/${name}`, 'latin1'))
                .join()
        ).to.not.contain(secret);
    });

    it('shows a reader neither what runs nor what it prints, and lets only an admin say what runs', async () => {
        const id = await cron.task({
            ...plain,
            command: ['sh', '-c', 'echo printed-thing; exit 1'],
            env: { TOKEN: secret }
        });
        const run = await cron.finish(id);
        const missing = await cron.finish(await cron.task({ ...plain, command: ['secret-program-name'] }));
        const paths = [
            '/tasks',
            `/tasks/${id}`,
            `/tasks/${id}/runs`,
            '/runs',
            `/runs/${run.id}`,
            `/runs/${missing.id}`
        ];
        for (const path of paths) {
            const { status, text } = await cron.ask('GET', path, undefined, { as: 'viewer' });
            expect(status).to.equal(200);
            expect(text, path).to.not.match(
                /printed-thing|secret-program-name|"(?:command|script|env|output)":|TOKEN/
            );
        }
        expect(
            (await cron.ask('GET', `/runs/${run.id}`, undefined, { as: 'operator' })).data.output
        ).to.equal('printed-thing\n');
        expect((await cron.ask('GET', `/tasks/${id}`, undefined, { as: 'operator' })).data.env).to.equal({
            TOKEN: { set: true }
        });
        const code = async (
            as: Person,
            method: string,
            path: string,
            body?: object
        ): Promise<number | null> => (await cron.ask(method, path, body, { as })).code;
        expect(await code('viewer', 'GET', `/runs/${run.id}/output`)).to.equal(40300);
        expect(await code('viewer', 'POST', `/tasks/${id}/run`)).to.equal(40300);
        expect(await code('viewer', 'DELETE', `/runs/${run.id}`)).to.equal(40300);
        expect(await code('operator', 'POST', '/tasks', plain)).to.equal(40300);
        expect(await code('operator', 'PUT', `/tasks/${id}`, { name: 'x' })).to.equal(40300);
        expect(await code('operator', 'DELETE', `/tasks/${id}`)).to.equal(40300);
        expect(await code('operator', 'POST', `/tasks/${id}/run`)).to.equal(0);
    });

    it('records changes without what runs', async () => {
        const id = await cron.task({ ...plain, command: ['echo', 'argument-in-record'] });
        await cron.ask('PUT', `/tasks/${id}`, { command: ['echo', 'another-in-record'], name: 'recorded' });
        await cron.ask('DELETE', `/tasks/${id}`);
        const entries = cron.host.audit
            .filter(({ resourceId }) => String(resourceId) === String(id))
            .slice(-3);
        expect(entries.map(({ action }) => action)).to.equal(['create', 'update', 'delete']);
        expect(entries[1]?.after).to.include({ name: 'recorded', runs: 'command', changed: ['command'] });
        expect(JSON.stringify(entries)).to.not.contain('in-record');
    });
});
