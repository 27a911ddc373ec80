import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

interface Seen {
    readonly event: string;
    readonly id: string;
    readonly data: Readonly<Record<string, unknown>>;
}

interface Listener {
    readonly seen: readonly Seen[];
    close(): void;
}

let panel: TestPanel;

/** Listens as a page does: one request, read as it comes. */
async function listen(query: string, token: string | null, lastEventId?: string): Promise<Listener> {
    const seen: Seen[] = [];
    let isOpen = false;
    let rest = '';
    const asked = request({
        host: '127.0.0.1',
        port: panel.port,
        path: `/api/events${query}`,
        agent: false,
        headers: {
            authorization: `Bearer ${token}`,
            ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
        }
    });
    asked.on('error', () => undefined);
    asked.on('response', (answer) => {
        answer.setEncoding('utf8');
        answer.on('error', () => undefined);
        answer.on('data', (chunk: string) => {
            isOpen = true;
            const parts = `${rest}${chunk}`.split('\n\n');
            rest = parts.pop() ?? '';
            for (const part of parts.filter((each) => !each.startsWith(':'))) {
                const fields = Object.fromEntries(
                    part
                        .split('\n')
                        .map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)])
                ) as Record<string, string>;
                seen.push({
                    event: fields['event'] ?? '',
                    id: fields['id'] ?? '',
                    data: JSON.parse(fields['data'] ?? 'null') as Seen['data']
                });
            }
        });
    });
    asked.end();
    await until(() => isOpen, 'the stream to open');
    return { seen, close: () => void asked.destroy() };
}

describe('GET /api/events', { timeout: 60_000 }, () => {
    before({ timeout: 60_000 }, async () => {
        panel = await startPanel();
    });
    after({ timeout: 60_000 }, () => panel.close());

    it('tells changes to those who may read them, and takes up where a listener left', async () => {
        const [all, some] = [
            await listen('', panel.client.token),
            await listen('?topics=hosts,engine', panel.client.token)
        ];
        const made = await panel.client.post('/api/hosts', {
            domain: 'told.example',
            upstream: '127.0.0.1:9'
        });
        const id = made.data.id as number;
        await until(() => some.seen.length >= 1 && all.seen.length >= 2, 'the change to be told');
        expect(some.seen[0]).to.include({
            event: 'hosts',
            data: { action: 'create', resource: 'hosts', id }
        });
        expect(all.seen.find(({ event }) => event === 'audit')?.data).to.equal({
            action: 'create',
            resource: 'hosts',
            id,
            outcome: 'success',
            username: 'admin'
        });
        some.close();
        all.close();
        expect((await panel.client.put(`/api/hosts/${id}`, { notes: 'seen' })).code).to.equal(0);
        const again = await listen('?topics=hosts', panel.client.token, some.seen[0]?.id);
        await until(() => again.seen.length > 0, 'the change that was missed');
        expect(again.seen[0]?.data).to.equal({ action: 'update', resource: 'hosts', id });
        again.close();
        expect((await panel.client.get('/api/events?topics=weather')).code).to.equal(40001);
        expect((await panel.client.get('/api/events', { token: null })).code).to.equal(40100);
    });

    it('shows nothing that its listener may not read', async () => {
        const role = await panel.client.post('/api/users/roles', {
            name: 'hostreader',
            permissions: ['hosts:read']
        });
        expect(role.code).to.equal(0);
        const token = await panel.tokenOf('hostreader', 'looker');
        const listener = await listen('', token);
        expect((await panel.client.put('/api/settings', { 'panel.stepUpMinutes': 11 })).code).to.equal(0);
        await panel.client.post('/api/hosts', { domain: 'shown.example', upstream: '127.0.0.1:9' });
        await until(() => listener.seen.length > 0, 'the host to be told');
        expect([...new Set(listener.seen.map(({ event }) => event))]).to.equal(['hosts']);
        listener.close();
    });
});
