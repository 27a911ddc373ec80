import { createHmac } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Route } from '../../../core/src/server/http/route.ts';
import { type Answer, type Entrance, openEntrance, password, things } from '../../support/core/entrance.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let at: Entrance;
const open = async (): Promise<void> => {
    at = await openEntrance({ routes: things() });
    await at.add('owner', 'admin');
};
const close = (): Promise<void> => at.remove();
const refresh = (token: string): Promise<Answer> => at.ask('POST', '/api/auth/refresh', { token });
const me = (token: string): Promise<Answer> => at.ask('GET', '/api/auth/me', { token });

describe('POST /api/auth/refresh', () => {
    beforeEach(open);
    afterEach(close);

    it('gives a new pair and spends the old refresh token; one that comes back ends the session', async () => {
        const { data: first } = await at.login('owner', password);
        at.clock.time += 60_000;
        const second = await refresh(first.refreshToken);
        expect(second.status).to.equal(200);
        expect(second.data).to.include(['token', 'expiresAt', 'refreshToken', 'refreshExpiresAt']);
        expect(second.data.refreshToken).not.to.equal(first.refreshToken);
        expect((await me(second.data.token)).code).to.equal(0);
        at.clock.time += 30_000;
        const again = await refresh(first.refreshToken);
        expect([again.status, again.code]).to.equal([401, 40103]);
        expect((await refresh(second.data.refreshToken)).code).to.equal(40103);
        expect((await me(second.data.token)).code).to.equal(40103);
        expect(at.recorded.map(({ action, code }) => [action, code])).to.include([
            ['refresh', 0],
            ['revoke', 40103]
        ]);
    });

    it('gives the same pair again for 30 s, also to two at once and after a restart', async () => {
        const { data } = await at.login('owner', password);
        at.clock.time += 60_000;
        const [one, two] = await Promise.all([refresh(data.refreshToken), refresh(data.refreshToken)]);
        expect([one.code, two.data]).to.equal([0, one.data]);
        at.clock.time += 29_999;
        await at.restart();
        expect((await refresh(data.refreshToken)).data).to.equal(one.data);
        expect((await me(one.data.token)).code).to.equal(0);
        expect(
            at.recorded.flatMap(({ action, after: what }) => (action === 'refresh' ? [what] : []))
        ).to.equal([undefined, { repeated: true }, { repeated: true }]);
        at.clock.time += 1;
        expect((await refresh(data.refreshToken)).code).to.equal(40103);
        expect((await me(one.data.token)).code).to.equal(40103);
    });

    it('ends the session when a token comes back whose successor is spent, however soon', async () => {
        const { data: first } = await at.login('owner', password);
        const { data: second } = await refresh(first.refreshToken);
        const { data: third } = await refresh(second.refreshToken);
        expect((await refresh(second.refreshToken)).data).to.equal(third);
        expect((await refresh(first.refreshToken)).code).to.equal(40103);
        expect((await me(third.token)).code).to.equal(40103);
    });

    it('has rotated before it answers: after a restart the old token is spent and the new one good', async () => {
        const { data } = await at.login('owner', password);
        const next = await refresh(data.refreshToken);
        await at.restart();
        expect((await me(next.data.token)).code).to.equal(0);
        expect((await refresh(next.data.refreshToken)).code).to.equal(0);
        at.clock.time += 30_000;
        expect((await refresh(next.data.refreshToken)).code).to.equal(40103);
    });

    it('takes nothing but a refresh token that lives', async () => {
        const { data } = await at.login('owner', password);
        expect((await at.ask('POST', '/api/auth/refresh')).code).to.equal(40100);
        expect((await refresh(data.token)).code).to.equal(40101);
        expect((await refresh('x.y.z')).code).to.equal(40101);
        expect((await me(data.refreshToken)).code).to.equal(40101);
        at.clock.time += 14 * 24 * 3600_000;
        expect((await refresh(data.refreshToken)).code).to.equal(40102);
        expect(at.refused.map(({ code }) => code)).to.include([40100, 40101, 40102]);
    });

    it('follows the settings of the moment', async () => {
        at.settings['panel.accessTokenMinutes'] = 5;
        at.settings['panel.refreshTokenDays'] = 1;
        const { data } = await at.login('owner', password);
        expect(Date.parse(data.expiresAt) - at.clock.time).to.equal(5 * 60_000);
        at.clock.time += 5 * 60_000;
        expect((await me(data.token)).code).to.equal(40102);
        expect((await refresh(data.refreshToken)).code).to.equal(0);
        at.clock.time += 24 * 3600_000;
        expect((await refresh(data.refreshToken)).code).to.equal(40102);
    });
});

describe('sessions', () => {
    beforeEach(open);
    afterEach(close);

    it('are listed with where they are from, and end one or all but the present', async () => {
        const tokens = [
            await at.tokenOf('owner'),
            await at.tokenOf('owner', { ip: '198.51.100.1' }),
            await at.tokenOf('owner'),
            await at.tokenOf('owner')
        ];
        const [first = '', second = '', third = '', fourth = ''] = tokens;
        const { data: list } = await at.ask('GET', '/api/auth/sessions', { token: first });
        expect(list).to.have.length(4);
        expect(list.map(({ current }: { current: boolean }) => current)).to.equal([
            false,
            false,
            false,
            true
        ]);
        expect(list[2]).to.include({
            ip: '198.51.100.1',
            userAgent: 'test agent',
            createdAt: new Date(at.clock.time).toISOString(),
            lastSeenAt: new Date(at.clock.time).toISOString()
        });
        expect(
            (await at.ask('DELETE', `/api/auth/sessions/${list[2].id}`, { token: first })).data
        ).to.be.null();
        expect((await me(second)).code).to.equal(40103);
        expect((await at.ask('DELETE', `/api/auth/sessions/${list[2].id}`, { token: first })).code).to.equal(
            40400
        );
        await at.ask('DELETE', '/api/auth/sessions', { token: first });
        expect([(await me(first)).code, (await me(third)).code, (await me(fourth)).code]).to.equal([
            0, 40103, 40103
        ]);
        await at.restart();
        expect([(await me(first)).code, (await me(third)).code]).to.equal([0, 40103]);
    });

    it('are for no other user to see or end', async () => {
        await at.add('other', 'admin');
        const mine = await at.tokenOf('owner');
        const theirs = await at.tokenOf('other');
        const {
            data: [session]
        } = await at.ask('GET', '/api/auth/sessions', { token: theirs });
        const foreign = await at.ask('DELETE', `/api/auth/sessions/${session.id}`, { token: mine });
        const absent = await at.ask('DELETE', '/api/auth/sessions/999', { token: mine });
        expect(foreign.code).to.equal(40400);
        expect(foreign.body).to.equal(absent.body);
        expect((await me(theirs)).code).to.equal(0);
    });

    it('end by logout, at once, and their token is refused from then on', async () => {
        const token = await at.tokenOf('owner');
        expect((await at.ask('POST', '/api/auth/logout', { token })).status).to.equal(200);
        expect((await me(token)).code).to.equal(40103);
        expect((await at.ask('POST', '/api/auth/logout', { token })).code).to.equal(40103);
        expect(at.recorded.at(-1)).to.include({ action: 'logout', outcome: 'success' });
    });

    it('are at most a hundred of one account: the one unused for longest ends', async () => {
        const first = await at.tokenOf('owner');
        at.clock.time += 1000;
        for (let more = 0; more < 100; more += 1) {
            await at.tokenOf('owner');
        }
        expect((await me(first)).code).to.equal(40103);
        expect(
            at.store.db.prepare<[], { n: number }>('select count(*) n from auth_sessions').get()?.n
        ).to.equal(100);
    });

    it('are noted as seen to the minute, and keep it over a restart', async () => {
        const token = await at.tokenOf('owner');
        at.clock.time += 90_000;
        await me(token);
        const seen = new Date(at.clock.time).toISOString();
        at.clock.time += 10_000;
        await me(token);
        await at.restart();
        const {
            data: [session]
        } = await at.ask('GET', '/api/auth/sessions', { token });
        expect(session.lastSeenAt).to.equal(seen);
    });

    it('cannot be had by a token that names another session or user', async () => {
        const token = await at.tokenOf('owner');
        const [head = '', body = ''] = token.split('.');
        const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
        const forged = `${head}.${Buffer.from(JSON.stringify({ ...claims, sub: '2' })).toString('base64url')}`;
        expect(
            (await me(`${forged}.${createHmac('sha256', '').update(forged).digest('base64url')}`)).code
        ).to.equal(40101);
    });
});

describe('PanelAuthenticator', () => {
    beforeEach(open);
    afterEach(close);

    it('answers a known token without a promise, and the same caller as long as nothing changed', async () => {
        const token = await at.tokenOf('owner');
        const from = { ip: '203.0.113.7', userAgent: null };
        const first = at.auth.authenticator.bearer(token, from);
        expect(first).not.to.be.instanceof(Promise);
        expect(at.auth.authenticator.bearer(token, from)).to.shallow.equal(first);
        at.clock.time += 15 * 60_000;
        expect(at.auth.authenticator.bearer(token, from)).to.include({ fresh: false });
    });

    it('lets callers through by permission, freshness and role', async () => {
        await at.add('reader', 'viewer');
        await at.add('worker', 'operator');
        const admin = await at.tokenOf('owner');
        const viewer = await at.tokenOf('reader');
        const operator = await at.tokenOf('worker');
        const code = async (
            token: string,
            method: 'GET' | 'POST',
            path: string
        ): Promise<[number, unknown]> => {
            const answer = await at.ask(method, path, { token });
            return [answer.code, answer.data?.permission];
        };
        expect(await code(viewer, 'GET', '/api/things')).to.equal([0, undefined]);
        expect(await code(viewer, 'POST', '/api/things')).to.equal([40300, 'hosts:write']);
        expect(await code(viewer, 'POST', '/api/things/validate')).to.equal([0, undefined]);
        expect(await code(viewer, 'POST', '/api/things/odd')).to.equal([40300, 'hosts:read']);
        expect(await code(operator, 'POST', '/api/things')).to.equal([0, undefined]);
        expect(await code(operator, 'GET', '/api/things/secret')).to.equal([40300, 'hosts:unsafe']);
        expect(await code(admin, 'GET', '/api/things/secret')).to.equal([0, undefined]);
        at.clock.time += 15 * 60_000;
        expect(await code(admin, 'GET', '/api/things/secret')).to.equal([40301, undefined]);
        expect((await at.ask('GET', '/api/things')).code).to.equal(40100);
        expect(
            (await at.ask('GET', '/api/things', { headers: { authorization: 'Basic YTpi' } })).code
        ).to.equal(40100);
    });

    it('tells who watches when the session, the role or the account ends', async () => {
        const route = things().find(({ id }) => id === 'things.events') as Route;
        const admin = await at.tokenOf('owner');
        const watcher = async (
            username: string,
            change: (id: number, token: string) => Promise<unknown>,
            role = 'operator'
        ): Promise<number> => {
            const id = await at.add(username, role);
            const token = await at.tokenOf(username);
            let ended = 0;
            const stop = at.auth.authenticator.onEnd(
                await at.auth.authenticator.bearer(token, { ip: '', userAgent: null }),
                route,
                () => {
                    ended += 1;
                }
            );
            expect(ended).to.equal(0);
            await change(id, token);
            await change(id, token);
            stop();
            return ended;
        };
        expect(await watcher('aaa', (_id, token) => at.ask('POST', '/api/auth/logout', { token }))).to.equal(
            1
        );
        expect(
            await watcher('bbb', (id) =>
                at.ask('PUT', `/api/users/${id}`, { token: admin, body: { disabled: true } })
            )
        ).to.equal(1);
        expect(await watcher('ccc', (id) => at.ask('DELETE', `/api/users/${id}`, { token: admin }))).to.equal(
            1
        );
        expect(
            await watcher('ddd', (id) =>
                at.ask('PUT', `/api/users/${id}`, { token: admin, body: { role: 'viewer' } })
            )
        ).to.equal(1);
        expect(await watcher('eee', async () => undefined)).to.equal(0);
        expect(
            await watcher('ggg', (id) =>
                at.ask('PUT', `/api/users/${id}`, {
                    token: admin,
                    body: { password: 'another mild breeze on friday' }
                })
            )
        ).to.equal(1);
        const { data: made } = await at.ask('POST', '/api/auth/tokens', {
            token: admin,
            body: { name: 'watching', permissions: ['hosts:read'] }
        });
        let revoked = 0;
        at.auth.authenticator.onEnd(
            await at.auth.authenticator.bearer(made.token, { ip: '', userAgent: null }),
            route,
            () => {
                revoked += 1;
            }
        );
        expect(revoked).to.equal(0);
        await at.ask('DELETE', `/api/auth/tokens/${made.id}`, { token: admin });
        expect(revoked).to.equal(1);
        await at.ask('POST', '/api/users/roles', {
            token: admin,
            body: { name: 'watchers', permissions: ['hosts:read'] }
        });
        expect(
            await watcher(
                'fff',
                () => at.ask('PUT', '/api/users/roles/watchers', { token: admin, body: { permissions: [] } }),
                'watchers'
            )
        ).to.equal(1);
    });

    it('keeps an account to me, password and logout while its password must be changed', async () => {
        const id = await at.add('fresh', 'admin');
        await at.ask('PUT', `/api/users/${id}`, {
            token: await at.tokenOf('owner'),
            body: { mustChangePassword: true }
        });
        const { data } = await at.login('fresh', password);
        expect(data.user.mustChangePassword).to.be.true();
        for (const [method, path] of [
            ['GET', '/api/things'],
            ['GET', '/api/users'],
            ['POST', '/api/auth/totp'],
            ['GET', '/api/auth/tokens'],
            ['GET', '/api/auth/sessions'],
            ['POST', '/api/auth/step-up']
        ] as const) {
            expect(
                (
                    await at.ask(method, path, {
                        token: data.token,
                        ...(method === 'POST' ? { body: { password } } : {})
                    })
                ).code,
                path
            ).to.equal(40302);
        }
        expect((await me(data.token)).code).to.equal(0);
        const changed = await at.ask('PUT', '/api/auth/password', {
            token: data.token,
            body: { currentPassword: password, newPassword: 'three green lamps 9' }
        });
        expect(changed.code).to.equal(0);
        expect((await at.ask('GET', '/api/things', { token: data.token })).code).to.equal(0);
    });

    it('keeps an account without second factor to setting one up where that is required', async () => {
        const token = await at.tokenOf('owner');
        at.settings['panel.requireTotp'] = true;
        expect((await at.ask('GET', '/api/things', { token })).code).to.equal(40303);
        expect((await at.ask('GET', '/api/auth/sessions', { token })).code).to.equal(40303);
        expect((await me(token)).code).to.equal(0);
        expect((await at.ask('POST', '/api/auth/totp', { token, body: { password } })).code).to.equal(0);
        expect((await at.ask('POST', '/api/auth/logout', { token })).code).to.equal(0);
    });
});
