/** What the assistant costs beside the model's own time: the wait for the first words, memory of many answers at once, what a question sends, and searches. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';

import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { ModelServer } from '../../support/servers/model.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';
import { memoryOf } from '../servers/load.ts';

const base = '/api/plugins/ai';
const streams = 20;
const rounds = 15;
const words = 'word '.repeat(150);
/** The assistant, and others whose routes are functions for it, too. */
const plugins = ['ai', 'monitoring', 'cronjob', 'filemanager', 'mcpserver'];
const conversations = 1_000;
const messagesOfEach = 100;

export async function bench(report: Report): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-ai-bench-'));
    mkdirSync(join(folder, 'plugins'));
    for (const name of plugins) {
        symlinkSync(join(import.meta.dirname, '../../../extensions', name), join(folder, 'plugins', name));
    }
    const model = await new ModelServer().open();
    const panel = await createPanelProcess({
        environment: { PORTICO_PLUGIN_DIRS: join(folder, 'plugins') }
    });
    try {
        await panel.start();
        const admin = await panel.login();
        await setUp(admin, model.port);
        await measureFirst(report, panel, { admin, model });
        await measureQuestion(report, { admin, model });
        await measureStreams(report, panel, { admin, model });
        await measureSearch(report, panel, admin);
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

/** Of the question that was asked last. */
async function measureQuestion(report: Report, { admin, model }: Parts): Promise<void> {
    const { data } = await admin.get(`${base}/tools`);
    const allowed = (data as { allowed: boolean }[]).filter((tool) => tool.allowed).length;
    const functions = model.questions.at(-1)?.body.tools as readonly object[];
    report.add({
        target: 'ai3',
        what: 'functions that a question sends',
        value: Buffer.byteLength(JSON.stringify(functions)) / 1024,
        unit: 'KiB',
        most: [64, 64],
        of: `${functions.length} of ${allowed} routes`
    });
}

async function measureSearch(report: Report, panel: PanelProcess, admin: Client): Promise<void> {
    fill(join(panel.dataDir, 'plugin-data', 'ai', '1', 'data.db'));
    for (const [what, q, most] of [
        ['a rare word', 'telescope77', 1],
        ['a word of each message', 'host', 20],
        ['two words of each message', 'host certificate', 20]
    ] as const) {
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
            const began = performance.now();
            const { data, text } = await admin.get(
                `${base}/conversations?limit=20&q=${encodeURIComponent(q)}`
            );
            times.push(performance.now() - began);
            if (data?.length !== most) {
                throw new Error(text);
            }
        }
        report.add({
            target: 'ai4',
            what: `${what} in ${number(conversations * messagesOfEach)} messages`,
            value: median(times),
            unit: 'ms',
            most: [100, 50]
        });
    }
}

/** Writes conversations of the admin past the panel, as the plugin would write them: through its routes, each message would ask a model. */
function fill(file: string): void {
    const db = new Sqlite(file);
    const { last, user } = db
        .prepare<[], { last: number; user: number }>(
            'select max(id) as last, max(user_id) as user from conversations'
        )
        .get() ?? { last: 0, user: 1 };
    db.transaction(() => {
        db.exec(`
            with recursive n(i) as (select 1 union all select i + 1 from n where i < ${conversations})
            insert into conversations (id, version, user_id, actor_key, title, pinned, placeholders, created_at, updated_at)
                select ${last} + i, 1, ${user}, 'user:${user}', 'Talk ' || i, 0, '{}', unixepoch() * 1000, unixepoch() * 1000 from n;
            with recursive n(i) as (select 0 union all select i + 1 from n where i < ${conversations * messagesOfEach} - 1)
            insert into messages (conversation_id, role, text, parts, input, output, at)
                select ${last} + 1 + i / ${messagesOfEach}, 'user',
                    'Which host has the certificate of shop number ' || i || case i % 1000 when 77 then ' telescope' || (i / 1000) else '' end,
                    '[]', 0, 0, unixepoch() * 1000 from n;
            insert into message_texts (rowid, owner, text)
                select m.conversation_id * 67108864 + 1 + m.id % 67108863, 'u${user}', m.text from messages m where m.conversation_id > ${last};`);
    })();
    db.close();
}
