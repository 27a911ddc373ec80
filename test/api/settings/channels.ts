import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { newSecret, readSecret, sign } from '../../../core/src/features/notifications/delivery/webhook.ts';
import { notificationRoutes } from '../../../core/src/features/notifications/routes.ts';
import { createGateway, type Gateway } from '../../../core/src/server/gateway/gateway.ts';
import { createHttpServer } from '../../../core/src/server/http/server.ts';
import { caller, createTestPorts, type TestPorts } from '../../support/core/http-ports.ts';
import { type Notifying, openNotifying } from '../../support/core/notifying.ts';
import { type Answer, Client } from '../../support/panel/client.ts';
import { openMailServer } from '../../support/servers/mail.ts';
import { openReceiver, type Receiver, verifies } from '../../support/servers/webhooks.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const base = '/api/settings/channels';
const secret = newSecret();
let rig: Notifying;
let ports: TestPorts;
let gateway: Gateway;
let client: Client;
let receiver: Receiver;

beforeEach(async () => {
    receiver = await openReceiver();
    rig = await openNotifying();
    const plain = createTestPorts();
    const callers = {
        admin: caller('admin', ['settings:read', 'settings:write']),
        viewer: caller('viewer', ['settings:read']),
        nobody: caller('nobody', [])
    };
    ports = {
        ...plain,
        authenticator: {
            ...plain.authenticator,
            bearer: (token, from) =>
                callers[token as keyof typeof callers] ?? plain.authenticator.bearer('', from)
        }
    };
    gateway = await createGateway({
        core: createHttpServer({
            name: 'core',
            prefix: '',
            ports,
            routes: notificationRoutes(rig.notifications, () => ['tea', 'cronjob'])
        }),
        log: rig.store.log,
        drainMs: 1_000
    });
    client = new Client((await gateway.listen('127.0.0.1', 0)).port);
    client.token = 'admin';
});

afterEach(async () => {
    await gateway.close();
    await rig.close();
    await receiver.close();
});

const webhook = (more: object = {}): Promise<Answer> =>
    client.post(base, { name: 'ops', type: 'webhook', url: receiver.url, secret, ...more });
const mail = { name: 'box', type: 'email', host: 'mail.example', from: 'a@b.example', to: ['c@d.example'] };
const paths = (answer: Answer): string[] =>
    (answer.data.errors as { path: string }[]).map(({ path }) => path).sort();

describe('POST /api/settings/channels', () => {
    it('makes a webhook whose secret can never be read again', async () => {
        const made = await webhook({ events: ['certificate.*', 'engine.failed'] });
        expect(made.status).to.equal(201);
        expect(made.headers).to.include({ location: `${base}/1`, etag: '"1"' });
        expect(made.data).to.include({
            id: 1,
            name: 'ops',
            type: 'webhook',
            url: new URL(receiver.url).origin,
            events: ['certificate.*', 'engine.failed'],
            enabled: true,
            version: 1
        });
        expect((await client.get(`${base}/1`)).data).to.equal(made.data);
        expect((await client.get(base)).data).to.equal([made.data]);
        const texts = [
            made.text,
            (await client.get(base)).text,
            JSON.stringify(ports.recorded),
            rig.store.lines.join('')
        ];
        await rig.store.db
            .write(async (tx) => {
                await tx.em.execute('pragma wal_checkpoint', [], 'run');
            })
            .catch(() => undefined);
        for (const text of [
            ...texts,
            readFileSync(rig.store.file, 'latin1'),
            readFileSync(`${rig.store.file}-wal`, 'latin1')
        ]) {
            expect(text).not.to.contain(secret.slice(6));
        }
        expect(ports.recorded[0]).to.include({
            action: 'create',
            resource: 'channels',
            resourceId: 1,
            outcome: 'success'
        });
    });

    it('makes a secret where none is given, and shows it once', async () => {
        const { data, status } = await webhook({ secret: undefined });
        expect(status).to.equal(201);
        expect(readSecret(data.secret as string)).to.equal(data.secret);
        expect((await client.get(`${base}/1`)).data).not.to.include('secret');
        expect(JSON.stringify(ports.recorded)).not.to.contain((data.secret as string).slice(6));
        expect((await client.post(`${base}/1/test`)).data.state).to.equal('delivered');
        expect(await verifies(data.secret as string, receiver.received[0])).to.be.true();
    });

    it('makes an e-mail channel with the usual ports', async () => {
        const { data } = await client.post(base, mail);
        expect(data).to.include({
            type: 'email',
            host: 'mail.example',
            port: 587,
            security: 'starttls',
            username: null,
            passwordSet: false,
            from: 'a@b.example',
            to: ['c@d.example'],
            events: ['*']
        });
        expect((await client.post(base, { ...mail, security: 'tls' })).data.port).to.equal(465);
        expect((await client.post(base, { ...mail, security: 'none' })).data.port).to.equal(25);
        expect(
            (
                await client.post(base, {
                    ...mail,
                    security: 'none',
                    port: 2525,
                    username: 'u',
                    password: 'canary-password'
                })
            ).data
        ).to.include({ port: 2525, username: 'u', passwordSet: true });
        expect((await client.get(base)).text).not.to.contain('canary');
    });

    it('refuses everything else, with all that is wrong, and makes nothing', async () => {
        const cases: readonly (readonly [object, readonly string[]])[] = [
            [{}, ['name', 'type']],
            [{ name: 'a', type: 'pager' }, ['type']],
            [{ name: 'a', type: 'webhook' }, ['url']],
            [
                { name: 'a', type: 'webhook', url: 'ftp://x/', secret: 'short', host: 'h', password: 'p' },
                ['host', 'password', 'secret', 'url']
            ],
            [{ name: 'a', type: 'webhook', url: 'https://user:pass@x.example/' }, ['url']],
            [{ name: 'a', type: 'webhook', url: 'nothing' }, ['url']],
            [
                {
                    name: 'a',
                    type: 'webhook',
                    url: receiver.url,
                    secret: `whsec_${Buffer.alloc(23).toString('base64')}`
                },
                ['secret']
            ],
            [
                {
                    name: 'a',
                    type: 'webhook',
                    url: receiver.url,
                    secret: `whsec_${Buffer.alloc(65).toString('base64')}`
                },
                ['secret']
            ],
            [{ name: 'a', type: 'webhook', url: receiver.url, events: [] }, ['events']],
            [
                { name: 'a', type: 'webhook', url: receiver.url, events: ['a b', '*.x'] },
                ['events.0', 'events.1']
            ],
            [{ name: 'a', type: 'webhook', url: receiver.url, enabled: 'true' }, ['enabled']],
            [{ name: 'a', type: 'webhook', url: receiver.url, colour: 1 }, ['colour']],
            [{ name: 'a', type: 'email' }, ['from', 'host', 'to']],
            [{ ...mail, url: receiver.url, secret }, ['secret', 'url']],
            [{ ...mail, host: 'a b' }, ['host']],
            [{ ...mail, host: 'mail.example/x' }, ['host']],
            [{ ...mail, from: 'a@b\r\nBcc: x@y' }, ['from']],
            [{ ...mail, to: ['a@b', 'x\r\ny@z'] }, ['to.1']],
            [{ ...mail, to: [] }, ['to']],
            [{ ...mail, port: 0 }, ['port']],
            [{ ...mail, security: 'ssl' }, ['security']],
            [{ ...mail, username: 'u' }, ['password']],
            [{ ...mail, password: 'p' }, ['username']]
        ];
        for (const [body, wrong] of cases) {
            const answer = await client.post(base, body);
            expect([answer.code, paths(answer)], JSON.stringify(body)).to.equal([40001, [...wrong]]);
        }
        expect((await client.get(base)).data).to.equal([]);
    });

    it('is for those with the permission', async () => {
        await webhook();
        expect((await client.post(base, {}, { token: 'viewer' })).code).to.equal(40300);
        expect((await client.put(`${base}/1`, {}, { token: 'viewer' })).code).to.equal(40300);
        expect((await client.delete(`${base}/1`, { token: 'viewer' })).code).to.equal(40300);
        expect((await client.post(`${base}/1/test`, undefined, { token: 'viewer' })).code).to.equal(40300);
        expect(
            (await client.post(`${base}/1/deliveries/1/replay`, undefined, { token: 'viewer' })).code
        ).to.equal(40300);
        expect((await client.get(base, { token: 'viewer' })).status).to.equal(200);
        expect((await client.get(base, { token: 'nobody' })).code).to.equal(40300);
        expect((await client.get(`${base}/1/deliveries`, { token: 'nobody' })).code).to.equal(40300);
        expect(receiver.received).to.be.empty();
    });

    it('stops at a hundred', async () => {
        const answers = await Promise.all(Array.from({ length: 105 }, () => webhook()));
        expect(answers.filter(({ status }) => status === 201)).to.have.length(100);
        expect(answers.filter(({ code }) => code === 40001)).to.have.length(5);
    });
});

describe('GET /api/settings/channels/events', () => {
    it('names what a channel can be told of, and each of it is taken', async () => {
        const { data } = await client.get(`${base}/events`);
        const events = (data as { name: string }[]).map(({ name }) => name);
        expect(events).to.include(['certificate.expiring', 'engine.failed', 'plugin.failed']);
        expect(events.slice(-2)).to.equal(['cronjob.*', 'tea.*']);
        const made = await client.post(base, { name: 'all', type: 'webhook', url: receiver.url, events });
        expect([made.status, (made.data as { events: string[] }).events]).to.equal([201, events]);
        expect((await client.get(`${base}/events`, { token: 'nobody' })).status).to.equal(403);
    });
});

describe('PUT /api/settings/channels/{id}', () => {
    it('merges, counts up, and takes back what it gave', async () => {
        const { data: made } = await webhook();
        const { data, headers } = await client.put(`${base}/1`, { name: 'night' });
        expect(data).to.equal({ ...made, name: 'night', version: 2, updatedAt: data.updatedAt });
        expect(headers['etag']).to.equal('"2"');
        expect((await client.put(`${base}/1`, data)).data).to.equal(data);
        expect((await client.put(`${base}/1`, { enabled: false, events: ['a.b'] })).data).to.include({
            enabled: false,
            events: ['a.b'],
            name: 'night',
            version: 3
        });
        expect((await client.post(`${base}/1/test`)).data.state).to.equal('delivered');
        expect(await verifies(secret, receiver.received[0])).to.be.true();
        const other = newSecret();
        expect((await client.put(`${base}/1`, { secret: other })).data).to.include({ version: 4 });
        await client.post(`${base}/1/test`);
        expect([
            await verifies(secret, receiver.received[1]),
            await verifies(other, receiver.received[1])
        ]).to.equal([false, true]);
    });

    it('shows of the address of a webhook its origin alone, and keeps the rest when that is sent back', async () => {
        const url = `${new URL(receiver.url).origin}/services/canary-path?key=canary-query`;
        const { origin } = new URL(url);
        const made = await webhook({ url });
        expect(made.data.url).to.equal(origin);
        const changed = await client.put(`${base}/1`, { ...made.data, name: 'renamed' });
        expect(changed.data).to.include({ name: 'renamed', url: origin, version: 2 });
        expect((await client.put(`${base}/1`, changed.data)).data.version, 'nothing changed').to.equal(2);
        await client.post(`${base}/1/test`);
        expect(receiver.received.at(-1)?.path).to.equal('/services/canary-path?key=canary-query');
        const moved = await client.put(`${base}/1`, { url: `${new URL(receiver.url).origin}/canary-other` });
        expect(moved.data).to.include({ url: origin, version: 3 });
        await client.post(`${base}/1/test`);
        expect(receiver.received.at(-1)?.path).to.equal('/canary-other');
        const rows = await rig.store.db.read((em) =>
            em.execute('select fields, sealed from notification_channel', [], 'all')
        );
        for (const text of [
            ...[made, changed, moved, await client.get(base)].map((answer) => answer.text),
            JSON.stringify(ports.recorded),
            rig.store.lines.join(''),
            JSON.stringify(rows)
        ]) {
            expect(text).to.not.include('canary');
        }
        await client.delete(`${base}/1`);
        expect(JSON.stringify(ports.recorded)).to.not.include('canary');
    });

    it('refuses a version that is not the present one', async () => {
        await webhook();
        await client.put(`${base}/1`, { name: 'b' });
        for (const stale of [
            { headers: { 'if-match': '"1"' }, body: { name: 'c' } },
            { headers: {}, body: { name: 'c', version: 1 } }
        ]) {
            const answer = await client.put(`${base}/1`, stale.body, { headers: stale.headers });
            expect([answer.code, answer.data.version]).to.equal([41200, 2]);
        }
        expect((await client.delete(`${base}/1`, { headers: { 'if-match': '"1"' } })).code).to.equal(41200);
        const raced = await Promise.all(
            Array.from({ length: 8 }, (_, at) =>
                client.put(`${base}/1`, { name: `n${at}` }, { headers: { 'if-match': '"2"' } })
            )
        );
        expect(raced.filter(({ status }) => status === 200)).to.have.length(1);
        expect((await client.get(`${base}/1`)).data.version).to.equal(3);
    });

    it('does not change a type, nor take the fields of another', async () => {
        await webhook();
        expect(paths(await client.put(`${base}/1`, { type: 'email', host: 'h.example' }))).to.equal([
            'host',
            'type'
        ]);
        expect(paths(await client.put(`${base}/1`, { url: null, secret: null }))).to.equal(['secret', 'url']);
        expect((await client.get(`${base}/1`)).data.version).to.equal(1);
        expect((await client.put(`${base}/9`, { name: 'x' })).code).to.equal(40400);
    });

    it('does not let a password out to another server', async () => {
        await client.post(base, { ...mail, username: 'u', password: 'canary-password' });
        expect(paths(await client.put(`${base}/1`, { host: 'evil.example' }))).to.equal(['password']);
        expect(paths(await client.put(`${base}/1`, { security: 'none' }))).to.equal(['password']);
        expect((await client.put(`${base}/1`, { host: 'other.example', password: 'new' })).data).to.include({
            host: 'other.example',
            passwordSet: true
        });
        expect((await client.put(`${base}/1`, { security: 'tls' })).data).to.include({
            security: 'tls',
            port: 465,
            passwordSet: true
        });
        expect((await client.put(`${base}/1`, { username: null, host: 'free.example' })).data).to.include({
            username: null,
            passwordSet: false,
            host: 'free.example'
        });
    });
});

describe('DELETE /api/settings/channels/{id}', () => {
    it('removes a channel with its deliveries, and gives its number to no other', async () => {
        await webhook();
        await client.post(`${base}/1/test`);
        expect((await client.delete(`${base}/1`)).data).to.be.null();
        expect((await client.get(`${base}/1`)).code).to.equal(40400);
        expect((await client.get(`${base}/1/deliveries`)).code).to.equal(40400);
        expect(
            rig.store.db.prepare<[], { n: number }>('select count(*) as n from notification_delivery').get()
                ?.n
        ).to.equal(0);
        expect((await webhook()).data.id).to.equal(2);
        expect(ports.recorded.map((each) => each.action)).to.equal(['create', 'run', 'delete', 'create']);
    });

    it('may come in the middle of an attempt', async () => {
        await webhook();
        let answer: (() => void) | null = null;
        receiver.answer = (response) => {
            answer = () => void response.end();
        };
        rig.notifications.notify({ event: 'a.b', severity: 'info', title: 'T' });
        const end = await until(() => answer);
        expect((await client.delete(`${base}/1`)).status).to.equal(200);
        end();
        await until(() => receiver.received.length === 1);
        expect((await client.get(base)).data).to.equal([]);
        await rig.notifications.close();
        expect(rig.store.lines.filter((line) => line.includes('"level":"error"'))).to.be.empty();
    });
});

describe('POST /api/settings/channels/{id}/test', () => {
    it('says how it went, also when it did not go well, and tries once', async () => {
        await webhook({ enabled: false });
        expect((await client.post(`${base}/1/test`)).data).to.include({
            n: 1,
            event: 'notification.test',
            state: 'delivered',
            attempts: 1,
            status: 204,
            error: null
        });
        receiver.answer = (response) => void response.writeHead(500).end('broken');
        const { status, data } = await client.post(`${base}/1/test`);
        expect(status).to.equal(200);
        expect(data).to.include({
            n: 2,
            state: 'failed',
            attempts: 1,
            status: 500,
            error: 'The receiver answers 500',
            response: 'broken',
            nextAttemptAt: null
        });
        expect((await client.get(`${base}/1/deliveries`)).data.map(({ n }: { n: number }) => n)).to.equal([
            2, 1
        ]);
        expect(receiver.received).to.have.length(2);
        expect((await client.post(`${base}/7/test`)).code).to.equal(40400);
    });

    it('sends a mail', async () => {
        const server = await openMailServer({ security: 'none', account: ['panel', 'right'] });
        try {
            await client.post(base, {
                ...mail,
                host: '127.0.0.1',
                port: server.port,
                security: 'none',
                username: 'panel',
                password: 'wrong-canary'
            });
            const { text, data } = await client.post(`${base}/1/test`);
            expect(data).to.include({ state: 'failed', status: 535 });
            expect(text).not.to.contain('canary');
            await client.put(`${base}/1`, { password: 'right' });
            expect((await client.post(`${base}/1/test`)).data).to.include({
                state: 'delivered',
                status: 250
            });
            expect(server.mails[0]?.text).to.contain('Subject: [Portico] Test of the channel box');
        } finally {
            await server.close();
        }
    });
});

describe('GET /api/settings/channels/{id}/deliveries', () => {
    it('pages, newest first, and filters', async () => {
        await webhook();
        for (let count = 1; count <= 5; count += 1) {
            receiver.answer = (response) => void response.writeHead(count === 3 ? 500 : 200).end();
            await client.post(`${base}/1/test`);
        }
        const first = await client.get(`${base}/1/deliveries?limit=2`);
        expect(first.data.map(({ n }: { n: number }) => n)).to.equal([5, 4]);
        const next = /<([^>]+)>; rel="next"/.exec(String(first.headers['link']))?.[1] ?? '';
        const second = await client.get(next);
        expect(second.data.map(({ n }: { n: number }) => n)).to.equal([3, 2]);
        expect(
            (await client.get(`${base}/1/deliveries?state=failed`)).data.map(({ n }: { n: number }) => n)
        ).to.equal([3]);
        for (const query of ['limit=0', 'limit=501', 'state=x', 'cursor=x', 'colour=1']) {
            expect((await client.get(`${base}/1/deliveries?${query}`)).code, query).to.equal(40001);
        }
        expect(first.text).not.to.contain('body');
    });
});

describe('POST /api/settings/channels/{id}/deliveries/{n}/replay', () => {
    it('sends the same message under the same id again', async () => {
        await webhook();
        rig.notifications.notify({ event: 'a.b', severity: 'info', title: 'T' });
        await until(async () => (await client.get(`${base}/1/deliveries`)).data[0]?.state === 'delivered');
        const { status, data } = await client.post(`${base}/1/deliveries/1/replay`);
        expect(status).to.equal(200);
        expect(data).to.include({ n: 2, state: 'pending', replayOf: 1, event: 'a.b' });
        await until(() => receiver.received.length === 2);
        const [one, two] = receiver.received;
        expect(two?.headers['webhook-id']).to.equal(one?.headers['webhook-id']);
        expect(two?.body).to.equal(one?.body);
        expect(await verifies(secret, two)).to.be.true();
        expect(ports.recorded.at(-1)).to.include({ action: 'run', resource: 'channels', resourceId: 1 });
    });

    it('sends what waits at once, and finds nothing of another channel', async () => {
        await rig.restart(() => ({ retryMs: [3_600_000] }));
        await gateway.close();
        gateway = await createGateway({
            core: createHttpServer({
                name: 'core',
                prefix: '',
                ports,
                routes: notificationRoutes(rig.notifications, () => ['tea', 'cronjob'])
            }),
            log: rig.store.log,
            drainMs: 1_000
        });
        client = new Client((await gateway.listen('127.0.0.1', 0)).port);
        client.token = 'admin';
        await webhook();
        await webhook({ enabled: false });
        receiver.answer = (response, _received, count) =>
            void response.writeHead(count === 1 ? 500 : 200).end();
        rig.notifications.notify({ event: 'a.b', severity: 'info', title: 'T' });
        await until(async () => (await client.get(`${base}/1/deliveries`)).data[0]?.attempts === 1);
        expect((await client.post(`${base}/2/deliveries/1/replay`)).code).to.equal(40400);
        expect((await client.post(`${base}/1/deliveries/9/replay`)).code).to.equal(40400);
        expect((await client.post(`${base}/1/deliveries/1/replay`)).data).to.include({
            n: 1,
            state: 'pending',
            replayOf: null
        });
        await until(async () => (await client.get(`${base}/1/deliveries`)).data[0]?.state === 'delivered');
        expect((await client.get(`${base}/1/deliveries`)).data).to.have.length(1);
    });
});

describe('readSecret', () => {
    it('takes base64 of 24 to 64 bytes with or without its prefix, and nothing else', () => {
        fc.assert(
            fc.property(fc.uint8Array({ minLength: 0, maxLength: 80 }), (bytes) => {
                const encoded = Buffer.from(bytes).toString('base64');
                const expected = bytes.length >= 24 && bytes.length <= 64 ? `whsec_${encoded}` : null;
                expect(readSecret(encoded)).to.equal(expected);
                expect(readSecret(`whsec_${encoded}`)).to.equal(expected);
                expect(readSecret(`whsec_${encoded} `)).to.be.null();
                expect(readSecret(`whsec_whsec_${encoded}`)).to.be.null();
            })
        );
    });
});

describe('sign', () => {
    it('agrees with the example of the specification', () => {
        // Secret, id, time stamp, payload and signature as the reference libraries test them.
        expect(
            sign(
                'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
                'msg_p5jXN8AQM9LWM0D4loKWxJek',
                1614265330,
                '{"test": 2432232314}'
            )
        ).to.equal('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
    });
});
