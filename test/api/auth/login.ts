import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Answer, codeOf, type Entrance, openEntrance, password } from '../../support/core/entrance.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('POST /api/auth/login', () => {
    let at: Entrance;
    let owner: number;

    beforeEach(async () => {
        at = await openEntrance();
        owner = await at.add('Owner', 'admin');
    });
    afterEach(() => at.remove());

    const secondFactor = async (): Promise<string> => {
        const token = await at.tokenOf('owner');
        const { data } = await at.ask('POST', '/api/auth/totp', { token, body: { password } });
        await at.ask('PUT', '/api/auth/totp', { token, body: { code: codeOf(data.secret, at.clock.time) } });
        at.clock.time += 30_000;
        return data.secret as string;
    };

    it('answers a pair of tokens and the user, whatever the case of the name', async () => {
        const { status, data, headers } = await at.login('OWNER', password);
        expect(status).to.equal(200);
        expect(headers['cache-control']).to.equal('no-store');
        expect(data.user).to.include({
            id: owner,
            username: 'Owner',
            role: 'admin',
            totpEnabled: false,
            mustChangePassword: false
        });
        expect(data.user.permissions).to.include(['hosts:unsafe', 'users:write']);
        expect(Date.parse(data.expiresAt) - at.clock.time).to.equal(30 * 60_000);
        expect(Date.parse(data.refreshExpiresAt) - at.clock.time).to.equal(14 * 24 * 3600_000);
        const [, body] = data.token.split('.') as string[];
        expect(
            Object.keys(JSON.parse(Buffer.from(body ?? '', 'base64url').toString()) as object).sort()
        ).to.equal(['aud', 'exp', 'iat', 'iss', 'jti', 'nbf', 'sid', 'sub']);
        expect(at.recorded.at(-1)).to.include({
            action: 'login',
            outcome: 'success',
            code: 0,
            ip: '203.0.113.7'
        });
        expect(at.recorded.at(-1)?.actor).to.equal({
            id: owner,
            username: 'Owner',
            tokenId: null,
            plugin: null
        });
        expect(JSON.stringify(at.recorded)).not.to.contain(password);
    });

    it('answers the same for an unknown user, a wrong password and a disabled account, after the same number of hashes', async () => {
        await at.add('second', 'admin');
        await at.add('gone', 'viewer');
        const token = await at.tokenOf('owner');
        const {
            data: [gone]
        } = await at.ask('GET', '/api/users?q=gone', { token });
        await at.ask('PUT', `/api/users/${gone.id}`, { token, body: { disabled: true } });
        const seen: { answer: Answer; hashes: number; rows: number }[] = [];
        for (const [username = '', secret = ''] of [
            ['nobody', password],
            ['owner', 'wrong password here'],
            ['gone', password],
            ['gone', 'wrong password here'],
            ['not a name \u0001 at all', 'x']
        ]) {
            const before = { ...at.hashes };
            const rows = at.recorded.length;
            const answer = await at.login(username, secret, { ip: `198.51.${seen.length}.1` });
            seen.push({
                answer,
                hashes: at.hashes.compared - before.compared + at.hashes.made - before.made,
                rows: at.recorded.length - rows
            });
        }
        for (const { answer, hashes, rows } of seen) {
            expect(answer.status).to.equal(401);
            expect(answer.code).to.equal(40110);
            expect(answer.data).to.equal({ reason: 'CREDENTIALS_INVALID' });
            expect(answer.body).to.equal(seen[0]?.answer.body ?? '');
            expect(Object.keys(answer.headers).sort()).to.equal(
                Object.keys(seen[0]?.answer.headers ?? {}).sort()
            );
            expect(hashes).to.equal(1);
            expect(rows).to.equal(1);
        }
        expect(
            at.recorded.slice(-5).map(({ action, code, actor }) => [action, code, actor.username])
        ).to.include([
            ['login_failed', 40110, 'nobody'],
            ['login_failed', 40110, 'gone']
        ]);
        expect(at.refused.filter(({ code }) => code === 40110)).to.be.empty();
    });

    it('asks for the proof of work before it looks at the password, and no field skips it', async () => {
        const before = at.hashes.compared;
        const none = await at.ask('POST', '/api/auth/login', { body: { username: 'owner', password } });
        expect(none.code).to.equal(40111);
        expect(none.data.challenge).to.include(['algorithm', 'challenge', 'maxnumber', 'salt', 'signature']);
        const junk = await at.ask('POST', '/api/auth/login', {
            body: { username: 'owner', password, altcha: 'not base64 at all!' }
        });
        expect(junk.code).to.equal(40112);
        expect(junk.data.challenge.salt).to.contain('?expires=');
        for (const field of ['test', 'debug', 'skipAltcha', 'captcha', 'challenge']) {
            expect(
                (
                    await at.ask('POST', '/api/auth/login', {
                        body: { username: 'owner', password, [field]: true }
                    })
                ).code
            ).to.equal(40001);
        }
        expect(at.hashes.compared).to.equal(before);
        expect(at.refused.map(({ code }) => code)).to.include([40111, 40112]);
        expect(at.recorded).to.be.empty();
    });

    it('takes a solution once: the second login with it is refused, also after a restart', async () => {
        const altcha = await at.solve();
        expect(
            (
                await at.ask('POST', '/api/auth/login', {
                    body: { username: 'owner', password: 'wrong password', altcha }
                })
            ).code
        ).to.equal(40110);
        expect(
            (await at.ask('POST', '/api/auth/login', { body: { username: 'owner', password, altcha } })).code
        ).to.equal(40112);
        await at.restart();
        expect(
            (await at.ask('POST', '/api/auth/login', { body: { username: 'owner', password, altcha } })).code
        ).to.equal(40112);
    });

    it('asks for the second factor once the password is right, and takes a code once ever', async () => {
        const secret = await secondFactor();
        const missing = await at.login('owner', password);
        expect(missing.code).to.equal(40113);
        expect(missing.data.challenge.maxnumber).to.equal(50);
        expect(
            (await at.login('owner', 'wrong password', { totp: codeOf(secret, at.clock.time) })).code
        ).to.equal(40110);
        const totp = codeOf(secret, at.clock.time);
        expect((await at.login('owner', password, { totp })).code).to.equal(0);
        const again = await at.login('owner', password, { totp });
        expect(again.code).to.equal(40114);
        expect(again.data.challenge.challenge).to.match(/^[0-9a-f]{64}$/);
        await at.restart();
        expect((await at.login('owner', password, { totp })).code).to.equal(40114);
        at.clock.time -= 60_000;
        expect((await at.login('owner', password, { totp: codeOf(secret, at.clock.time) })).code).to.equal(
            40114
        );
    });

    it('gives one session for one code, however many ask at once', async () => {
        const secret = await secondFactor();
        const totp = codeOf(secret, at.clock.time);
        const answers = await Promise.all(
            Array.from({ length: 4 }, () => at.login('owner', password, { totp }))
        );
        expect(answers.map(({ code }) => code).sort()).to.equal([0, 40114, 40114, 40114]);
    });

    it('closes the second step for a quarter of an hour after five wrong codes, from wherever they come', async () => {
        const secret = await secondFactor();
        for (let attempt = 0; attempt < 5; attempt += 1) {
            expect(
                (await at.login('owner', password, { totp: '000000', ip: `198.51.100.${attempt}` })).code
            ).to.equal(40114);
        }
        const closed = await at.login('owner', password, {
            totp: codeOf(secret, at.clock.time),
            ip: '192.0.2.1'
        });
        expect(closed.code).to.equal(42900);
        expect(Number(closed.headers['retry-after'])).to.equal(900);
        expect(at.recorded.filter(({ action }) => action === 'lockout').map(({ after }) => after)).to.include(
            { closed: ['second step'] }
        );
        await at.restart();
        expect(
            (await at.login('owner', password, { totp: codeOf(secret, at.clock.time), ip: '192.0.2.1' })).code
        ).to.equal(42900);
        expect((await at.login('owner', 'wrong password', { ip: '192.0.2.1' })).code).to.equal(40110);
        at.clock.time += 901_000;
        expect(
            (await at.login('owner', password, { totp: codeOf(secret, at.clock.time), ip: '192.0.2.1' })).code
        ).to.equal(0);
    });

    it('slows an account down after five failures, tells how long, and a restart changes nothing', async () => {
        for (let attempt = 0; attempt < 5; attempt += 1) {
            expect((await at.login('owner', 'wrong password', { ip: `198.51.${attempt}.1` })).code).to.equal(
                40110
            );
        }
        const slow = await at.login('owner', password, { ip: '192.0.2.1' });
        expect(slow.code).to.equal(42900);
        expect(slow.data.reason).to.equal('RATE_LIMITED');
        expect(slow.headers['retry-after']).to.equal('60');
        await at.restart();
        expect((await at.login('owner', password, { ip: '192.0.2.1' })).code).to.equal(42900);
        const unknown = await at.login('nobody', password, { ip: '192.0.2.1' });
        expect(unknown.code).to.equal(40110);
        at.clock.time += 60_001;
        expect((await at.login('owner', 'wrong password', { ip: '192.0.2.1' })).code).to.equal(40110);
        expect((await at.login('owner', password, { ip: '192.0.2.1' })).code).to.equal(42900);
        at.clock.time += 60_001;
        expect((await at.login('owner', password, { ip: '192.0.2.1' })).code).to.equal(0);
    });

    it('does not let strangers keep the owner out at home', async () => {
        expect((await at.login('owner', password, { ip: '203.0.113.7' })).code).to.equal(0);
        for (let attempt = 0; attempt < 5; attempt += 1) {
            await at.login('owner', 'wrong password', { ip: `198.51.${attempt}.1` });
        }
        expect((await at.login('owner', password, { ip: '192.0.2.1' })).code).to.equal(42900);
        expect((await at.login('owner', password, { ip: '203.0.113.99' })).code).to.equal(0);
    });

    it('slows a network down that tries many names, IPv6 by /64', async () => {
        await at.remove();
        at = await openEntrance({ limits: { networkSteps: [{ failures: 6, seconds: 60 }] } });
        for (let attempt = 0; attempt < 6; attempt += 1) {
            expect(
                (await at.login(`name${attempt}`, 'wrong password', { ip: `2001:db8:0:1::${attempt}` })).code
            ).to.equal(40110);
        }
        expect((await at.login('another', 'wrong password', { ip: '2001:db8:0:1:ffff::1' })).code).to.equal(
            42900
        );
        expect((await at.login('another', 'wrong password', { ip: '2001:db8:0:2::1' })).code).to.equal(40110);
    });

    it('lets only a burst of guesses through when they come at the same time', async () => {
        const solved = await Promise.all(Array.from({ length: 40 }, () => at.solve()));
        const answers = await Promise.all(
            solved.map((altcha, index) =>
                at.ask('POST', '/api/auth/login', {
                    body: { username: 'owner', password: 'wrong password', altcha },
                    ip: `198.51.${index}.1`
                })
            )
        );
        expect(answers.filter(({ code }) => code === 40110).length).to.be.at.most(20);
        const later = await at.login('owner', password, { ip: '192.0.2.1' });
        expect(later.headers['retry-after']).to.equal('3600');
    });

    it('lets sixteen logins of one account in at once', async () => {
        const solved = await Promise.all(Array.from({ length: 16 }, () => at.solve()));
        const answers = await Promise.all(
            solved.map((altcha) =>
                at.ask('POST', '/api/auth/login', { body: { username: 'owner', password, altcha } })
            )
        );
        expect(answers.map(({ code }) => code)).to.equal(Array.from({ length: 16 }, () => 0));
        expect(new Set(answers.map(({ data }) => data.token)).size).to.equal(16);
    });

    it('refuses a body of another shape with everything that is wrong', async () => {
        const { code, data } = await at.ask('POST', '/api/auth/login', {
            body: { username: 5, password: true, totp: 123456 }
        });
        expect(code).to.equal(40001);
        expect(data.errors.map(({ path }: { path: string }) => path).sort()).to.equal([
            'password',
            'totp',
            'username'
        ]);
    });

    it('logs no password, no token and no code', async () => {
        const secret = await secondFactor();
        const { data } = await at.login('owner', password, { totp: codeOf(secret, at.clock.time) });
        const rows = JSON.stringify([at.recorded, at.refused, at.store.lines]);
        for (const canary of [password, data.token, data.refreshToken, secret]) {
            expect(rows).not.to.contain(canary);
        }
    });
});
