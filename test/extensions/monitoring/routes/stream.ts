import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { EventFeed } from '../../../../extensions/monitoring/src/sampling/event-feed.ts';
import { memoryOf } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig, people } from '../rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

interface Event {
    readonly id: string;
    readonly event: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into events of every shape
    readonly data: any;
}

/** One client of the stream. */
async function listen({ host }: MonitoringRig, lastEventId?: string) {
    const abort = new AbortController();
    const answer = await host.as(people.viewer).fetch('GET', '/metrics/stream', undefined, {
        headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
        signal: abort.signal
    });
    const reader = (answer.body as ReadableStream<Uint8Array>)
        .pipeThrough(new TextDecoderStream())
        .getReader();
    let text = '';
    return {
        type: answer.headers.get('content-type'),
        async next(): Promise<Event | null> {
            for (;;) {
                const end = text.indexOf('\n\n');
                if (end >= 0) {
                    const block = text.slice(0, end);
                    text = text.slice(end + 2);
                    const fields = Object.fromEntries(
                        block
                            .split('\n')
                            .filter((line) => !line.startsWith(':'))
                            .map((line) => [
                                line.slice(0, line.indexOf(':')),
                                line.slice(line.indexOf(':') + 2)
                            ])
                    );
                    if (fields['data'] !== undefined) {
                        return {
                            id: fields['id'] ?? '',
                            event: fields['event'] ?? '',
                            data: JSON.parse(fields['data'])
                        };
                    }
                    continue;
                }
                const { done, value } = await reader.read();
                if (done) {
                    return null;
                }
                text += value;
            }
        },
        close: () => abort.abort()
    };
}

describe('GET /api/plugins/monitoring/metrics/stream', () => {
    it(
        'sends the newest sample, then samples and alerts as they come, and what a client missed',
        { timeout: 30_000 },
        async () => {
            const rig = await createMonitoringRig();
            try {
                await rig.ask('op', 'POST', `${base}/rules`, {
                    name: 'M',
                    metric: 'memory.usedPercent',
                    threshold: 90,
                    forSeconds: 0
                });
                const first = await listen(rig);
                expect(first.type).to.equal('text/event-stream; charset=utf-8');
                const newest = await first.next();
                expect([newest?.event, newest?.data]).to.equal(['sample', (await rig.get('/metrics')).data]);
                rig.machine.files.set('/proc/meminfo', memoryOf(95));
                await rig.machine.tick();
                const [sample, alert] = [await first.next(), await first.next()];
                expect([
                    sample?.event,
                    sample?.data.memory.usedPercent,
                    alert?.event,
                    alert?.data.state,
                    alert?.data.name
                ]).to.equal(['sample', 95, 'alert', 'firing', 'M']);
                first.close();
                await rig.machine.tick();
                await rig.machine.tick();
                const back = await listen(rig, sample?.id);
                const missed = [await back.next(), await back.next(), await back.next()];
                expect(missed.map((event) => event?.event)).to.equal(['alert', 'sample', 'sample']);
                expect(missed[0]).to.equal(alert);
                await rig.machine.tick();
                expect((await back.next())?.data).to.equal((await rig.get('/metrics')).data);
                const ending = rig.host.stop();
                expect(await back.next()).to.be.null();
                expect((await ending).leaked).to.equal([]);
                await rig.host.start();
                const after = await listen(rig, missed[2]?.id);
                expect((await after.next())?.data).to.equal((await rig.get('/metrics')).data);
                after.close();
            } finally {
                await rig.end();
            }
        }
    );
});

describe('Feed', () => {
    it('keeps the newest events only, and tells who comes too late how many are gone', async () => {
        const feed = new EventFeed();
        const signal = new AbortController();
        feed.publish('sample', 0);
        const early = feed.listen(null, signal.signal);
        const first = (await early.next()).value as { readonly id: string };
        for (let index = 1; index <= 300; index += 1) {
            feed.publish('sample', index);
        }
        expect((await early.next()).value).to.include({ event: 'gap', data: { missed: 180 } });
        expect((await early.next()).value).to.include({ data: 181 });
        const late = feed.listen(first.id, signal.signal);
        expect((await late.next()).value).to.include({ event: 'gap', data: { missed: 180 } });
        expect((await feed.listen('garbage', signal.signal).next()).value).to.include({ data: 300 });
        const mark = first.id.split('.')[0] ?? '';
        expect((await feed.listen('0000.7', signal.signal).next()).value).to.include({ data: 181 });
        const ahead = feed.listen(`${mark}.999999`, signal.signal);
        const waiting = ahead.next();
        feed.publish('sample', 301);
        expect((await waiting).value).to.include({ data: 301 });
    });

    it('lets listeners go when their signal says so', async () => {
        const feed = new EventFeed();
        const abort = new AbortController();
        const waiting = Array.from({ length: 20 }, () => feed.listen(null, abort.signal).next());
        expect(feed.listeners).to.equal(20);
        abort.abort();
        expect((await Promise.all(waiting)).every(({ done }) => done)).to.be.true();
        expect(feed.listeners).to.equal(0);
    });
});
