/** What answers of the assistant cost beside the model's own time: the wait for the first words, and memory of many at once. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { ModelServer } from '../../support/servers/model.ts';
import { until } from '../../support/until.ts';
import { median, type Report } from '../report.ts';
import { memoryOf } from '../servers/load.ts';

const base = '/api/plugins/ai';
const streams = 20;
const rounds = 15;
const words = 'word '.repeat(150);

export async function bench(report: Report): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-ai-bench-'));
    mkdirSync(join(folder, 'plugins'));
    symlinkSync(join(import.meta.dirname, '../../../extensions/ai'), join(folder, 'plugins', 'ai'));
    const model = await new ModelServer().open();
    const panel = await createPanelProcess({
        environment: { PORTICO_PLUGIN_DIRS: join(folder, 'plugins') }
    });
    try {
        await panel.start();
        const admin = await panel.login();
        await setUp(admin, model.port);
        await measureFirst(report, panel, { admin, model });
        await measureStreams(report, panel, { admin, model });
    } finally {
        await panel.close();
        await model.close();
        rmSync(folder, { recursive: true, force: true });
    }
}

async function setUp(admin: Client, port: number): Promise<void> {
    const running = (): Promise<unknown> =>
        until(
            async () => (await admin.get('/api/plugins/ai')).data?.state === 'running',
            'the plugin to run',
            60_000
        );
    await running();
    await admin.put('/api/plugins/ai', {
        grants: {
            network: ['*', '127.0.0.1'],
            api: { read: ['*'], write: ['*'] },
            taps: ['audit.recorded']
        },
        settings: { requestsPerMinute: 600 }
    });
    await running();
    const { code, text } = await admin.post(`${base}/providers`, {
        name: 'Local',
        baseUrl: `http://127.0.0.1:${port}/v1`,
        model: 'model-large'
    });
    if (code !== 0) {
        throw new Error(text);
    }
}

interface Parts {
    readonly admin: Client;
    readonly model: ModelServer;
}

/** Asks in a new conversation. Resolves with the time of the first words and of the end, in milliseconds since the question. */
async function ask(
    panel: PanelProcess,
    admin: Client
): Promise<{ readonly first: number; readonly all: number }> {
    const { data } = await admin.post(`${base}/conversations`, {});
    const began = performance.now();
    const answer = await fetch(`http://127.0.0.1:${panel.port}${base}/conversations/${data.id}/messages`, {
        method: 'POST',
        headers: { authorization: `Bearer ${admin.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'Which hosts do not serve?' })
    });
    let text = '';
    let first = 0;
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) {
        text += decoder.decode(chunk as Uint8Array);
        if (first === 0 && text.includes('event: text')) {
            first = performance.now() - began;
        }
    }
    if (!text.includes('"reason":"stop"')) {
        throw new Error(text);
    }
    return { first, all: performance.now() - began };
}

async function measureFirst(report: Report, panel: PanelProcess, { admin, model }: Parts): Promise<void> {
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        model.say({ text: 'Here.' });
        times.push((await ask(panel, admin)).first);
    }
    report.add({
        target: 'ai1',
        what: 'the first words of an answer, from the question on, of a model that answers at once',
        value: median(times),
        unit: 'ms',
        most: [100, 50]
    });
}

async function measureStreams(report: Report, panel: PanelProcess, { admin, model }: Parts): Promise<void> {
    const before = memoryOf(panel.pid);
    let most = before;
    const timer = setInterval(() => {
        most = Math.max(most, memoryOf(panel.pid));
    }, 50);
    model.say(...Array.from({ length: streams }, () => ({ text: words, paceMs: 30 })));
    const began = performance.now();
    const lasted = await Promise.all(Array.from({ length: streams }, () => ask(panel, admin)));
    clearInterval(timer);
    const longest = Math.max(...lasted.map(({ all }) => all));
    report.add({
        target: 'ai2',
        what: `${streams} answers at once`,
        value: most - before,
        unit: 'MB',
        most: [80, 40],
        of: `${Math.round(longest)} ms each, ${Math.round(performance.now() - began)} ms in all`
    });
}
