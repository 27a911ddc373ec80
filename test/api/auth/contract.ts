/** Sections 2, 3 and 7 of the contract: who gets in, with what, and how far. */
import { createHmac } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { codeOf } from '../../support/core/entrance.ts';
import { type Answer, solve } from '../../support/panel/client.ts';
import { type Consumer, outcome, startConsumer } from '../../support/panel/consumer.ts';
import { adminPassword } from '../../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: Consumer;
/** Added to the clock: a code of the second factor works once, and the next one is half a minute away. */
let later = 0;

before(async () => {
    panel = await startConsumer({ clock: { now: () => Date.now() + later } });
});

after(() => panel?.close());

const halfAMinute = 30_000;
const passwordOf = (username: string): string => `${username} walks along the quay`;
const invalid = [401, 40101, 'TOKEN_INVALID'] as const;
const revoked = [401, 40103, 'TOKEN_REVOKED'] as const;
const forbidden = [403, 40300, 'FORBIDDEN'] as const;
const me = (token: string | null): Promise<Answer> => panel.client.get('/api/auth/me', { token });

async function person(
    username: string,
    role = 'viewer'
): Promise<{
    readonly path: string;
    readonly id: number;
    login(more?: Record<string, string>): Promise<Answer>;
}> {
    const made = await panel.client.post('/api/users', { username, password: passwordOf(username), role });
    expect(made.status, made.text).to.equal(201);
    return {
        path: made.headers.location ?? '',
        id: made.data.id as number,
        login: (more = {}) => panel.client.login(username, passwordOf(username), more)
    };
}

describe('POST /api/auth/login', () => {
    it('reads and spends the challenge at one address, as the official library speaks it', async () => {
        const { data } = await panel.client.get('/api/auth/login', { token: null });
        expect(Object.keys(data as object).sort()).to.equal([
            'algorithm',
            'challenge',
            'maxnumber',
            'salt',
            'signature'
        ]);
        const { data: user } = await panel.client.login('admin', adminPassword);
        expect(Object.keys(user as object)).to.equal([
            'token',
            'expiresAt',
            'refreshToken',
            'refreshExpiresAt',
            'user'
        ]);
        expect(Object.keys(user.user as object)).to.equal([
            'id',
            'username',
            'role',
            'permissions',
            'totpEnabled',
            'mustChangePassword'
        ]);
        expect(Date.parse(user.expiresAt as string) - Date.now()).to.be.within(29 * 60_000, 31 * 60_000);
        expect(Date.parse(user.refreshExpiresAt as string) - Date.now()).to.be.within(
            13.9 * 86_400_000,
            14.1 * 86_400_000
        );
    });

    it('wants a solved one, once; a caller who failed gets a fresh one', async () => {
        const post = (body: object): Promise<Answer> =>
            panel.client.post(
                '/api/auth/login',
                { username: 'admin', password: adminPassword, ...body },
                { token: null }
            );
        const none = await post({});
        expect([...outcome(none), typeof none.data.challenge.challenge]).to.equal([
            401,
            40111,
            'CHALLENGE_REQUIRED',
            'string'
        ]);
        const altcha = solve((await panel.client.get('/api/auth/login', { token: null })).data);
        expect((await post({ altcha })).status).to.equal(200);
        const forged = JSON.parse(Buffer.from(altcha, 'base64').toString()) as Record<string, unknown>;
        for (const wrong of [
            altcha,
            'nonsense',
            Buffer.from(JSON.stringify({ ...forged, signature: 'f'.repeat(64) })).toString('base64')
        ]) {
            const answer = await post({ altcha: wrong });
            expect([...outcome(answer), typeof answer.data.challenge.challenge]).to.equal([
                401,
                40112,
                'CHALLENGE_INVALID',
                'string'
            ]);
        }
        const mine = solve(none.data.challenge);
        await panel.restart();
        expect((await post({ altcha: mine })).status).to.equal(200);
        await panel.restart();
        expect(outcome(await post({ altcha: mine }))).to.equal([401, 40112, 'CHALLENGE_INVALID']);
    });

    it('says the same of an unknown user and a wrong password', async () => {
        await person('known');
        const [wrong, unknown] = [
            await panel.client.login('known', 'not the password'),
            await panel.client.login('unknown', 'not the password')
        ];
        expect(outcome(wrong)).to.equal([401, 40110, 'CREDENTIALS_INVALID']);
        expect(unknown.text).to.equal(wrong.text);
    });
});

describe('bearer tokens', () => {
    it('are pinned to algorithm, key, audience and issuer', async () => {
        const {
            data: { token, refreshToken }
        } = await panel.client.login('admin', adminPassword);
        const [header = '', payload = '', signature = ''] = (token as string).split('.');
        const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
        const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
        const signed = (head: object, body: object, key: string): string => {
            const text = `${part(head)}.${part(body)}`;
            return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
        };
        for (const wrong of [
            'abc',
            'a.b.c',
            `${header}.${payload}.`,
            `${header}.${payload}.${signature.slice(0, -2)}AA`,
            `${part({ alg: 'none', typ: 'at+jwt' })}.${payload}.`,
            signed({ alg: 'HS256', typ: 'at+jwt' }, claims, 'secret'),
            `${header}.${part({ ...claims, sub: '2' })}.${signature}`,
            refreshToken as string
        ]) {
            expect(outcome(await me(wrong)), wrong.slice(0, 20)).to.equal(invalid);
        }
        for (const headers of [
            {},
            { authorization: `Basic ${Buffer.from('admin:x').toString('base64')}` },
            { authorization: 'Bearer' }
        ]) {
            expect(outcome(await panel.client.get('/api/auth/me', { token: null, headers }))).to.equal([
                401,
                40100,
                'UNAUTHENTICATED'
            ]);
        }
        expect(
            outcome(await panel.client.get(`/api/auth/me?access_token=${token as string}`, { token: null }))
        ).to.equal([401, 40100, 'UNAUTHENTICATED']);
    });

    it('are needed by every endpoint but the documented ones', async () => {
        const open: string[] = [];
        for (const [path, item] of Object.entries((panel.document as OpenApiDocument).paths)) {
            for (const [method, operation] of Object.entries(item)) {
                const { code } = await panel.client.call(
                    method.toUpperCase(),
                    path.replace(/\{(\w+)\}/g, '1'),
                    { token: null, ...(method === 'get' ? {} : { body: {} }) }
                );
                if (code !== 40100) {
                    open.push(`${method} ${path}`);
                    expect(operation.security, `${method} ${path}`).to.equal([]);
                }
            }
        }
        expect(open).to.equal([
            'get /healthz',
            'get /readyz',
            'get /api/auth/login',
            'post /api/auth/login',
            'get /.well-known/oauth-protected-resource/{path}',
            'get /.well-known/oauth-authorization-server',
            'post /api/auth/oauth/token',
            'post /api/auth/oauth/revoke',
            'post /api/auth/oauth/register'
        ]);
    });

    it('run out', async () => {
        const {
            data: { token }
        } = await panel.client.login('admin', adminPassword);
        later += 31 * 60_000;
        expect(outcome(await me(token as string))).to.equal([401, 40102, 'TOKEN_EXPIRED']);
        panel.client.token = (await panel.client.login('admin', adminPassword)).data.token as string;
    });
});

describe('POST /api/auth/refresh', () => {
    it('gives a new pair, and the reuse of a spent one ends the session', async () => {
        const { data: first } = await panel.client.login('admin', adminPassword);
        const refresh = (token: unknown): Promise<Answer> =>
            panel.client.post('/api/auth/refresh', undefined, { token: token as string });
        expect(outcome(await refresh(first.token))).to.equal(invalid);
        const { data: second } = await refresh(first.refreshToken);
        expect((await me(second.token as string)).status).to.equal(200);
        const { data: third } = await refresh(second.refreshToken);
        expect(outcome(await refresh(first.refreshToken))).to.equal(revoked);
        expect(outcome(await me(third.token as string))).to.equal(revoked);
        expect(outcome(await refresh(third.refreshToken))).to.equal(revoked);
    });
});

describe('sessions', () => {
    it('are listed, ended one by one, all others at once, and by logout', async () => {
        const { login } = await person('sessions');
        const [one, two, three] = [(await login()).data, (await login()).data, (await login()).data];
        const { data: list } = await panel.client.get('/api/auth/sessions', { token: one.token as string });
        expect((list as { current: boolean }[]).filter(({ current }) => current)).to.have.length(1);
        expect(Object.keys(list[0] as object)).to.equal([
            'id',
            'createdAt',
            'lastSeenAt',
            'expiresAt',
            'ip',
            'userAgent',
            'current'
        ]);
        const other = (list as { id: number; current: boolean }[]).find(({ current }) => !current);
        expect(
            (await panel.client.delete(`/api/auth/sessions/${other?.id}`, { token: one.token as string }))
                .status
        ).to.equal(200);
        expect([outcome(await me(three.token as string)), (await me(two.token as string)).status]).to.equal([
            revoked,
            200
        ]);
        await panel.client.delete('/api/auth/sessions', { token: one.token as string });
        expect([outcome(await me(two.token as string)), (await me(one.token as string)).status]).to.equal([
            revoked,
            200
        ]);
        expect(
            outcome(await panel.client.delete('/api/auth/sessions/9999', { token: one.token as string }))
        ).to.equal([404, 40400, 'NOT_FOUND']);
        await panel.client.post('/api/auth/logout', undefined, { token: one.token as string });
        expect(outcome(await me(one.token as string))).to.equal(revoked);
        expect(
            outcome(
                await panel.client.post('/api/auth/refresh', undefined, { token: one.refreshToken as string })
            )
        ).to.equal(revoked);
    });

    it('end with a new role or password, when the account is disabled, and when it is gone', async () => {
        const { path, login } = await person('ended');
        for (const change of [
            { role: 'operator' },
            { password: 'another walk along the quay' },
            { password: passwordOf('ended') },
            { disabled: true }
        ]) {
            const {
                data: { token }
            } = await login().then(async (answer) =>
                answer.status === 200 ? answer : panel.client.login('ended', 'another walk along the quay')
            );
            expect((await me(token as string)).status).to.equal(200);
            expect((await panel.client.put(path, change)).status).to.equal(200);
            expect(outcome(await me(token as string)), JSON.stringify(change)).to.equal(revoked);
        }
        expect(outcome(await login())).to.equal([401, 40110, 'CREDENTIALS_INVALID']);
        await panel.client.put(path, { disabled: false });
        const {
            data: { token }
        } = await login();
        expect((await panel.client.delete(path)).status).to.equal(200);
        expect(outcome(await me(token as string))).to.equal(revoked);
    });
});

describe('PUT /api/auth/password', () => {
    it('wants the present one and a good new one, and ends the other sessions', async () => {
        const { login } = await person('changes');
        const [own, other] = [(await login()).data.token as string, (await login()).data.token as string];
        const put = (currentPassword: string, newPassword: string): Promise<Answer> =>
            panel.client.put('/api/auth/password', { currentPassword, newPassword }, { token: own });
        expect(outcome(await put('wrong', 'sails past the breakwater'))).to.equal([
            401,
            40110,
            'CREDENTIALS_INVALID'
        ]);
        for (const poor of ['short', 'password123', '1234567890', passwordOf('changes')]) {
            const answer = await put(passwordOf('changes'), poor);
            expect([answer.code, answer.data.errors[0].path], poor).to.equal([40001, 'newPassword']);
        }
        expect((await put(passwordOf('changes'), 'sails past the breakwater')).status).to.equal(200);
        expect([(await me(own)).status, outcome(await me(other))]).to.equal([200, revoked]);
    });

    it('is all that a user who must change it may do', async () => {
        await panel.client.post('/api/users', {
            username: 'newcomer',
            password: passwordOf('newcomer'),
            role: 'admin',
            mustChangePassword: true
        });
        const { data } = await panel.client.login('newcomer', passwordOf('newcomer'));
        expect(data.user.mustChangePassword).to.be.true();
        const token = data.token as string;
        for (const path of ['/api/hosts', '/api/auth/sessions', '/api/openapi.json', '/api/audit']) {
            expect(outcome(await panel.client.get(path, { token })), path).to.equal([
                403,
                40302,
                'PASSWORD_CHANGE_REQUIRED'
            ]);
        }
        expect((await me(token)).status).to.equal(200);
        expect(
            (
                await panel.client.put(
                    '/api/auth/password',
                    { currentPassword: passwordOf('newcomer'), newPassword: 'sails past the breakwater' },
                    { token }
                )
            ).status
        ).to.equal(200);
        expect((await panel.client.get('/api/hosts', { token })).status).to.equal(200);
    });
});

describe('the second factor', () => {
    it('is pending until confirmed, then asked for; a code and a recovery code work once', async () => {
        const { login } = await person('factor');
        const {
            data: { token }
        } = await login();
        const call = (method: string, body: object): Promise<Answer> =>
            panel.client.call(method, '/api/auth/totp', { body, token: token as string });
        const code = (secret: string): string => {
            later += halfAMinute;
            return codeOf(secret, Date.now() + later);
        };
        expect(outcome(await call('POST', { password: 'wrong' }))).to.equal([
            401,
            40110,
            'CREDENTIALS_INVALID'
        ]);
        const {
            data: { secret, uri, qr }
        } = await call('POST', { password: passwordOf('factor') });
        expect([
            (uri as string).startsWith('otpauth://totp/'),
            (qr as string).startsWith('data:image/svg+xml')
        ]).to.equal([true, true]);
        expect((await login()).status).to.equal(200);
        expect(outcome(await call('PUT', { code: '000000' }))).to.equal([401, 40114, 'TOTP_INVALID']);
        const confirmed = await call('PUT', { code: code(secret as string) });
        expect(confirmed.data.recoveryCodes).to.have.length(10);
        const asked = await login();
        expect([...outcome(asked), typeof asked.data.challenge.challenge]).to.equal([
            401,
            40113,
            'TOTP_REQUIRED',
            'string'
        ]);
        const totp = code(secret as string);
        expect([(await login({ totp })).status, outcome(await login({ totp }))]).to.equal([
            200,
            [401, 40114, 'TOTP_INVALID']
        ]);
        const recovery = confirmed.data.recoveryCodes[0] as string;
        expect([(await login({ totp: recovery })).status, outcome(await login({ totp: recovery }))]).to.equal(
            [200, [401, 40114, 'TOTP_INVALID']]
        );
        await call('POST', { password: passwordOf('factor') });
        expect((await login({ totp: code(secret as string) })).status).to.equal(200);
    });

    it('closes its step after five wrong ones, and the right one does not open it', async () => {
        const { login } = await person('closed');
        const {
            data: { token }
        } = await login();
        const {
            data: { secret }
        } = await panel.client.post(
            '/api/auth/totp',
            { password: passwordOf('closed') },
            { token: token as string }
        );
        later += halfAMinute;
        await panel.client.put(
            '/api/auth/totp',
            { code: codeOf(secret as string, Date.now() + later) },
            { token: token as string }
        );
        for (let at = 0; at < 5; at += 1) {
            expect(outcome(await login({ totp: '000000' })), String(at)).to.equal([
                401,
                40114,
                'TOTP_INVALID'
            ]);
        }
        later += halfAMinute;
        const closed = await login({ totp: codeOf(secret as string, Date.now() + later) });
        expect(outcome(closed)).to.equal([429, 42900, 'RATE_LIMITED']);
        expect(Number(closed.headers['retry-after'])).to.be.within(1, 15 * 60);
    });

    it('is all that a user may set up while it is required', async () => {
        const { login } = await person('required');
        const {
            data: { token }
        } = await login();
        await panel.client.put('/api/settings', { 'panel.requireTotp': true });
        try {
            expect(outcome(await panel.client.get('/api/hosts', { token: token as string }))).to.equal([
                403,
                40303,
                'TOTP_SETUP_REQUIRED'
            ]);
            expect((await me(token as string)).status).to.equal(200);
            expect(
                (
                    await panel.client.post(
                        '/api/auth/totp',
                        { password: passwordOf('required') },
                        { token: token as string }
                    )
                ).status
            ).to.equal(200);
        } finally {
            const {
                data: { secret }
            } = await panel.client.post('/api/auth/totp', { password: adminPassword });
            later += halfAMinute;
            const {
                data: { recoveryCodes }
            } = await panel.client.put('/api/auth/totp', {
                code: codeOf(secret as string, Date.now() + later)
            });
            await panel.client.put('/api/settings', { 'panel.requireTotp': null });
            await panel.client.call('DELETE', '/api/auth/totp', {
                body: { password: adminPassword, code: recoveryCodes[0] }
            });
        }
    });
});

describe('API tokens', () => {
    it('are shown once, hold what was given to them, and manage no access', async () => {
        const made = await panel.client.post('/api/auth/tokens', {
            name: 'reader',
            permissions: ['hosts:read']
        });
        const { token, ...rest } = made.data as { token: string };
        const path = made.headers.location ?? '';
        expect((await panel.client.get(path)).data).to.equal(rest);
        expect((await panel.client.get('/api/auth/tokens')).text).not.to.contain(token);
        expect((await panel.client.get('/api/hosts', { token })).status).to.equal(200);
        const denied = await panel.client.post(
            '/api/hosts',
            { domain: 'no.test', upstream: '127.0.0.1:1' },
            { token }
        );
        expect([...outcome(denied), denied.data.permission]).to.equal([...forbidden, 'hosts:write']);
        const self = (await me(token)).data;
        expect([self.permissions, self.token.kind, self.token.name]).to.equal([
            ['hosts:read'],
            'token',
            'reader'
        ]);
        for (const [method, url, body] of [
            ['POST', '/api/auth/tokens', { name: 'x' }],
            ['PUT', '/api/auth/password', { currentPassword: adminPassword, newPassword: 'x' }],
            ['POST', '/api/auth/totp', { password: adminPassword }],
            ['POST', '/api/auth/step-up', { password: adminPassword }]
        ] as const) {
            expect(outcome(await panel.client.call(method, url, { body, token })), url).to.equal(forbidden);
        }
        expect((await panel.client.delete(path)).status).to.equal(200);
        expect(outcome(await me(token))).to.equal(revoked);
    });

    it('hold nothing by default, never more than their owner, and run out', async () => {
        const {
            data: { token: empty }
        } = await panel.client.post('/api/auth/tokens', { name: 'empty' });
        expect(outcome(await panel.client.get('/api/hosts', { token: empty as string }))).to.equal(forbidden);
        const { path, login } = await person('owner', 'operator');
        const {
            data: { token: session }
        } = await login();
        expect(
            outcome(
                await panel.client.post(
                    '/api/auth/tokens',
                    { name: 'more', permissions: ['users:write'] },
                    { token: session as string }
                )
            )
        ).to.equal(forbidden);
        const {
            data: { token }
        } = await panel.client.post(
            '/api/auth/tokens',
            { name: 'writes', permissions: ['hosts:read', 'hosts:write'] },
            { token: session as string }
        );
        await panel.client.put(path, { role: 'viewer' });
        expect((await me(token as string)).data.permissions).to.equal(['hosts:read']);
        await panel.client.put(path, { disabled: true });
        expect(outcome(await me(token as string))).to.equal(revoked);
        const expiresAt = new Date(Date.now() + later + 60_000).toISOString();
        const {
            data: { token: brief }
        } = await panel.client.post('/api/auth/tokens', {
            name: 'brief',
            permissions: ['hosts:read'],
            expiresAt
        });
        later += 61_000;
        expect(outcome(await me(brief as string))).to.equal([401, 40102, 'TOKEN_EXPIRED']);
        expect(
            (
                await panel.client.post('/api/auth/tokens', {
                    name: 'past',
                    expiresAt: '2020-01-01T00:00:00.000Z'
                })
            ).code
        ).to.equal(40001);
    });
});

describe('tickets', () => {
    const ticketFor = async (path: string): Promise<string> =>
        (await panel.client.post('/api/auth/tickets', { path })).data.ticket as string;

    it('stand for the token in one GET of exactly that', async () => {
        const first = await ticketFor('/api/hosts?limit=1');
        const use = (ticket: string, limit = 1): Promise<Answer> =>
            panel.client.get(`/api/hosts?limit=${limit}&ticket=${ticket}`, { token: null });
        expect([(await use(first)).status, outcome(await use(first))]).to.equal([200, invalid]);
        const second = await ticketFor('/api/hosts?limit=1');
        expect([outcome(await use(second, 2)), outcome(await use(second))]).to.equal([invalid, invalid]);
        const third = await ticketFor('/api/hosts');
        expect(outcome(await panel.client.post(`/api/hosts?ticket=${third}`, {}, { token: null }))).to.equal([
            401,
            40100,
            'UNAUTHENTICATED'
        ]);
        expect(outcome(await me(third))).to.equal(invalid);
        const fourth = await ticketFor('/api/hosts?limit=1');
        later += 31_000;
        expect(outcome(await use(fourth))).to.equal(invalid);
    });

    it('are not for what is not there, is elsewhere, or may not be read', async () => {
        expect(outcome(await panel.client.post('/api/auth/tickets', { path: '/api/nope' }))).to.equal([
            404,
            40400,
            'NOT_FOUND'
        ]);
        expect((await panel.client.post('/api/auth/tickets', { path: 'http://x/api/hosts' })).code).to.equal(
            40001
        );
        expect(outcome(await panel.client.post('/api/auth/tickets', { path: '/api/%zz' }))).to.equal([
            400,
            40000,
            'BAD_REQUEST'
        ]);
        const viewer = await panel.tokenOf('viewer');
        expect(
            outcome(
                await panel.client.post(
                    '/api/auth/tickets',
                    { path: '/api/proxyengine/logs' },
                    { token: viewer }
                )
            )
        ).to.equal(forbidden);
    });

    it('end with their session, and are in no log', async () => {
        const {
            data: { token }
        } = await panel.client.login('admin', adminPassword);
        const {
            data: { ticket }
        } = await panel.client.post('/api/auth/tickets', { path: '/api/hosts' }, { token: token as string });
        await panel.client.post('/api/auth/logout', undefined, { token: token as string });
        expect(
            (await panel.client.get(`/api/hosts?ticket=${ticket as string}`, { token: null })).status
        ).to.equal(401);
        expect(panel.lines.join('')).not.to.contain(ticket as string);
    });
});

describe('freshness', () => {
    it('is asked for where authority is handed out, and comes back with a step-up', async () => {
        const {
            data: { token }
        } = await panel.client.login('admin', adminPassword);
        later += 16 * 60_000;
        const role = { name: 'fresh', permissions: ['hosts:read'] };
        const create = (): Promise<Answer> =>
            panel.client.post('/api/users/roles', role, { token: token as string });
        expect(outcome(await create())).to.equal([403, 40301, 'STEP_UP_REQUIRED']);
        expect((await panel.client.get('/api/hosts', { token: token as string })).status).to.equal(200);
        expect(
            outcome(
                await panel.client.post(
                    '/api/auth/step-up',
                    { password: 'wrong' },
                    { token: token as string }
                )
            )
        ).to.equal([401, 40110, 'CREDENTIALS_INVALID']);
        expect(
            (
                await panel.client.post(
                    '/api/auth/step-up',
                    { password: adminPassword },
                    { token: token as string }
                )
            ).status
        ).to.equal(200);
        expect((await create()).status).to.equal(201);
        panel.client.token = token as string;
    });
});

describe('roles', () => {
    it('reach what they say: a viewer reads, and every write names the permission that is missing', async () => {
        const viewer = await panel.tokenOf('viewer');
        const {
            data: { permissions }
        } = await me(viewer);
        for (const [path, item] of Object.entries(panel.document.paths)) {
            for (const [method, operation] of Object.entries(item)) {
                const permission = operation['x-permission'];
                if (
                    typeof permission === 'string' &&
                    permission.includes(':') &&
                    !(permissions as string[]).includes(permission)
                ) {
                    const answer = await panel.client.call(
                        method.toUpperCase(),
                        path.replace(/\{(\w+)\}/g, '1'),
                        { token: viewer, ...(method === 'get' ? {} : { body: {} }) }
                    );
                    expect([...outcome(answer), answer.data.permission], `${method} ${path}`).to.equal([
                        ...forbidden,
                        permission
                    ]);
                }
                if (
                    typeof permission === 'string' &&
                    operation['x-effect'] !== 'read' &&
                    !path.startsWith('/api/auth/') &&
                    !path.startsWith('/api/tasks/')
                ) {
                    expect(
                        (permissions as string[]).includes(permission),
                        `${method} ${path} is open to viewers`
                    ).to.be.false();
                }
            }
        }
    });

    it("of one's own take effect at once, and no user gives more than they have", async () => {
        const role = await panel.client.post('/api/users/roles', {
            name: 'clerk',
            permissions: ['users:read', 'users:write', 'hosts:read']
        });
        const clerk = await person('clerk', 'clerk');
        const {
            data: { token }
        } = await clerk.login();
        const admin = (await panel.client.get('/api/users?q=admin')).data[0].id as number;
        for (const [method, path, body] of [
            ['POST', '/api/users', { username: 'stronger', password: passwordOf('stronger'), role: 'admin' }],
            ['PUT', clerk.path, { role: 'admin' }],
            ['PUT', `/api/users/${admin}`, { password: passwordOf('stolen') }],
            ['PUT', `/api/users/${admin}`, { disabled: true }],
            ['DELETE', `/api/users/${admin}`, undefined],
            ['DELETE', `/api/users/${admin}/sessions`, undefined],
            ['PUT', '/api/users/roles/clerk', { permissions: ['users:write', 'hosts:write'] }],
            ['PUT', '/api/users/roles/viewer', { permissions: [] }]
        ] as const) {
            expect(
                outcome(await panel.client.call(method, path, { body, token: token as string })),
                `${method} ${path}`
            ).to.equal(forbidden);
        }
        expect((await me(panel.client.token)).status).to.equal(200);
        await panel.client.put(role.headers.location ?? '', { permissions: ['hosts:read'] });
        expect(outcome(await panel.client.get('/api/users', { token: token as string }))).to.equal(forbidden);
        const used = await panel.client.delete(role.headers.location ?? '');
        expect([...outcome(used), used.data.by]).to.equal([409, 40901, 'IN_USE', ['clerk']]);
    });
});

describe('/api/users', () => {
    it('keeps names unique whatever their case, and the last enabled admin in place', async () => {
        await person('Somebody');
        const taken = await panel.client.post('/api/users', {
            username: 'SOMEBODY',
            password: passwordOf('other'),
            role: 'viewer'
        });
        expect([...outcome(taken), taken.data.field]).to.equal([409, 40900, 'CONFLICT', 'username']);
        for (const { id } of (
            (await panel.client.get('/api/users')).data as { id: number; role: string; username: string }[]
        ).filter(({ role, username }) => role === 'admin' && username !== 'admin')) {
            await panel.client.delete(`/api/users/${id}`);
        }
        const admin = (await panel.client.get('/api/users?q=admin')).data[0].id as number;
        for (const [method, body] of [
            ['PUT', { role: 'viewer' }],
            ['PUT', { disabled: true }],
            ['DELETE', undefined]
        ] as const) {
            expect(outcome(await panel.client.call(method, `/api/users/${admin}`, { body }))).to.equal([
                409,
                40901,
                'IN_USE'
            ]);
        }
    });

    it('never answers a password or its hash', async () => {
        const { text } = await panel.client.get('/api/users');
        expect(text).not.to.contain('argon2').and.not.to.contain('walks along');
    });
});

describe('throttling', () => {
    it('holds up who guesses, with Retry-After', async () => {
        await person('guessed');
        let answer = await panel.client.login('guessed', 'wrong');
        for (let at = 0; at < 30 && answer.status === 401; at += 1) {
            answer = await panel.client.login('guessed', `wrong ${at}`);
        }
        expect(outcome(answer)).to.equal([429, 42900, 'RATE_LIMITED']);
        expect(Number(answer.headers['retry-after']) >= 1).to.be.true();
    });
});
