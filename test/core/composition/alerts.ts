import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine, type FaultyEngine } from '../../support/engine/faulty.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('sendAlerts', () => {
    let at: TestPanel;
    let driver: FaultyEngine;
    let receiver: Server;
    const heard: { type: string; data: { title: string } }[] = [];

    before(async () => {
        receiver = createServer((request, answer) => {
            let text = '';
            request.on('data', (chunk: Buffer) => {
                text += chunk.toString();
            });
            request.on('end', () => {
                heard.push(JSON.parse(text) as (typeof heard)[number]);
                answer.end();
            });
        });
        await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
        driver = createFaultyEngine();
        at = await startPanel({ driver });
        await at.client.put('/api/settings', { 'panel.outboundAllow': ['127.0.0.0/8'] });
        const made = await at.client.post('/api/settings/channels', {
            name: 'all',
            type: 'webhook',
            url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
            events: ['*']
        });
        expect(made.status, made.text).to.equal(201);
    });
    after(async () => {
        await at.close();
        receiver.close();
    });

    const event = (name: string): Promise<unknown> =>
        until(
            () => heard.find(({ type }) => type === name) ?? null,
            `the notification ${name}; heard ${heard.map(({ type }) => type).join(', ')}`
        );

    it('tells of a login from a new address, of a lock-out and of a second factor that changed', async () => {
        await at.tokenOf('viewer', 'newcomer');
        await event('auth.newAddress');
        for (let attempt = 0; attempt < 6; attempt += 1) {
            await at.client.login('newcomer', 'not the password');
        }
        await event('auth.lockout');
        expect(JSON.stringify(heard)).to.not.contain('not the password');
    });

    it('tells when the engine refuses', async () => {
        driver.next('load', { reject: 'no such handler' });
        await at.client.post('/api/hosts', {
            domain: 'a.example',
            upstream: '127.0.0.1:9',
            compression: true
        });
        await event('engine.failed');
    });

    it('leaves it to the health of the panel that the engine is gone, until it is back', async () => {
        const health = async (): Promise<unknown> => (await at.client.get('/api/health')).data;
        expect(await health()).to.equal({ status: 'ok', problems: [] });
        driver.crash('out of memory');
        expect(await health()).to.equal({
            status: 'degraded',
            problems: ['The proxy engine: out of memory']
        });
        driver.recover();
        await until(
            async () => ((await health()) as { status: string }).status === 'ok',
            'the engine to be well again'
        );
    });
});
