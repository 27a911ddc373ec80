/** Backups against restic alone: many files there and back, the memory for a large one, and a drill against the start of a panel. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { type BackupRig, createBackupRig } from '../../extensions/backup/rig.ts';
import { startPanel } from '../../support/panel/panel.ts';
import { ended } from '../../support/plugins/panel.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';

const run = promisify(execFile);
const rounds = 3;
const files = 10_000;
const fileBytes = 20_000;
const mebibyte = 2 ** 20;
const password = 'correct horse';
const base = '/api/plugins/backup';

export async function bench(report: Report): Promise<void> {
    if (!existsSync('/usr/bin/restic')) {
        console.log('      not measured: restic is not installed');
        return;
    }
    const rig = await createBackupRig({ timing: { patienceMs: 600_000 } });
    try {
        await measureManyFiles(rig, report);
        await measureMemory(rig, report);
    } finally {
        await rig.close();
    }
    await measureDrill(report);
}

/** Restic as an admin runs it. */
function restic(repository: string, ...args: readonly string[]): Promise<unknown> {
    return run('restic', ['--repo', repository, '--quiet', ...args], {
        env: { ...process.env, RESTIC_PASSWORD: password }
    });
}

async function took(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
}

/** Each round has repositories of its own, so that each stores all files. */
async function measureManyFiles(rig: BackupRig, report: Report): Promise<void> {
    const source = join(rig.root, 'many');
    mkdirSync(source);
    for (let at = 0; at < files; at += 1) {
        writeFileSync(join(source, String(at)), randomBytes(fileBytes));
    }
    const backups: { readonly ours: number[]; readonly bare: number[] } = { ours: [], bare: [] };
    const restores: { readonly ours: number[]; readonly bare: number[] } = { ours: [], bare: [] };
    for (let round = 0; round < rounds; round += 1) {
        const bare = join(rig.root, `bare${round}`);
        await restic(bare, 'init');
        backups.bare.push(await took(() => restic(bare, 'backup', source)));
        restores.bare.push(
            await took(() => restic(bare, 'restore', 'latest', '--target', join(rig.root, `b${round}`)))
        );
        const id = await rig.repository({
            ...{ name: `many${round}`, type: 'local', path: join(rig.root, `ours${round}`) }
        });
        const plan = await rig.made('POST', '/plans', {
            ...{ name: `many${round}`, repositoryId: id, sources: [{ type: 'folder', path: source }] }
        });
        backups.ours.push(await took(() => succeeded(rig.run(plan.id as number))));
        const [snapshot] = await rig.made('GET', `/repositories/${id}/snapshots`);
        restores.ours.push(
            await took(() =>
                succeeded(
                    rig.ended('POST', `/repositories/${id}/snapshots/${snapshot.id}/restore`, {
                        ...{ items: [{ path: source }], folder: join(rig.root, `o${round}`) }
                    })
                )
            )
        );
        for (const name of ['bare', 'ours', 'b', 'o']) {
            rmSync(join(rig.root, `${name}${round}`), { recursive: true });
        }
    }
    for (const [target, what, times, most] of [
        ['bu1', 'a backup of 10,000 files against restic', backups, 1.15],
        ['bu2', 'their restore against restic', restores, 1.2]
    ] as const) {
        report.add({
            ...{ target, what, most: [most, most] },
            value: median(times.ours) / median(times.bare),
            of: `${number(median(times.ours))} of ${number(median(times.bare))} ms`
        });
    }
    rmSync(source, { recursive: true });
}

async function succeeded(work: Promise<{ readonly state: string }>): Promise<void> {
    const { state } = await work;
    if (state !== 'succeeded') {
        throw new Error(`It ended as ${state}`);
    }
}

async function measureMemory(rig: BackupRig, report: Report): Promise<void> {
    const source = join(rig.root, 'large');
    mkdirSync(source);
    {
        await using file = await open(join(source, 'file'), 'w');
        for (let at = 0; at < 1_024; at += 1) {
            await file.write(randomBytes(mebibyte));
        }
    }
    const id = await rig.repository({ name: 'large', type: 'local', path: join(rig.root, 'repository') });
    const plan = await rig.made('POST', '/plans', {
        ...{ name: 'large', repositoryId: id, sources: [{ type: 'folder', path: source }] }
    });
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
    await succeeded(rig.run(plan.id as number));
    const [snapshot] = await rig.made('GET', `/repositories/${id}/snapshots`);
    const path = encodeURIComponent(join(source, 'file'));
    const whole = await rig.host
        .as('admin')
        .fetch('GET', `/repositories/${id}/snapshots/${snapshot.id}/content?path=${path}`);
    let bytes = 0;
    for await (const chunk of whole.body ?? []) {
        bytes += (chunk as Uint8Array).length;
    }
    clearInterval(watch);
    if (bytes !== 1_024 * mebibyte) {
        throw new Error(`The download has ${bytes} bytes`);
    }
    report.add({
        ...{ target: 'bu3', what: 'memory of the panel for a backup and a download of 1 GiB' },
        ...{ value: (most - before) / mebibyte, unit: 'MiB', most: [64, 64] }
    });
}

/** The panel proves its own backup: it is restored, and booted in a process of its own. */
async function measureDrill(report: Report): Promise<void> {
    const root = mkdtempSync(join(tmpdir(), 'portico-drill-'));
    mkdirSync(join(root, 'extensions'));
    symlinkSync(join(import.meta.dirname, '../../../extensions/backup'), join(root, 'extensions', 'backup'));
    const environment = { PORTICO_PLUGIN_DIRS: join(root, 'extensions') };
    const began = performance.now();
    const panel = await startPanel({ environment });
    await panel.panel.settled();
    const start = performance.now() - began;
    try {
        const done = async (path: string, body: object = {}) => {
            const task = await ended(panel.client, await panel.client.post(base + path, body));
            await succeeded(Promise.resolve(task));
            return task.result as Record<string, number>;
        };
        const { repositoryId } = await done('/repositories', {
            ...{ name: 'disk', type: 'local', path: join(root, 'repository'), password }
        });
        const { data } = await panel.client.post(`${base}/plans`, {
            ...{ name: 'panel', repositoryId, sources: [{ type: 'panel' }] }
        });
        const { data: begun } = await panel.client.post(`${base}/plans/${data.id}/run`);
        await until(
            async () => (await panel.client.get(`${base}/runs/${begun.id}`)).data.finishedAt !== null,
            'the run ends',
            120_000
        );
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
            times.push(await took(() => done(`/plans/${data.id}/drill`)));
        }
        report.add({
            ...{ target: 'bu4', what: 'a drill of the panel against its start', most: [3, 3] },
            value: median(times) / start,
            of: `${number(median(times))} of ${number(start)} ms`
        });
    } finally {
        await panel.close();
        rmSync(root, { recursive: true, force: true });
    }
}
