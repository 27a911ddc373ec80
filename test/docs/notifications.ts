import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { usualRetryMs } from '../../core/src/features/notifications/delivery/dispatcher.ts';
import { usualPorts } from '../../core/src/features/notifications/delivery/email.ts';
import { newSecret } from '../../core/src/features/notifications/delivery/webhook.ts';
import { type Notifying, openNotifying } from '../support/core/notifying.ts';
import { callOf, person } from '../support/core/store.ts';
import { freePort } from '../support/ports.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const page = readFileSync(join(import.meta.dirname, '../../docs/notifications.md'), 'utf8');
const blocks = [...page.matchAll(/^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(
    ([, language, name, text = '']) => ({ language, name, text })
);

describe('docs/notifications.md', () => {
    const call = callOf(person('admin'));
    const secret = newSecret();
    let folder: string;
    let port: number;
    let child: ChildProcess;
    let printed = '';
    let rig: Notifying;

    before(async () => {
        rig = await openNotifying();
        folder = mkdtempSync(join(tmpdir(), 'portico-docs-'));
        const program = join(folder, 'verify-webhook.mjs');
        writeFileSync(program, blocks.find(({ name }) => name === 'verify-webhook.mjs')?.text ?? '');
        port = await freePort();
        child = spawn(process.execPath, [program], {
            env: { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRET: secret },
            stdio: ['ignore', 'pipe', 'inherit']
        });
        child.stdout?.on('data', (chunk: Buffer) => {
            printed += chunk.toString();
        });
        await until(
            () =>
                new Promise<boolean>((resolve) => {
                    const socket = connect(port, '127.0.0.1', () => resolve(true));
                    socket.on('connect', () => socket.destroy()).on('error', () => resolve(false));
                })
        );
    });

    after(async () => {
        const exit = once(child, 'exit');
        child.kill();
        await exit;
        await rig.close();
        rmSync(folder, { recursive: true });
    });

    it('shows a receiver that takes what is signed, and nothing else', async () => {
        const url = `http://127.0.0.1:${port}/`;
        const right = (
            await rig.notifications.channels.create(
                { name: 'right', type: 'webhook', url, secret, events: ['*'], enabled: true },
                call
            )
        ).data;
        const wrong = (
            await rig.notifications.channels.create(
                { name: 'wrong', type: 'webhook', url, secret: newSecret(), events: ['*'], enabled: true },
                call
            )
        ).data;
        expect(await rig.notifications.deliveries.test(right.id, call)).to.include({
            state: 'delivered',
            status: 204
        });
        expect(await rig.notifications.deliveries.test(wrong.id, call)).to.include({
            state: 'failed',
            status: 401
        });
        await until(() => printed.includes('\n'));
        expect(printed).to.equal('Test of the channel right\n');
    });

    it('shows channels that can be made', async () => {
        const bodies = blocks
            .filter(({ language, text }) => language === 'json' && text.includes('"events"'))
            .map(({ text }) => JSON.parse(text) as object);
        expect(bodies).to.have.length(2);
        for (const body of bodies) {
            // The schema checks what a page shows.
            expect(
                (await rig.notifications.channels.create({ enabled: true, ...body } as never, call)).status
            ).to.equal(201);
        }
    });

    it('says the waits and the ports as they are', () => {
        expect(usualRetryMs).to.equal([5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000]);
        expect(page.replace(/\s+/g, ' ')).to.contain('about 5 s, 30 s, 2 min, 10 min, 1 h and 6 h');
        expect(page)
            .to.contain(`(port ${usualPorts.tls})`)
            .and.contain(`(${usualPorts.starttls};`)
            .and.contain(`(${usualPorts.none})`);
    });
});
