/** Files in bulk: what the panel needs for each kind of work against the tool that does the same by hand. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';
import { memoryOf } from '../servers/load.ts';

const base = '/api/plugins/filemanager';
const rounds = 3;
const copied = 10_000;
const searched = 50_000;
const counted = 200_000;
const foldersOf = 200;
const gibibyte = 2 ** 30;

interface Parts {
    readonly admin: Client;
    readonly panel: PanelProcess;
    readonly root: string;
    readonly report: Report;
}

export async function bench(report: Report): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-filemanager-bench-'));
    const root = join(folder, 'root');
    mkdirSync(join(folder, 'plugins'));
    mkdirSync(root);
    symlinkSync(
        join(import.meta.dirname, '../../../extensions/filemanager'),
        join(folder, 'plugins', 'filemanager')
    );
    const panel = await createPanelProcess({
        environment: { PORTICO_PLUGIN_DIRS: join(folder, 'plugins') }
    });
    try {
        await panel.start();
        const admin = await panel.login();
        const parts = { admin, panel, root, report };
        await setUp(parts);
        await measureBatch(parts);
        await measureChecksum(parts);
        await measureDownload(parts);
        await measureSearch(parts);
        await measureSize(parts);
    } finally {
        await panel.close();
        rmSync(folder, { recursive: true, force: true });
    }
}

async function setUp({ admin, root }: Parts): Promise<void> {
    await until(
        async () => (await admin.get('/api/plugins/filemanager')).data?.state === 'running',
        'the plugin to run',
        60_000
    );
    const { code, text } = await admin.put('/api/plugins/filemanager', {
        settings: { roots: [{ name: 'main', path: root, roles: [] }], searchSeconds: 30 }
    });
    if (code !== 0) {
        throw new Error(text);
    }
}

/** Files in folders of a few hundred, as those of a site are. */
function makeFiles(top: string, files: number, content: (index: number) => string | Buffer): void {
    for (let index = 0; index < foldersOf; index += 1) {
        mkdirSync(join(top, String(index)), { recursive: true });
    }
    for (let index = 0; index < files; index += 1) {
        writeFileSync(join(top, String(index % foldersOf), `file-${index}.txt`), content(index));
    }
}

/** Asks for work and waits for it, also where it became a task. Resolves with its result. */
async function work<Result = Record<string, unknown>>(
    admin: Client,
    path: string,
    body: object
): Promise<Result> {
    const { status, code, data, text } = await admin.post(`${base}/${path}`, body);
    if (code !== 0) {
        throw new Error(text);
    }
    if (status !== 202) {
        return data as Result;
    }
    const task = await until(
        async () => {
            const now = (await admin.get(`/api/tasks/${data.id}`)).data;
            return ['queued', 'running'].includes(now.state as string) ? null : now;
        },
        'the task to end',
        300_000
    );
    if (task.state !== 'succeeded') {
        throw new Error(JSON.stringify(task.error));
    }
    return task.result as Result;
}

async function seconds(run: () => unknown): Promise<number> {
    const began = performance.now();
    await run();
    return (performance.now() - began) / 1_000;
}

/** Times both in turn, and takes the medians. */
async function compare(
    ours: (round: number) => Promise<unknown>,
    byHand: (round: number) => unknown
): Promise<{ readonly ratio: number; readonly of: string }> {
    const times: { readonly ours: number[]; readonly byHand: number[] } = { ours: [], byHand: [] };
    for (let round = 0; round < rounds; round += 1) {
        times.byHand.push(await seconds(() => byHand(round)));
        times.ours.push(await seconds(() => ours(round)));
    }
    const [a, b] = [median(times.ours), median(times.byHand)];
    return { ratio: a / b, of: `${number(a)} of ${number(b)} s` };
}

async function measureBatch({ admin, root, report }: Parts): Promise<void> {
    makeFiles(join(root, 'small'), copied, (index) => Buffer.alloc(4_096, String(index)));
    const items = Array.from({ length: foldersOf }, (_, index) => ({ root: 'main', path: `small/${index}` }));
    const { ratio, of } = await compare(
        async (round) => {
            mkdirSync(join(root, `copy-${round}`));
            const to = { root: 'main', path: `copy-${round}` };
            const { done } = await work(admin, 'batch', { action: 'copy', items, to });
            if (done !== items.length) {
                throw new Error(`${String(done)} of ${items.length} folders were copied`);
            }
        },
        (round) => execFileSync('cp', ['-r', join(root, 'small'), join(root, `by-hand-${round}`)])
    );
    report.add({
        target: 'fm1',
        what: `a batch copies ${copied} files of 4 KiB, against cp -r`,
        value: ratio,
        most: [4, 2.5],
        of
    });
    for (let round = 0; round < rounds; round += 1) {
        rmSync(join(root, `copy-${round}`), { recursive: true });
        rmSync(join(root, `by-hand-${round}`), { recursive: true });
    }
}

async function measureChecksum({ admin, root, report }: Parts): Promise<void> {
    const file = join(root, 'large', 'one.bin');
    mkdirSync(join(root, 'large'));
    for (let part = 0; part < 16; part += 1) {
        appendFileSync(file, randomBytes(gibibyte / 16));
    }
    const sums = new Set<unknown>();
    const { ratio, of } = await compare(
        async () => {
            const [found] = await work<[{ checksum: string }]>(admin, 'checksums', {
                root: 'main',
                paths: ['large/one.bin']
            });
            sums.add(found.checksum);
        },
        () => sums.add(execFileSync('sha256sum', [file], { encoding: 'utf8' }).split(' ')[0])
    );
    if (sums.size !== 1) {
        throw new Error('The checksums differ');
    }
    report.add({
        target: 'fm2',
        what: 'sha256 of 1 GiB, against sha256sum',
        value: ratio,
        most: [1.3, 1.1],
        of
    });
}

async function measureDownload({ admin, panel, report }: Parts): Promise<void> {
    const before = memoryOf(panel.pid);
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, memoryOf(panel.pid))), 50);
    const hash = createHash('sha1');
    let bytes = 0;
    try {
        const answer = await fetch(
            `http://127.0.0.1:${panel.port}${base}/archive?root=main&path=large&format=tar.gz`,
            { headers: { authorization: `Bearer ${admin.token}` } }
        );
        for await (const chunk of answer.body ?? []) {
            hash.update(chunk as Uint8Array);
            bytes += (chunk as Uint8Array).byteLength;
        }
    } finally {
        clearInterval(watch);
    }
    if (bytes < gibibyte) {
        throw new Error(`The download ended after ${bytes} bytes`);
    }
    report.add({
        target: 'fm4',
        what: 'memory of a folder of 1 GiB that is downloaded',
        value: most - before,
        unit: 'MB',
        most: [40, 20]
    });
}

async function measureSearch({ admin, root, report }: Parts): Promise<void> {
    const line = 'a line of a log that has nothing to tell\n'.repeat(40);
    makeFiles(join(root, 'many'), searched, (index) =>
        index % 5_000 === 0 ? `${line}needle in the hay\n` : line
    );
    const { ratio, of } = await compare(
        async () => {
            const query = 'root=main&path=many&q=needle%20in&case=true';
            const { data } = await admin.get(`${base}/search/content?${query}`);
            if (data.length !== searched / 5_000) {
                throw new Error(`${data.length} lines were found`);
            }
        },
        () => execFileSync('grep', ['-rF', 'needle in', join(root, 'many')])
    );
    report.add({
        target: 'fm3',
        what: `a text in ${searched} files, against grep -rF`,
        value: ratio,
        most: [4, 2.5],
        of
    });
}

async function measureSize({ admin, root, report }: Parts): Promise<void> {
    makeFiles(join(root, 'entries'), counted, () => '');
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        times.push(
            await seconds(async () => {
                const { files } = await work(admin, 'size', { root: 'main', path: 'entries' });
                if (files !== counted) {
                    throw new Error(`${String(files)} files were counted`);
                }
            })
        );
    }
    report.add({
        target: 'fm5',
        what: `the size of ${counted} entries`,
        value: median(times),
        unit: 's',
        most: [3, 1.5]
    });
}
