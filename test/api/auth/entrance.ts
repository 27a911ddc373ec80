import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { solveChallenge } from 'altcha-lib/v1';

import { createFaultyEngine } from '../../support/engine/faulty.ts';
import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

/** Opens a stream and waits for its head; `ended` resolves when the server has closed it. */
function open(
    port: number,
    path: string
): Promise<{ readonly status: number; readonly ended: Promise<void>; close(): void }> {
    return new Promise((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
            const ended = new Promise<void>((done) => answer.once('close', done));
            answer.resume();
            answer.once('error', () => undefined);
            resolve({ status: answer.statusCode ?? 0, ended, close: () => sent.destroy() });
        });
        sent.once('error', reject);
        sent.end();
    });
}

describe('the entrance of a panel', () => {
    let at: TestPanel;

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine() });
    });
    after(() => at.close());

    it("is passed with ALTCHA's own solver, and a solution is spent also for the panel that starts next", async () => {
        const { data: challenge } = await at.client.get('/api/auth/login', { token: null });
        const solution = await solveChallenge(
            challenge.challenge,
            challenge.salt,
            challenge.algorithm,
            challenge.maxnumber
        ).promise;
        const altcha = Buffer.from(
            JSON.stringify({ ...challenge, number: solution?.number, took: solution?.took })
        ).toString('base64');
        const body = { username: 'admin', password: adminPassword, altcha };
        const first = await at.client.post('/api/auth/login', body, { token: null });
        expect(first.code).to.equal(0);
        await at.restart();
        expect((await at.client.post('/api/auth/login', body, { token: null })).code).to.equal(40112);
        expect((await at.client.get('/api/auth/me', { token: first.data.token })).data.username).to.equal(
            'admin'
        );
    });

    it('puts logins, failures and refusals into the audit log', async () => {
        await at.client.login('admin', 'a wrong password');
        await at.client.get('/api/hosts', { token: 'junk' });
        const { data } = await at.client.get('/api/audit?limit=20');
        const seen = (data as { action: string; code: number }[]).map(
            ({ action, code }) => `${action} ${code}`
        );
        expect(seen).to.include(['login 0', 'login_failed 40110', 'read 40101']);
        expect((await at.client.get('/api/audit/verify')).data).to.include({ holds: true });
    });

    it('opens a stream by a ticket once, and closes it when the session ends', async () => {
        const token = await at.tokenOf('operator');
        const path = '/api/proxyengine/logs?follow=true';
        const { data } = await at.client.post('/api/auth/tickets', { path }, { token });
        const stream = await open(at.port, `${path}&ticket=${data.ticket as string}`);
        expect(stream.status).to.equal(200);
        const again = await open(at.port, `${path}&ticket=${data.ticket as string}`);
        expect(again.status).to.equal(401);
        again.close();
        await at.client.post('/api/auth/logout', undefined, { token });
        await stream.ended;
        expect(at.lines.join('')).not.to.contain(data.ticket);
    });
});
