import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Payload } from '../../../../core/src/features/notifications/delivery/message.ts';
import type { NotificationsOptions } from '../../../../core/src/features/notifications/notifications.ts';
import type { ChannelView, DeliveryView } from '../../../../core/src/features/notifications/schema.ts';
import { type Notifying, openNotifying } from '../../../support/core/notifying.ts';
import { callOf, handClock, person } from '../../../support/core/store.ts';
import { openReceiver, type Received, type Receiver, verifies } from '../../../support/servers/webhooks.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const secret = `whsec_${Buffer.alloc(24, 'k').toString('base64')}`;
const call = callOf(person('admin'));
const broken = { event: 'engine.failed', severity: 'error', title: 'The engine does not answer' } as const;

let receiver: Receiver;
let rig: Notifying;

const channel = async (more: Record<string, unknown> = {}): Promise<ChannelView> =>
    (
        await rig.notifications.channels.create(
            {
                name: 'ops',
                type: 'webhook',
                url: receiver.url,
                secret,
                events: ['*'],
                enabled: true,
                ...more
            },
            call
        )
    ).data;
const deliveries = (id: number, more: object = {}): readonly DeliveryView[] =>
    rig.notifications.deliveries.list(id, { limit: 500, ...more }).data;
const settled = (id: number, count = 1): Promise<true> =>
    until(() => deliveries(id).filter(({ state }) => state !== 'pending').length === count);

async function open(options: Partial<NotificationsOptions> = {}): Promise<void> {
    rig = await openNotifying(options);
}

beforeEach(async () => {
    receiver = await openReceiver();
});

afterEach(async () => {
    await rig.close();
    await receiver.close();
});

describe('Notifications', () => {
    it('tells a webhook, signed, and keeps what it said', async () => {
        await open();
        receiver.answer = (response) => void response.writeHead(202).end('thank you\u0007');
        const { id } = await channel();
        rig.notifications.notify({ ...broken, text: 'Since a minute', data: { pid: 7 } });
        await settled(id);
        const [received] = receiver.received;
        expect(received?.headers).to.include({ 'content-type': 'application/json', 'user-agent': 'Portico' });
        expect(await verifies(secret, received)).to.be.true();
        expect(
            await verifies(secret, { ...(received as Received), body: `${received?.body} ` })
        ).to.be.false();
        expect(Math.abs(Number(received?.headers['webhook-timestamp']) - Date.now() / 1000)).to.be.below(5);
        expect(JSON.parse(received?.body ?? '')).to.include({
            type: 'engine.failed',
            data: { severity: 'error', title: broken.title, text: 'Since a minute', details: { pid: 7 } }
        });
        const [delivery] = deliveries(id);
        expect(delivery).to.include({
            state: 'delivered',
            attempts: 1,
            status: 202,
            error: null,
            response: 'thank you',
            event: 'engine.failed',
            messageId: received?.headers['webhook-id'] as string,
            nextAttemptAt: null,
            replayOf: null
        });
    });

    it('tells only channels that want to know and are enabled', async () => {
        await open();
        const all = await channel();
        const some = await channel({ events: ['certificate.*', 'auth.locked'] });
        const off = await channel({ enabled: false });
        rig.notifications.notify(broken);
        rig.notifications.notify({ ...broken, event: 'certificate.expiring' });
        rig.notifications.notify({ ...broken, event: 'auth.locked' });
        rig.notifications.notify({ ...broken, event: 'auth.unlocked' });
        await settled(all.id, 4);
        await settled(some.id, 2);
        expect(
            deliveries(some.id)
                .map(({ event }) => event)
                .sort()
        ).to.equal(['auth.locked', 'certificate.expiring']);
        expect(deliveries(off.id)).to.be.empty();
        expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).to.equal(6);
    });

    it('tells just the channels that a notification names, whatever their events', async () => {
        await open();
        const all = await channel();
        const named = await channel({ events: ['certificate.*'] });
        const off = await channel({ enabled: false });
        rig.notifications.notify({ ...broken, channels: [named.id, off.id, 4711] });
        rig.notifications.notify({ ...broken, channels: [] });
        rig.notifications.notify(broken);
        await settled(all.id, 1);
        await settled(named.id, 1);
        expect(deliveries(named.id).map(({ event }) => event)).to.equal([broken.event]);
        expect(deliveries(off.id)).to.be.empty();
        expect(receiver.received).to.have.length(2);
        expect(receiver.received.map(({ body }) => body).join('')).to.not.include('channels');
    });

    it('tries again with the same id and another time stamp, until it succeeds', async () => {
        let seconds = 0;
        await open({ clock: { now: () => Date.now() + 1000 * seconds++ } });
        receiver.answer = (response, _received, count) =>
            void response.writeHead(count < 3 ? 500 : 200).end(`answer ${count}`);
        const { id } = await channel();
        rig.notifications.notify(broken);
        await settled(id);
        expect(receiver.received).to.have.length(3);
        expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
        expect(new Set(receiver.received.map(({ body }) => body)).size).to.equal(1);
        expect(new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size).to.equal(
            3
        );
        expect(await Promise.all(receiver.received.map((each) => verifies(secret, each)))).to.equal([
            true,
            true,
            true
        ]);
        expect(deliveries(id)[0]).to.include({
            state: 'delivered',
            attempts: 3,
            status: 200,
            error: null,
            response: 'answer 3'
        });
    });

    it('gives up in the end and says why, and waits longer each time', async () => {
        await open({ retryMs: [20, 60, 180] });
        receiver.answer = (response) =>
            void response.writeHead(302, { location: 'http://127.0.0.1/' }).end('elsewhere');
        const { id } = await channel();
        rig.notifications.notify(broken);
        await settled(id);
        expect(deliveries(id)[0]).to.include({
            state: 'failed',
            attempts: 4,
            status: 302,
            error: 'The receiver answers 302: redirects are not followed',
            response: 'elsewhere',
            nextAttemptAt: null
        });
        const gaps = receiver.received
            .slice(1)
            .map(({ at }, index) => at - (receiver.received[index]?.at ?? 0));
        expect(gaps.every((gap, index) => gap >= [16, 48, 144][index]! - 2)).to.be.true();
    });

    it('spreads the waits, and obeys a receiver that wants more time', async () => {
        const clock = handClock();
        await open({ clock, retryMs: [100_000] });
        receiver.answer = (response) => void response.writeHead(503).end();
        const { id } = await channel();
        for (let count = 0; count < 20; count += 1) {
            rig.notifications.notify(broken);
        }
        await until(
            () => deliveries(id).every(({ attempts }) => attempts === 1) && deliveries(id).length === 20
        );
        const waits = deliveries(id).map(({ nextAttemptAt }) => Date.parse(nextAttemptAt ?? '') - clock.time);
        expect(waits.every((wait) => wait >= 80_000 && wait <= 120_000)).to.be.true();
        expect(new Set(waits).size).to.be.above(10);
        receiver.answer = (response) => void response.writeHead(429, { 'retry-after': '3600' }).end();
        rig.notifications.notify({ ...broken, event: 'later.one' });
        const later = (): DeliveryView | undefined =>
            deliveries(id).find(({ event }) => event === 'later.one');
        await until(() => later()?.attempts === 1);
        expect(Date.parse(later()?.nextAttemptAt ?? '') - clock.time).to.equal(3_600_000);
        receiver.answer = (response) => void response.writeHead(503, { 'retry-after': '99999999' }).end();
        rig.notifications.notify({ ...broken, event: 'later.two' });
        const last = (): DeliveryView | undefined =>
            deliveries(id).find(({ event }) => event === 'later.two');
        await until(() => last()?.attempts === 1);
        expect(Date.parse(last()?.nextAttemptAt ?? '') - clock.time).to.equal(6 * 3_600_000);
    });

    it('holds up neither the sender nor other channels', async () => {
        await open();
        const other = await openReceiver();
        try {
            receiver.answer = () => undefined;
            const slow = await channel();
            const fast = await channel({ url: other.url });
            const began = performance.now();
            for (let count = 0; count < 100; count += 1) {
                rig.notifications.notify(broken);
            }
            expect(performance.now() - began).to.be.below(100);
            await settled(fast.id, 100);
            expect(other.received).to.have.length(100);
            expect(receiver.received).to.have.length(1);
            expect(deliveries(slow.id).every(({ state }) => state === 'pending')).to.be.true();
        } finally {
            receiver.answer = (response) => void response.end();
            await rig.notifications.channels.update(1, { enabled: false }, call);
            await receiver.close();
            receiver = other;
        }
    });

    it('may be called inside a transaction, and in what follows one', async () => {
        await open();
        const { id } = await channel();
        await rig.store.db.write(async (tx) => {
            rig.notifications.notify(broken);
            tx.afterCommit(() => rig.notifications.notify(broken));
        });
        await settled(id, 2);
    });

    it('never throws, whatever it is told', async () => {
        await open();
        const { id } = await channel();
        for (const hostile of [
            null,
            undefined,
            {},
            { event: Symbol('x') },
            {
                ...broken,
                title: {
                    toString: () => {
                        throw new Error('no');
                    }
                }
            },
            {
                ...broken,
                data: {
                    get x() {
                        throw new Error('no');
                    }
                }
            },
            { ...broken, severity: 'loud' },
            { ...broken, severity: undefined }
        ]) {
            rig.notifications.notify(hostile as never); // wrong on purpose
        }
        rig.notifications.notify(broken);
        await until(() =>
            deliveries(id).some(({ event, state }) => event === broken.event && state === 'delivered')
        );
    });

    it('switches a channel off whose receiver wants nothing more, on record', async () => {
        await open();
        receiver.answer = (response) => void response.writeHead(410).end();
        const { id } = await channel();
        rig.notifications.notify(broken);
        await settled(id);
        expect(deliveries(id)[0]).to.include({ state: 'failed', attempts: 1, status: 410 });
        expect(rig.notifications.channels.get(id)).to.include({ enabled: false, version: 2 });
        expect(rig.recorded).to.have.length(1);
        expect(rig.recorded[0]).to.include({
            action: 'disable',
            resource: 'channels',
            resourceId: id,
            outcome: 'success'
        });
        rig.notifications.notify(broken);
        await until(() => true);
        expect(receiver.received).to.have.length(1);
    });

    it('delivers all the same when the answer is endless, cut or unreadable behind its head', async () => {
        await open();
        const { id } = await channel();
        let open_ = 0;
        receiver.answer = (response, _received, count) => {
            response.on('close', () => {
                open_ -= 1;
            });
            open_ += 1;
            response.writeHead(200, count === 3 ? { 'content-encoding': 'gzip' } : {});
            if (count === 1) {
                const more = (): void => {
                    while (!response.destroyed && response.write('x'.repeat(1000))) {
                        /* until the socket is full */
                    }
                };
                response.on('drain', more);
                more();
            } else if (count === 2) {
                response.write('half', () => response.socket?.resetAndDestroy());
            } else {
                response.end(Buffer.from([0x1f, 0x8b, 0, 1]));
            }
        };
        for (const count of [1, 2, 3]) {
            rig.notifications.notify(broken);
            await settled(id, count);
        }
        expect(deliveries(id).map(({ state, response }) => [state, response?.length ?? 0])).to.equal([
            ['delivered', 0],
            ['delivered', deliveries(id)[1]?.response?.length ?? 0],
            ['delivered', 1024]
        ]);
        await until(() => open_ === 0);
    });

    it('refuses private addresses unless they are allowed, at each attempt', async () => {
        const { Outbound } = await import('../../../../core/src/platform/outbound/client.ts');
        let allow: string[] = [];
        await open({
            outbound: new Outbound({ allow: () => allow, log: { warn: () => undefined } }),
            retryMs: [50, 50, 50, 50]
        });
        const { id } = await channel();
        rig.notifications.notify(broken);
        await until(() => deliveries(id)[0]?.attempts === 1);
        expect(deliveries(id)[0]?.error).to.equal(
            'The address 127.0.0.1 (a loopback address) may not be reached; the setting panel.outboundAllow can permit it'
        );
        expect(receiver.received).to.be.empty();
        allow = ['127.0.0.1'];
        await settled(id);
        expect(deliveries(id)[0]).to.include({ state: 'delivered', error: null });
    });

    it('hands every notification to the taps of its hook, and outlives theirs', async () => {
        const heard: Payload[] = [];
        await open({
            raised: {
                used: true,
                async run(payload) {
                    heard.push(payload);
                    throw new Error('tap');
                }
            }
        });
        rig.notifications.notify(broken);
        await until(() => heard.length === 1);
        expect(heard[0]).to.include({ type: 'engine.failed' });
        const { id } = await channel();
        rig.notifications.notify(broken);
        await settled(id);
    });

    it('keeps the last 200 deliveries that ended, and at most 1,000 that wait', async () => {
        await open({ retryMs: [3_600_000] });
        const { id } = await channel();
        const tell = async (count: number): Promise<void> => {
            for (let index = 0; index < count; index += 1) {
                rig.notifications.notify({ ...broken, title: `Number ${index}` });
            }
            await until(() => true);
        };
        await tell(250);
        await until(
            () => receiver.received.length === 250 && deliveries(id).every(({ state }) => state !== 'pending')
        );
        expect(deliveries(id)).to.have.length(200);
        expect(deliveries(id)[0]?.title).to.equal('Number 249');
        await rig.notifications.channels.update(id, { url: 'http://127.0.0.1:1/' }, call);
        await tell(600);
        await until(
            () =>
                rig.store.db
                    .prepare<[], { n: number }>(
                        "select count(*) as n from notification_delivery where state = 'pending'"
                    )
                    .get()?.n === 600
        );
        await tell(600);
        await until(() => rig.store.lines.some((line) => line.includes('too many wait for its channel')));
        expect(
            rig.store.db
                .prepare<[], { n: number }>(
                    "select count(*) as n from notification_delivery where state = 'pending'"
                )
                .get()?.n
        ).to.equal(1000);
    });

    it('goes on with what waits after a restart', async () => {
        await open({ retryMs: [300, 300, 300] });
        receiver.answer = (response) => void response.writeHead(500).end();
        const { id } = await channel();
        rig.notifications.notify(broken);
        await until(() => deliveries(id)[0]?.attempts === 1);
        rig.notifications.notify({ ...broken, event: 'told.last' });
        receiver.answer = (response) => void response.writeHead(204).end();
        await rig.restart();
        const before = receiver.received.length;
        expect(deliveries(id).some(({ event }) => event === 'told.last')).to.be.true();
        rig.notifications.start();
        await settled(id, 2);
        expect(receiver.received.length).to.be.at.least(before + 1);
        expect(receiver.received[0]?.headers['webhook-id']).to.equal(
            receiver.received.findLast(({ body }) => body.includes('engine.failed'))?.headers['webhook-id']
        );
    });

    for (const when of ['before', 'during']) {
        it(`loses nothing when the process is killed ${when} the attempt`, { timeout: 20_000 }, async () => {
            await open();
            const { id } = await channel();
            await rig.notifications.close();
            await rig.store.db.close();
            receiver.answer = () => child.kill('SIGKILL');
            const program = join(import.meta.dirname, '../../../support/core/notifying.ts');
            const child = spawn(
                process.execPath,
                ['--conditions=portico-source', program, rig.store.folder, when],
                { stdio: 'inherit' }
            );
            const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
            expect(signal).to.equal('SIGKILL');
            expect(receiver.received).to.have.length(when === 'before' ? 0 : 1);
            receiver.answer = (response) => void response.writeHead(204).end();
            await rig.restart();
            expect(deliveries(id)).to.have.length(1);
            expect(deliveries(id)[0]).to.include({ state: 'pending', attempts: 0 });
            rig.notifications.start();
            await settled(id);
            expect(receiver.received).to.have.length(when === 'before' ? 1 : 2);
            expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
            expect(await verifies(secret, receiver.received[0])).to.be.true();
        });
    }

    it('does not flood a receiver when outcomes cannot be recorded', async () => {
        let full = false;
        await open();
        const { id } = await channel();
        await rig.restart(() => {
            const { db } = rig.store;
            return {
                db: {
                    read: (work) => db.read(work),
                    prepare: (sql) => db.prepare(sql),
                    close: () => db.close(),
                    skipped: db.skipped,
                    problems: () => db.problems(),
                    write: (work) => (full ? Promise.reject(new Error('disk full')) : db.write(work)),
                    writeEssential: (work) => db.writeEssential(work)
                }
            };
        });
        receiver.answer = (response) => {
            full = true;
            response.end();
        };
        rig.notifications.notify(broken);
        await until(() => rig.store.lines.some((line) => line.includes('cannot be recorded')));
        await new Promise((resolve) => setTimeout(resolve, 100));
        expect(receiver.received).to.have.length(1);
        expect(deliveries(id)[0]?.state).to.equal('pending');
        // What cannot even be kept is sent all the same: a full disk is news.
        rig.notifications.notify({ ...broken, event: 'storage.full' });
        await until(() => receiver.received.length === 2);
        expect(receiver.received[1]?.body).to.contain('storage.full');
        full = false;
    });

    it('fails on record when the secret cannot be opened', async () => {
        await open({ retryMs: [] });
        const { id } = await channel();
        await rig.store.db.write(async (tx) => {
            await tx.em.execute(`update notification_channel set sealed = 'v1.AAAA'`, [], 'run');
        });
        rig.notifications.notify(broken);
        await settled(id);
        expect(deliveries(id)[0]).to.include({
            state: 'failed',
            status: null,
            error: 'A sealed value of notifications is damaged'
        });
        expect(receiver.received).to.be.empty();
    });

    it('goes on when the clock is turned back', async () => {
        const clock = handClock();
        await open({ clock });
        receiver.answer = (response, _received, count) =>
            void response.writeHead(count === 1 ? 500 : 200).end();
        const { id } = await channel();
        rig.notifications.notify(broken);
        await until(() => deliveries(id)[0]?.attempts === 1);
        clock.time -= 365 * 86_400_000;
        rig.notifications.start();
        await settled(id);
        expect(deliveries(id)[0]?.state).to.equal('delivered');
    });
});
