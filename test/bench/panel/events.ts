/** Target 16: the memory of 1,000 listeners of `GET /api/events`, and the time until the last of them knows of a change. */
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import { startUpstream } from '../../support/servers/upstream.ts';
import { number, type Report } from '../report.ts';
import { startFleet } from '../servers/fleet.ts';
import { cpuOf, memoryOf } from '../servers/load.ts';

const listeners = 1_000;
const changes = 20;
const marker = 'event: hosts';

/** Counts the events of all listeners. */
class Audience {
    readonly #answers: IncomingMessage[] = [];
    #seen = 0;
    #wanted = Infinity;
    #tell: () => void = () => undefined;

    async join(port: number, token: string): Promise<void> {
        const answer = await new Promise<IncomingMessage>((resolve, reject) => {
            const headers = { authorization: `Bearer ${token}` };
            request({ host: '127.0.0.1', port, path: '/api/events?topics=hosts', agent: false, headers })
                .once('response', resolve)
                .once('error', reject)
                .end();
        });
        answer.setEncoding('utf8');
        answer.on('error', () => undefined);
        answer.on('data', (text: string) => {
            this.#seen += text.split(marker).length - 1;
            if (this.#seen >= this.#wanted) {
                this.#tell();
            }
        });
        this.#answers.push(answer);
    }

    /** Resolves when that many events have arrived in total. */
    async until(wanted: number): Promise<void> {
        if (this.#seen < wanted) {
            this.#wanted = wanted;
            await new Promise<void>((resolve) => {
                this.#tell = resolve;
            });
        }
    }

    leave(): void {
        this.#answers.forEach((answer) => answer.destroy());
    }
}

export async function bench(report: Report): Promise<void> {
    const upstream = await startUpstream('one');
    const panel = await startFleet(1, upstream.address);
    const audience = new Audience();
    const one = new Audience();
    try {
        const client = await panel.login();
        const token = client.token ?? '';
        const change = async (note: number): Promise<void> => {
            const { code, text } = await client.put('/api/hosts/1', { notes: `change ${note}` });
            if (code !== 0) {
                throw new Error(text);
            }
        };
        const delays = async (to: Audience, count: number): Promise<number> => {
            const times: number[] = [];
            for (let n = 1; n <= changes; n += 1) {
                const began = performance.now();
                await change(n);
                await to.until(n * count);
                times.push(performance.now() - began);
            }
            return times.sort((a, b) => a - b)[changes / 2] ?? NaN;
        };
        await change(0);
        await one.join(panel.port, token);
        const alone = await delays(one, 1);
        one.leave();
        await wait(1_000);
        const before = memoryOf(panel.pid);
        for (let n = 0; n < listeners; n += 1) {
            await audience.join(panel.port, token);
        }
        await wait(1_000);
        const kilobytes = ((memoryOf(panel.pid) - before) * 1_024) / listeners;
        const idle = cpuOf(panel.pid);
        const began = performance.now();
        const together = await delays(audience, listeners);
        const cpu = cpuOf(panel.pid) - idle;
        report.add({
            target: '16',
            what: `memory of one of ${listeners} listeners`,
            value: kilobytes,
            unit: 'KiB',
            most: [100, 60]
        });
        report.add({
            target: '16',
            what: `a change until the last of ${listeners} listeners knows it`,
            value: together,
            unit: 'ms',
            most: [500, 200],
            of: `${number(alone)} ms for one listener`
        });
        report.add({
            target: '',
            what: `processor time of the panel for ${changes} changes to ${listeners} listeners`,
            value: cpu / 1_000_000,
            unit: 's',
            of: `in ${number((performance.now() - began) / 1_000)} s`
        });
    } finally {
        audience.leave();
        await panel.close();
        await upstream.close();
    }
}
