/** A user with an account and some authority, who wants more of it, or wants it for longer. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../support/engine/faulty.ts';
import type { Answer } from '../support/panel/client.ts';
import { adminPassword, startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const minutes = 60_000;

describe('a member', () => {
    let at: TestPanel;
    let later = 0;
    let clerk = '';
    let clerkId = 0;

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine(), clock: { now: () => Date.now() + later } });
        await at.client.post('/api/users/roles', {
            name: 'clerk',
            permissions: ['users:read', 'users:write', 'hosts:read']
        });
        await at.client.post('/api/users/roles', {
            name: 'strong',
            permissions: ['hosts:read', 'hosts:unsafe']
        });
        clerk = await at.tokenOf('clerk', 'clerk');
        clerkId = (await at.client.get('/api/auth/me', { token: clerk })).data.id as number;
    });
    after(() => at.close());

    const forbidden = (answer: Answer, what: string): void => {
        expect([answer.status, answer.code], `${what}: ${answer.text.slice(0, 200)}`).to.equal([403, 40300]);
    };

    it('gives no user, nor themselves, what they do not have, and does not touch users who have more', async () => {
        const everything = async (): Promise<string> =>
            (await at.client.get('/api/users?limit=100')).text.replace(/"lastLoginAt":"[^"]+"/g, '') +
            (await at.client.get('/api/users/roles')).text;
        const was = await everything();
        const asClerk = { token: clerk };
        const password = 'a new one for the ferry';
        forbidden(
            await at.client.post('/api/users', { username: 'mine', password, role: 'strong' }, asClerk),
            'a new user of a strong role'
        );
        forbidden(
            await at.client.post('/api/users', { username: 'mine', password, role: 'admin' }, asClerk),
            'a new admin'
        );
        forbidden(
            await at.client.put(`/api/users/${clerkId}`, { role: 'strong' }, asClerk),
            'a role for oneself'
        );
        for (const [what, change] of Object.entries({
            password: { password },
            role: { role: 'clerk' },
            name: { username: 'renamed' },
            disabled: { disabled: true },
            lock: { mustChangePassword: true },
            nothing: {}
        })) {
            forbidden(await at.client.put('/api/users/1', change, asClerk), `an admin's ${what}`);
        }
        forbidden(await at.client.delete('/api/users/1', asClerk), 'an admin');
        forbidden(await at.client.delete('/api/users/1/sessions', asClerk), "an admin's sessions");
        forbidden(await at.client.delete('/api/users/1/totp', asClerk), "an admin's second factor");
        forbidden(
            await at.client.post('/api/users/roles', { name: 'more', permissions: ['hosts:write'] }, asClerk),
            'a role with more'
        );
        forbidden(
            await at.client.put(
                '/api/users/roles/clerk',
                { permissions: ['users:write', 'hosts:unsafe'] },
                asClerk
            ),
            "more in one's own role"
        );
        forbidden(
            await at.client.put('/api/users/roles/strong', { description: 'weak' }, asClerk),
            'the text of a strong role'
        );
        forbidden(
            await at.client.put('/api/users/roles/strong', { permissions: [] }, asClerk),
            'less in a strong role'
        );
        forbidden(await at.client.delete('/api/users/roles/strong', asClerk), 'a strong role');
        for (const role of ['viewer', 'operator', 'admin']) {
            forbidden(await at.client.put(`/api/users/roles/${role}`, { permissions: [] }, asClerk), role);
            forbidden(await at.client.delete(`/api/users/roles/${role}`), role);
        }
        forbidden(
            await at.client.post('/api/auth/tokens', { name: 'more', permissions: ['hosts:write'] }, asClerk),
            'a token with more'
        );
        expect(await everything()).to.equal(was);
    });

    it('has no more by an API token than in person, and none of the authority over others', async () => {
        const { data } = await at.client.post(
            '/api/auth/tokens',
            { name: 'all', permissions: ['users:read', 'users:write', 'hosts:read'] },
            { token: clerk }
        );
        const { data: other } = await at.client.post('/api/users', {
            username: 'other',
            password: 'a rope beside the ladder',
            role: 'clerk'
        });
        const asToken = { token: data.token as string };
        forbidden(
            await at.client.post(
                '/api/users',
                { username: 'mine', password: 'a rope beside the ladder', role: 'clerk' },
                asToken
            ),
            'a new user'
        );
        forbidden(
            await at.client.put(`/api/users/${other.id}`, { password: 'a rope beside the ladder' }, asToken),
            'a password'
        );
        forbidden(
            await at.client.put(`/api/users/${clerkId}`, { password: 'a rope beside the ladder' }, asToken),
            "the owner's password"
        );
        forbidden(await at.client.delete(`/api/users/${other.id}/totp`, asToken), 'a second factor');
        forbidden(
            await at.client.post('/api/users/roles', { name: 'r', permissions: [] }, asToken),
            'a role'
        );
        forbidden(
            await at.client.post('/api/auth/tokens', { name: 'next', permissions: [] }, asToken),
            'a token'
        );
        forbidden(
            await at.client.put('/api/auth/password', { currentPassword: 'x', newPassword: 'y' }, asToken),
            'the own password'
        );
        await at.client.put('/api/users/roles/clerk', { permissions: ['users:read'] });
        forbidden(await at.client.get('/api/hosts', asToken), 'what the owner lost');
        expect((await at.client.get('/api/users', asToken)).status).to.equal(200);
        await at.client.put('/api/users/roles/clerk', {
            permissions: ['users:read', 'users:write', 'hosts:read']
        });
    });

    it('finds nothing of another user: no session, no API token', async () => {
        const { data: token } = await at.client.post('/api/auth/tokens', {
            name: 'foreign',
            permissions: ['hosts:read']
        });
        const [session] = (await at.client.get('/api/auth/sessions')).data as { id: number }[];
        for (const id of [token.id, 999_999]) {
            expect([
                (await at.client.get(`/api/auth/tokens/${id}`, { token: clerk })).code,
                (await at.client.delete(`/api/auth/tokens/${id}`, { token: clerk })).code
            ]).to.equal([40400, 40400]);
        }
        expect(
            (await at.client.delete(`/api/auth/sessions/${session?.id ?? 0}`, { token: clerk })).code
        ).to.equal(40400);
        expect((await at.client.get('/api/auth/tokens', { token: clerk })).text).to.not.contain('foreign');
        expect((await at.client.get('/api/hosts', { token: token.token as string })).code).to.equal(0);
        expect((await at.client.get('/api/auth/me')).code).to.equal(0);
    });

    it('does not go on with a token that has expired since it was last used, nor act on authority that is not fresh', async () => {
        const { data } = await at.client.login('admin', adminPassword);
        const token = data.token as string;
        expect((await at.client.get('/api/auth/me', { token })).code).to.equal(0);
        const { data: host } = await at.client.post(
            '/api/hosts',
            {
                domain: 'hidden.test',
                upstream: '127.0.0.1:9',
                headers: { request: [{ op: 'set', name: 'X-Key', value: 'worth hiding' }] }
            },
            { token }
        );
        expect((await at.client.get(`/api/hosts/${host.id}/preview`, { token })).text).to.contain(
            'worth hiding'
        );
        later = 20 * minutes;
        expect(
            (
                await at.client.post(
                    '/api/users',
                    { username: 'late', password: 'a rope beside the ladder', role: 'viewer' },
                    { token }
                )
            ).code
        ).to.equal(40301);
        expect(
            (await at.client.post('/api/users/roles', { name: 'late', permissions: [] }, { token })).code
        ).to.equal(40301);
        expect(
            (
                await at.client.put(
                    `/api/users/${clerkId}`,
                    { password: 'a rope beside the ladder' },
                    { token }
                )
            ).code
        ).to.equal(40301);
        for (const path of [
            '/api/proxyengine/config/desired',
            `/api/hosts/${host.id}/preview`,
            '/api/proxyengine/revisions/1'
        ]) {
            const answer = await at.client.get(path, { token });
            expect(
                [answer.code, answer.text.includes('[masked]'), answer.text.includes('worth hiding')],
                path
            ).to.equal([0, true, false]);
        }
        expect((await at.client.get('/api/auth/me', { token })).code).to.equal(0);
        later = 31 * minutes;
        expect((await at.client.get('/api/auth/me', { token })).code).to.equal(40102);
        later = 0;
    });
});
