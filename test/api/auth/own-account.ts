import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type Answer,
    codeOf,
    type Entrance,
    openEntrance,
    password,
    things
} from '../../support/core/entrance.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const next = 'three green lamps 9';
let at: Entrance;
let token: string;
let id: number;

const open = async (): Promise<void> => {
    at = await openEntrance({ routes: things() });
    id = await at.add('owner', 'admin');
    token = await at.tokenOf('owner');
};
const close = (): Promise<void> => at.remove();
const code = async (answer: Promise<Answer>): Promise<number> => (await answer).code;
const enrol = async (): Promise<string> =>
    (await at.ask('POST', '/api/auth/totp', { token, body: { password } })).data.secret as string;
const secondFactor = async (): Promise<{ secret: string; recoveryCodes: string[] }> => {
    const secret = await enrol();
    const { data } = await at.ask('PUT', '/api/auth/totp', {
        token,
        body: { code: codeOf(secret, at.clock.time) }
    });
    at.clock.time += 30_000;
    return { secret, recoveryCodes: data.recoveryCodes as string[] };
};
const unmerged = (): [string, number][] => at.recorded.map(({ action, code: failure }) => [action, failure]);

describe('PUT /api/auth/password', () => {
    beforeEach(open);
    afterEach(close);

    it('changes the password, ends the other sessions, keeps this one and the API tokens', async () => {
        const other = await at.tokenOf('owner');
        const { data: api } = await at.ask('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
        const changed = await at.ask('PUT', '/api/auth/password', {
            token,
            body: { currentPassword: password, newPassword: next }
        });
        expect([changed.status, changed.data]).to.equal([200, null]);
        expect(await code(at.ask('GET', '/api/auth/me', { token }))).to.equal(0);
        expect(await code(at.ask('GET', '/api/auth/me', { token: other }))).to.equal(40103);
        expect(await code(at.ask('GET', '/api/auth/me', { token: api.token }))).to.equal(0);
        expect(await code(at.login('owner', password))).to.equal(40110);
        expect(await code(at.login('owner', next))).to.equal(0);
        expect(JSON.stringify(at.recorded)).not.to.contain(next);
    });

    it('refuses the wrong present one, unmerged and counted, and a new one that is too short, common or the same', async () => {
        const change = (currentPassword: string, newPassword: string): Promise<Answer> =>
            at.ask('PUT', '/api/auth/password', { token, body: { currentPassword, newPassword } });
        expect(await code(change('wrong password', next))).to.equal(40110);
        expect(unmerged().at(-1)).to.equal(['update', 40110]);
        for (const weak of [
            'short',
            '123456789',
            'password123',
            'qwertyuiop',
            'ownerowner1',
            'Portico2026!',
            password,
            `${'x'.repeat(1024)}yzab1`
        ]) {
            const answer = await change(password, weak);
            expect([answer.code, answer.data.errors[0].path], weak).to.equal([40001, 'newPassword']);
        }
        for (let attempt = 0; attempt < 5; attempt += 1) {
            await change('wrong password', next);
        }
        const closed = await change(password, next);
        expect(closed.code).to.equal(42900);
        expect(closed.headers['retry-after']).to.equal('60');
        expect(unmerged()).to.include([
            ['lockout', 42900],
            ['update', 42900]
        ]);
        at.clock.time += 61_000;
        expect(await code(change(password, next))).to.equal(0);
    });

    it('tells two long passwords apart, and takes every character', async () => {
        const long = `${'long and longer '.repeat(40)}é🦦`;
        await at.ask('PUT', '/api/auth/password', {
            token,
            body: { currentPassword: password, newPassword: `${long}a` }
        });
        expect(await code(at.login('owner', `${long}b`))).to.equal(40110);
        expect(await code(at.login('owner', `${long}a`))).to.equal(0);
    });
});

describe('/api/auth/totp', () => {
    beforeEach(open);
    afterEach(close);

    it('gives a secret of 160 bits with its URI and picture, and changes nothing until it is confirmed', async () => {
        const { data } = await at.ask('POST', '/api/auth/totp', { token, body: { password } });
        expect(data.secret).to.match(/^[A-Z2-7]{32}$/);
        expect(data.uri as string).to.match(/^otpauth:\/\/totp\/Portico:owner\?/);
        expect(data.uri).to.contain(data.secret);
        expect(Buffer.from(data.qr.split(',')[1], 'base64').toString()).to.startWith('<svg');
        expect(await code(at.login('owner', password))).to.equal(0);
        const file = at.store.db
            .prepare<[], { pending: string }>('select pending from auth_second_factors')
            .get();
        expect(file?.pending).not.to.contain(data.secret);
        expect(
            await code(at.ask('POST', '/api/auth/totp', { token, body: { password: 'wrong password' } }))
        ).to.equal(40110);
        expect(await code(at.ask('PUT', '/api/auth/totp', { token, body: { code: '000000' } }))).to.equal(
            40114
        );
        expect((await at.ask('GET', '/api/auth/me', { token })).data.totpEnabled).to.be.false();
    });

    it('answers ten recovery codes once, ends the other sessions, and counts the code that confirmed as used', async () => {
        const other = await at.tokenOf('owner');
        const secret = await enrol();
        const used = codeOf(secret, at.clock.time);
        const { data } = await at.ask('PUT', '/api/auth/totp', { token, body: { code: used } });
        expect(new Set(data.recoveryCodes).size).to.equal(10);
        expect(await code(at.ask('GET', '/api/auth/me', { token: other }))).to.equal(40103);
        expect((await at.ask('GET', '/api/auth/me', { token })).data.totpEnabled).to.be.true();
        expect(await code(at.login('owner', password, { totp: used }))).to.equal(40114);
        expect(await code(at.ask('PUT', '/api/auth/totp', { token, body: { code: used } }))).to.equal(40400);
        const rows = JSON.stringify(
            at.store.db.prepare<[], object>('select * from auth_recovery_codes').all()
        );
        expect(rows).not.to.contain(data.recoveryCodes[0]);
    });

    it('takes each recovery code once as the second step, however it is written', async () => {
        const {
            recoveryCodes: [first = '', second = '']
        } = await secondFactor();
        const answers = await Promise.all([
            at.login('owner', password, { totp: first }),
            at.login('owner', password, { totp: first })
        ]);
        expect(answers.map((answer) => answer.code).sort()).to.equal([0, 40114]);
        expect(
            await code(at.login('owner', password, { totp: second.toUpperCase().replaceAll('-', ' ') }))
        ).to.equal(0);
        await at.restart();
        expect(await code(at.login('owner', password, { totp: second }))).to.equal(40114);
    });

    it('accepts one step of drift and no more', async () => {
        const { secret } = await secondFactor();
        at.clock.time += 300_000;
        const late = codeOf(secret, at.clock.time - 60_000);
        expect(await code(at.login('owner', password, { totp: late }))).to.equal(40114);
        expect(
            await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time - 30_000) }))
        ).to.equal(0);
        expect(
            await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time + 60_000) }))
        ).to.equal(40114);
        expect(
            await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time + 30_000) }))
        ).to.equal(0);
        expect(await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time) }))).to.equal(
            40114
        );
    });

    it('leaves an active second factor alone: another takes a code of both', async () => {
        const { secret } = await secondFactor();
        const replacement = await enrol();
        expect(await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time) }))).to.equal(0);
        at.clock.time += 30_000;
        expect(
            await code(
                at.ask('PUT', '/api/auth/totp', { token, body: { code: codeOf(replacement, at.clock.time) } })
            )
        ).to.equal(40113);
        expect(
            await code(
                at.ask('PUT', '/api/auth/totp', {
                    token,
                    body: { code: codeOf(replacement, at.clock.time), currentCode: '000000' }
                })
            )
        ).to.equal(40114);
        const body = { code: codeOf(replacement, at.clock.time), currentCode: codeOf(secret, at.clock.time) };
        expect(await code(at.ask('PUT', '/api/auth/totp', { token, body }))).to.equal(0);
        at.clock.time += 30_000;
        expect(await code(at.login('owner', password, { totp: codeOf(secret, at.clock.time) }))).to.equal(
            40114
        );
        expect(
            await code(at.login('owner', password, { totp: codeOf(replacement, at.clock.time) }))
        ).to.equal(0);
    });

    it('goes by password and code together', async () => {
        const { secret } = await secondFactor();
        const remove = (body: object): Promise<number> =>
            code(at.ask('DELETE', '/api/auth/totp', { token, body }));
        expect(await remove({ password })).to.equal(40001);
        expect(await remove({ password: 'wrong password', code: codeOf(secret, at.clock.time) })).to.equal(
            40110
        );
        expect(await remove({ password, code: '000000' })).to.equal(40114);
        expect(await remove({ password, code: codeOf(secret, at.clock.time) })).to.equal(0);
        expect(await remove({ password, code: codeOf(secret, at.clock.time) })).to.equal(40400);
        expect(await code(at.login('owner', password))).to.equal(0);
        expect(
            at.store.db.prepare<[], { n: number }>('select count(*) n from auth_recovery_codes').get()?.n
        ).to.equal(0);
        expect(unmerged()).to.include([
            ['disable', 40110],
            ['disable', 40114],
            ['disable', 0]
        ]);
    });

    it('closes after five wrong codes by whichever endpoint', async () => {
        const { secret } = await secondFactor();
        await at.login('owner', password, { totp: '000000' });
        await at.ask('POST', '/api/auth/step-up', { token, body: { totp: '000000' } });
        await at.ask('DELETE', '/api/auth/totp', { token, body: { password, code: '000000' } });
        await enrol();
        await at.ask('PUT', '/api/auth/totp', { token, body: { code: '123456', currentCode: '000000' } });
        expect(await code(at.ask('POST', '/api/auth/step-up', { token, body: { totp: '000000' } }))).to.equal(
            40114
        );
        for (const answer of [
            await at.login('owner', password, { totp: codeOf(secret, at.clock.time) }),
            await at.ask('POST', '/api/auth/step-up', {
                token,
                body: { totp: codeOf(secret, at.clock.time) }
            }),
            await at.ask('DELETE', '/api/auth/totp', {
                token,
                body: { password, code: codeOf(secret, at.clock.time) }
            })
        ]) {
            expect([answer.code, answer.headers['retry-after']]).to.equal([42900, '900']);
        }
        expect(await code(at.ask('POST', '/api/auth/step-up', { token, body: { password } }))).to.equal(0);
    });
});

describe('POST /api/auth/step-up', () => {
    beforeEach(open);
    afterEach(close);

    it('makes the session fresh again by password or code, and only this session', async () => {
        at.settings['panel.accessTokenMinutes'] = 120;
        token = await at.tokenOf('owner');
        const other = await at.tokenOf('owner');
        const secret = (method: string): Promise<number> =>
            code(at.ask('GET', '/api/things/secret', { token: method }));
        at.clock.time += 15 * 60_000;
        expect(await secret(token)).to.equal(40301);
        const { data } = await at.ask('POST', '/api/auth/step-up', { token, body: { password } });
        expect(Date.parse(data.freshUntil) - at.clock.time).to.equal(15 * 60_000);
        expect([await secret(token), await secret(other)]).to.equal([0, 40301]);
        await at.restart();
        expect(await secret(token)).to.equal(0);
        const totp = await secondFactor();
        at.clock.time += 15 * 60_000;
        expect(await secret(token)).to.equal(40301);
        expect(
            await code(
                at.ask('POST', '/api/auth/step-up', {
                    token,
                    body: { totp: codeOf(totp.secret, at.clock.time) }
                })
            )
        ).to.equal(0);
        expect(await secret(token)).to.equal(0);
    });

    it('refuses a wrong password, unmerged, and neither or both', async () => {
        expect(
            await code(at.ask('POST', '/api/auth/step-up', { token, body: { password: 'wrong password' } }))
        ).to.equal(40110);
        expect(unmerged().at(-1)).to.equal(['step_up', 40110]);
        expect(await code(at.ask('POST', '/api/auth/step-up', { token, body: { totp: '000000' } }))).to.equal(
            40114
        );
        expect(await code(at.ask('POST', '/api/auth/step-up', { token, body: {} }))).to.equal(40001);
        expect(
            await code(at.ask('POST', '/api/auth/step-up', { token, body: { password, totp: '000000' } }))
        ).to.equal(40001);
    });
});

describe('/api/auth/tokens', () => {
    beforeEach(open);
    afterEach(close);

    const create = (body: object, by = token): Promise<Answer> =>
        at.ask('POST', '/api/auth/tokens', { token: by, body });

    it('shows a token once, keeps its hash, and lists when it was used', async () => {
        const created = await create({
            name: 'ci',
            permissions: ['hosts:read'],
            expiresAt: '2027-01-01T00:00:00.000Z'
        });
        expect(created.status).to.equal(201);
        expect(created.data.token).to.match(/^ptk_[\w-]{43}$/);
        expect(created.data).to.include({
            name: 'ci',
            permissions: ['hosts:read'],
            expiresAt: '2027-01-01T00:00:00.000Z',
            lastUsedAt: null,
            version: 1
        });
        const read = await at.ask('GET', created.headers['location'] ?? '', { token });
        const { token: secret, ...rest } = created.data;
        expect(read.data).to.equal(rest);
        expect(
            JSON.stringify(at.store.db.prepare<[], object>('select * from auth_tokens').all())
        ).not.to.contain(secret);
        expect(await code(at.ask('GET', '/api/things', { token: secret }))).to.equal(0);
        const {
            data: [listed]
        } = await at.ask('GET', '/api/auth/tokens', { token });
        expect(listed).to.equal({ ...rest, lastUsedAt: new Date(at.clock.time).toISOString() });
        await at.restart();
        expect(await code(at.ask('GET', '/api/things', { token: secret }))).to.equal(0);
        expect((await at.ask('GET', '/api/auth/tokens', { token })).data[0].lastUsedAt).not.to.be.null();
    });

    it('may what it was given and its owner may at that moment', async () => {
        const worker = await at.add('worker', 'operator');
        const theirs = await at.tokenOf('worker');
        const more = await create({ name: 'more', permissions: ['hosts:read', 'users:write'] }, theirs);
        expect([more.code, more.data.permission]).to.equal([40300, 'users:write']);
        const { data: api } = await create(
            { name: 'ci', permissions: ['hosts:write', 'hosts:read'] },
            theirs
        );
        const { data: none } = await create({ name: 'none' }, theirs);
        expect((await at.ask('GET', '/api/auth/me', { token: api.token })).data).to.include({
            username: 'worker',
            permissions: ['hosts:read', 'hosts:write']
        });
        expect((await at.ask('GET', '/api/things', { token: none.token })).data.permission).to.equal(
            'hosts:read'
        );
        expect(await code(at.ask('POST', '/api/things', { token: api.token }))).to.equal(0);
        await at.ask('PUT', `/api/users/${worker}`, { token, body: { role: 'viewer' } });
        expect(await code(at.ask('POST', '/api/things', { token: api.token }))).to.equal(40300);
        expect((await at.ask('GET', '/api/auth/me', { token: api.token })).data.permissions).to.equal([
            'hosts:read'
        ]);
        expect(await code(at.ask('GET', '/api/auth/me', { token: theirs }))).to.equal(40103);
    });

    it("cannot touch tokens, passwords, second factors, roles or other users' authority", async () => {
        const other = await at.add('other', 'viewer');
        const {
            data: { permissions }
        } = await at.ask('GET', '/api/auth/me', { token });
        const {
            data: { token: api, id: tokenId }
        } = await create({ name: 'all', permissions });
        const attempts: ['GET' | 'POST' | 'PUT' | 'DELETE', string, object?][] = [
            ['POST', '/api/auth/tokens', { name: 'more' }],
            ['DELETE', `/api/auth/tokens/${tokenId}`],
            ['PUT', '/api/auth/password', { currentPassword: password, newPassword: next }],
            ['POST', '/api/auth/totp', { password }],
            ['PUT', '/api/auth/totp', { code: '000000' }],
            ['DELETE', '/api/auth/totp', { password, code: '000000' }],
            ['POST', '/api/auth/step-up', { password }],
            ['POST', '/api/users', { username: 'third', password, role: 'admin' }],
            ['PUT', `/api/users/${other}`, { password: next }],
            ['PUT', `/api/users/${other}`, { role: 'admin' }],
            ['DELETE', `/api/users/${other}/totp`],
            ['POST', '/api/users/roles', { name: 'mine', permissions: [] }]
        ];
        for (const [method, path, body] of attempts) {
            const answer = await at.ask(method, path, {
                token: api,
                ...(body === undefined ? {} : { body })
            });
            expect([answer.code, answer.data.permission], `${method} ${path}`).to.equal([40300, 'session']);
        }
        expect(
            at.refused.filter((entry) => entry.code === 40300 && entry.actor.tokenId === tokenId)
        ).to.have.length(attempts.length);
        expect(
            await code(at.ask('PUT', `/api/users/${other}`, { token: api, body: { username: 'another' } }))
        ).to.equal(0);
    });

    it('ends by revocation, expiry and with its owner; it is told which', async () => {
        const worker = await at.add('worker', 'operator');
        const theirs = await at.tokenOf('worker');
        const soon = new Date(at.clock.time + 60_000).toISOString();
        const { data: short } = await create({ name: 'short', expiresAt: soon });
        const { data: revoked } = await create({ name: 'revoked' });
        const { data: orphan } = await create({ name: 'orphan' }, theirs);
        await at.ask('DELETE', `/api/auth/tokens/${revoked.id}`, { token });
        await at.ask('PUT', `/api/users/${worker}`, { token, body: { disabled: true } });
        at.clock.time += 60_000;
        const ends = async (): Promise<number[]> =>
            Promise.all(
                [short, revoked, orphan].map(({ token: api }) =>
                    code(at.ask('GET', '/api/auth/me', { token: api }))
                )
            );
        expect(await ends()).to.equal([40102, 40103, 40103]);
        await at.restart();
        expect(await ends()).to.equal([40102, 40103, 40103]);
        await at.ask('PUT', `/api/users/${worker}`, { token, body: { disabled: false } });
        expect((await ends())[2]).to.equal(40103);
        for (const junk of ['ptk_', `ptk_${'a'.repeat(43)}`, `ptk_${'a'.repeat(5000)}`]) {
            expect(await code(at.ask('GET', '/api/auth/me', { token: junk }))).to.equal(40101);
        }
    });

    it('needs a fresh session, a name of its own and a time to come; a year is the default', async () => {
        const { data } = await create({ name: 'ci' });
        expect(Date.parse(data.expiresAt) - at.clock.time).to.equal(365 * 24 * 3600_000);
        expect((await create({ name: 'ci' })).data).to.include({ reason: 'CONFLICT', field: 'name' });
        expect(await code(create({ name: 'late', expiresAt: '2020-01-01T00:00:00Z' }))).to.equal(40001);
        expect(await code(create({ name: 'odd', expiresAt: 'tomorrow' }))).to.equal(40001);
        expect(await code(create({ name: 'odd', permissions: ['*'] }))).to.equal(40001);
        at.clock.time += 15 * 60_000;
        expect(await code(create({ name: 'stale' }))).to.equal(40301);
        expect((await at.ask('GET', '/api/auth/tokens', { token })).data).to.have.length(1);
    });
});

describe('POST /api/auth/tickets', () => {
    beforeEach(open);
    afterEach(close);

    const issue = (path: string, by = token): Promise<Answer> =>
        at.ask('POST', '/api/auth/tickets', { token: by, body: { path } });
    const use = async (ticket: string, path: string): Promise<string> => {
        try {
            const caller = await at.auth.authenticator.ticket(ticket, path, { ip: '', userAgent: null });
            return caller.username ?? '';
        } catch (error) {
            return (error as { reason: string }).reason;
        }
    };

    it('opens exactly its path once, within thirty seconds', async () => {
        const {
            data: { ticket }
        } = await issue('/api/things/events?from=1');
        expect(await use(ticket, '/api/things/events?from=1')).to.equal('owner');
        expect(await use(ticket, '/api/things/events?from=1')).to.equal('TOKEN_INVALID');
        const { data: other } = await issue('/api/things/events?from=1');
        expect(await use(other.ticket, '/api/things/events?from=2')).to.equal('TOKEN_INVALID');
        expect(await use(other.ticket, '/api/things/events?from=1')).to.equal('TOKEN_INVALID');
        const { data: late } = await issue('/api/things/events');
        at.clock.time += 30_000;
        expect(await use(late.ticket, '/api/things/events')).to.equal('TOKEN_INVALID');
    });

    it('is given only for what the caller could get, and is worth nothing once the session has ended', async () => {
        expect(await code(issue('/api/nothing'))).to.equal(40400);
        expect(await code(issue('https://evil.example/'))).to.equal(40001);
        expect(await code(issue('/api/things?ticket=x'))).to.equal(40001);
        await at.add('reader', 'viewer');
        const reader = await at.tokenOf('reader');
        expect(await code(issue('/api/things/secret', reader))).to.equal(40300);
        const { data: open } = await issue('/api/things/events', reader);
        await at.ask('POST', '/api/auth/logout', { token: reader });
        expect(await use(open.ticket, '/api/things/events')).to.equal('TOKEN_REVOKED');
        const { data: secret } = await issue('/api/things/secret');
        expect(await use(secret.ticket, '/api/things/secret')).to.equal('owner');
        at.clock.time += 15 * 60_000;
        expect(await code(issue('/api/things/secret'))).to.equal(40301);
    });

    it('stands for the API token that asked, with what that may', async () => {
        const { data: api } = await at.ask('POST', '/api/auth/tokens', {
            token,
            body: { name: 'ci', permissions: ['hosts:read'] }
        });
        const {
            data: { ticket }
        } = await issue('/api/things/events', api.token);
        const caller = await at.auth.authenticator.ticket(ticket, '/api/things/events', {
            ip: '',
            userAgent: null
        });
        expect(caller).to.include({ id, tokenId: api.id, permissions: ['hosts:read'] });
    });
});
