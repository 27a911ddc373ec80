/** Section 8 of the contract: what is on record, how it is found, and that it was not changed. */
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import type { Answer } from '../../support/panel/client.ts';
import { type Consumer, outcome, startConsumer } from '../../support/panel/consumer.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Entry {
    readonly id: number;
    readonly at: string;
    readonly actor: {
        readonly id: number | null;
        readonly username: string | null;
        readonly tokenId: number | null;
        readonly plugin: string | null;
    };
    readonly action: string;
    readonly resource: string;
    readonly resourceId: number | string | null;
    readonly outcome: string;
    readonly status: number;
    readonly code: number;
    readonly count: number;
    readonly ip: string | null;
    readonly userAgent: string | null;
    readonly requestId: string;
    readonly changes: {
        readonly before: Record<string, unknown> | null;
        readonly after: Record<string, unknown> | null;
    } | null;
    readonly hash: string;
}

interface Names {
    readonly actions: readonly string[];
    readonly resources: readonly string[];
}

let panel: Consumer;

before(async () => {
    panel = await startConsumer();
});

after(() => panel?.close());

const list = async (query = ''): Promise<Entry[]> =>
    (await panel.client.get(`/api/audit${query}`)).data as Entry[];
const find = (requestId: string): Promise<Entry[]> => list(`?q=${requestId}`);
const marked = (id: string, more: Record<string, string> = {}): { headers: Record<string, string> } => ({
    headers: { 'x-request-id': id, ...more }
});

describe('GET /api/audit/names', () => {
    it('lists what the filters can be set to', async () => {
        await panel.client.post('/api/hosts', { domain: 'named.test', upstream: '127.0.0.1:9' });
        const { actions, resources } = (await panel.client.get('/api/audit/names')).data as Names;
        expect([actions.includes('create'), resources.includes('hosts')]).to.equal([true, true]);
        for (const names of [actions, resources]) {
            expect(names).to.equal([...new Set(names)].toSorted());
        }
        const found = await Promise.all(actions.map((action) => list(`?action=${action}&limit=1`)));
        expect(found.every((rows) => rows.length === 1)).to.be.true();
    });
});

describe('an entry', () => {
    it('is written by every change, with what was before and after, and the request id', async () => {
        const upstream = '127.0.0.1:9';
        const made = await panel.client.post(
            '/api/hosts',
            { domain: 'audited.test', upstream },
            marked('make-it', { 'user-agent': 'a consumer' })
        );
        const path = made.headers.location ?? '';
        await panel.client.put(path, { notes: 'changed' }, marked('change-it'));
        await panel.client.delete(path, marked('remove-it'));
        const entries = [
            (await find('make-it'))[0],
            (await find('change-it'))[0],
            (await find('remove-it'))[0]
        ];
        expect(
            entries.map((entry) => [
                entry?.action,
                entry?.resource,
                entry?.resourceId,
                entry?.outcome,
                entry?.status,
                entry?.code
            ])
        ).to.equal([
            ['create', 'hosts', made.data.id, 'success', 201, 0],
            ['update', 'hosts', made.data.id, 'success', 200, 0],
            ['delete', 'hosts', made.data.id, 'success', 200, 0]
        ]);
        const [create, update] = entries;
        expect(Object.keys(create as object)).to.equal([
            'id',
            'at',
            'actor',
            'action',
            'resource',
            'resourceId',
            'outcome',
            'status',
            'code',
            'count',
            'ip',
            'userAgent',
            'requestId',
            'changes',
            'hash'
        ]);
        expect(create).to.include({ ip: '127.0.0.1', userAgent: 'a consumer', requestId: 'make-it' });
        expect(create?.actor).to.equal({ id: 1, username: 'admin', tokenId: null, plugin: null });
        expect([update?.changes?.before?.['notes'], update?.changes?.after?.['notes']]).to.equal([
            '',
            'changed'
        ]);
        expect((await panel.client.get(`/api/audit/${create?.id}`)).data).to.equal(create);
    });

    it('masks every secret', async () => {
        const secrets = ['a password of a user', 'a password of a site', 'dGhlLW1hYy1rZXk'];
        await panel.client.post('/api/users', { username: 'masked', password: secrets[0], role: 'viewer' });
        await panel.client.post('/api/hosts', {
            domain: 'masked.test',
            upstream: '127.0.0.1:9',
            access: { basicAuth: [{ username: 'u', password: secrets[1] }] }
        });
        await panel.client.put('/api/settings', { 'engine.acmeEab': { keyId: 'k', macKey: secrets[2] } });
        await panel.client.put('/api/settings', { 'engine.acmeEab': null });
        const {
            data: { token }
        } = await panel.client.post('/api/auth/tokens', { name: 'masked' });
        const { text } = await panel.client.get('/api/audit/export');
        for (const secret of [...secrets, token as string, '$argon2', '$2a$', '$2b$', '$2y$']) {
            expect(text.includes(secret), secret).to.be.false();
        }
    });

    it('is written by every result of an authentication, and by every refusal', async () => {
        await panel.client.login('admin', 'wrong password');
        const {
            data: { token }
        } = await panel.client.login('masked', 'a password of a user');
        await panel.client.delete('/api/hosts/1', { token: token as string, ...marked('refused-it') });
        await panel.client.post('/api/auth/logout', undefined, { token: token as string });
        await panel.client.get('/api/hosts', { token: 'nonsense', ...marked('stranger') });
        const [newest] = await list('?action=login_failed');
        expect([newest?.actor.id, newest?.actor.username, newest?.outcome, newest?.code]).to.equal([
            null,
            'admin',
            'failure',
            40110
        ]);
        expect((await list('?action=login&actor=masked'))[0]).to.include({ outcome: 'success', status: 200 });
        expect((await list('?action=logout&actor=masked'))[0]).to.include({ outcome: 'success' });
        const [refused] = await find('refused-it');
        expect([
            refused?.action,
            refused?.actor.username,
            refused?.outcome,
            refused?.status,
            refused?.code
        ]).to.equal(['delete', 'masked', 'failure', 403, 40300]);
        expect((await find('stranger'))[0]).to.include({ outcome: 'failure', status: 401, code: 40101 });
    });

    it('names the token that acted', async () => {
        const {
            data: { id, token }
        } = await panel.client.post('/api/auth/tokens', {
            name: 'acting',
            permissions: ['hosts:write', 'hosts:read']
        });
        await panel.client.post(
            '/api/hosts',
            { domain: 'by-token.test', upstream: '127.0.0.1:9' },
            { token: token as string, ...marked('by-token') }
        );
        expect((await find('by-token'))[0]?.actor).to.equal({
            id: 1,
            username: 'admin',
            tokenId: id as number,
            plugin: null
        });
    });

    it('of a change that was refused says so', async () => {
        await panel.client.post(
            '/api/hosts',
            { domain: 'by-token.test', upstream: '127.0.0.1:9' },
            marked('taken')
        );
        expect((await find('taken'))[0]).to.include({
            action: 'create',
            outcome: 'failure',
            status: 409,
            code: 40900
        });
    });

    it('names what a refused change was about', async () => {
        const role = await panel.client.put('/api/users/roles/missing', {}, marked('no-role'));
        expect(role.status).to.equal(404);
        await panel.client.put('/api/hosts/1', { domain: 5 }, marked('no-domain'));
        await panel.client.delete('/api/users/1', marked('last-admin'));
        const about = async (mark: string): Promise<unknown[]> => {
            const [entry] = await find(mark);
            return [entry?.action, entry?.resource, entry?.resourceId, entry?.outcome];
        };
        expect(await about('no-role')).to.equal(['update', 'users', 'missing', 'failure']);
        expect(await about('no-domain')).to.equal(['update', 'hosts', 1, 'failure']);
        expect(await about('last-admin')).to.equal(['delete', 'users', 1, 'failure']);
    });
});

describe('GET /api/audit', () => {
    it('is filtered on the server, newest first', async () => {
        const all = await list('?limit=500');
        expect(all.map(({ id }) => id)).to.equal(all.map(({ id }) => id).sort((a, b) => b - a));
        const filters: [string, (entry: Entry) => boolean][] = [
            ['action=create', ({ action }) => action === 'create'],
            ['resource=hosts', ({ resource }) => resource === 'hosts'],
            [
                'resource=hosts&resourceId=1',
                ({ resource, resourceId }) => resource === 'hosts' && String(resourceId) === '1'
            ],
            ['actor=masked', ({ actor }) => actor.username === 'masked'],
            ['outcome=failure', (entry) => entry.outcome === 'failure'],
            [`from=${all[3]?.at}`, ({ at }) => at >= (all[3]?.at ?? '')]
        ];
        for (const [query, holds] of filters) {
            const wanted = all.filter(holds).map(({ id }) => id);
            expect(
                (await list(`?limit=500&${query}`))
                    .map(({ id }) => id)
                    .filter((id) => id <= (all[0]?.id ?? 0)),
                query
            ).to.equal(wanted);
            expect(wanted, query).not.to.be.empty();
        }
        expect(await list('?to=2020-01-01T00:00:00.000Z')).to.equal([]);
        for (const query of ['outcome=nope', 'from=x', 'limit=501', 'limit=0', 'nope=1']) {
            expect(outcome(await panel.client.get(`/api/audit?${query}`)), query).to.equal([
                400,
                40001,
                'VALIDATION_FAILED'
            ]);
        }
        expect(outcome(await panel.client.get('/api/audit/999999'))).to.equal([404, 40400, 'NOT_FOUND']);
    });

    it('gives 50 unless more are asked for, and pages while entries are added', async () => {
        for (let at = 0; at < 60; at += 1) {
            await panel.client.put('/api/settings', { 'audit.retentionDays': 100 + at });
        }
        const first = await panel.client.get('/api/audit');
        expect(first.data).to.have.length(50);
        await panel.client.put('/api/settings', { 'audit.retentionDays': null });
        const second = await panel.client.get(
            /<([^>]+)>; rel="next"/.exec(String(first.headers.link))?.[1] ?? ''
        );
        expect(second.data[0].id).to.equal((first.data[49].id as number) - 1);
    });

    it('is for users with the permission, and the export is a line for each entry', async () => {
        const {
            data: { token }
        } = await panel.client.post('/api/auth/tokens', { name: 'no audit', permissions: ['hosts:read'] });
        for (const path of ['/api/audit', '/api/audit/1', '/api/audit/verify', '/api/audit/export']) {
            expect(outcome(await panel.client.get(path, { token: token as string })), path).to.equal([
                403,
                40300,
                'FORBIDDEN'
            ]);
        }
        const { headers, text } = await panel.client.get('/api/audit/export');
        expect(headers['content-type']).to.equal('application/x-ndjson');
        const lines = text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Entry);
        expect(lines.map(({ id }) => id).sort((a, b) => a - b)).to.equal(
            Array.from({ length: lines.length }, (_, at) => at + 1)
        );
    });
});

describe('GET /api/audit/verify', () => {
    /** Changes the file while the panel is down. */
    async function tamper(change: (db: Sqlite.Database) => void): Promise<Answer> {
        await panel.panel.stop();
        const db = new Sqlite(join(panel.config.dataDir, 'portico.db'));
        try {
            change(db);
        } finally {
            db.close();
        }
        await panel.restart();
        return panel.client.get('/api/audit/verify');
    }

    it('holds over restarts', async () => {
        await panel.restart();
        const { data } = await panel.client.get('/api/audit/verify');
        expect([data.holds, data.break, data.entries >= 60, data.first]).to.equal([true, null, true, 1]);
    });

    it('finds a changed, a swapped, an inserted and a removed entry, and nothing once it is undone', async () => {
        const setUsername =
            (name: string) =>
            (db: Sqlite.Database): void =>
                void db.prepare('update audit_entries set username = ? where id = 20').run(name);
        let username = '';
        const changed = await tamper((db) => {
            username = (
                db.prepare('select username from audit_entries where id = 20').get() as { username: string }
            ).username;
            setUsername('another user')(db);
        });
        expect([changed.data.holds, changed.data.break.id]).to.equal([false, 20]);
        expect((await tamper(setUsername(username))).data.holds).to.be.true();

        const swap = (db: Sqlite.Database): void =>
            void db.exec(
                'update audit_entries set id = -1 where id = 30; update audit_entries set id = 30 where id = 31; update audit_entries set id = 31 where id = -1'
            );
        const swapped = await tamper(swap);
        expect([swapped.data.holds, swapped.data.break.id]).to.equal([false, 30]);
        expect((await tamper(swap)).data.holds).to.be.true();

        const removed = await tamper(
            (db) =>
                void db.exec(
                    'create table kept as select * from audit_entries where id = 40; delete from audit_entries where id = 40'
                )
        );
        expect([removed.data.holds, removed.data.break.id]).to.equal([false, 40]);
        expect(
            (
                await tamper(
                    (db) => void db.exec('insert into audit_entries select * from kept; drop table kept')
                )
            ).data.holds
        ).to.be.true();
    });

    it('finds a tail that was cut', async () => {
        const cut = await tamper(
            (db) =>
                void db.exec('delete from audit_entries where id > (select max(id) - 3 from audit_entries)')
        );
        expect(cut.data.holds).to.be.false();
        expect(cut.data.break).not.to.be.null();
    });
});
