/** Backups against restic alone: many files there and back, the memory for a large one, and a drill against the start of a panel. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
    cpSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type BackupRig, createBackupRig, permissions } from '../../extensions/backup/rig.ts';
import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { ended } from '../../support/plugins/panel.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';
import { memoryOf } from '../servers/load.ts';

const rounds = 3;
const files = Number(process.env['PORTICO_BENCH_FILES'] ?? 10_000);
const fileBytes = 20_000;
const mebibytes = Number(process.env['PORTICO_BENCH_MEBIBYTES'] ?? 1_024);
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
    } finally {
        await rig.close();
    }
    await measurePanel(report);
}

/** Restic as an admin runs it; in a session of its own, as the panel runs it: a kernel may give each session the same share of a busy machine. */
async function restic(repository: string, ...args: readonly string[]): Promise<void> {
    const child = spawn('restic', ['--repo', repository, '--quiet', ...args], {
        env: { ...process.env, RESTIC_PASSWORD: password },
        detached: true,
        stdio: ['ignore', 'ignore', 'inherit']
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) {
        throw new Error(`restic ended with ${code}`);
    }
}

/** What work takes, in milliseconds. */
interface Took {
    readonly wall: number;
    /** Processor time of this process, and of the programs that it started and that have ended. */
    readonly processor: number;
}

async function took(work: () => Promise<unknown>): Promise<Took> {
    const [began, spent] = [performance.now(), processorMs()];
    await work();
    return { wall: performance.now() - began, processor: processorMs() - spent };
}

function processorMs(): number {
    const fields = readFileSync('/proc/self/stat', 'utf8')
        .replace(/^.*\)\s/s, '')
        .split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

/** Each round has repositories of its own, so that each stores all files. All have one key: what it costs to derive it is chosen by `init`. */
async function measureManyFiles(rig: BackupRig, report: Report): Promise<void> {
    const source = join(rig.root, 'many');
    mkdirSync(source);
    for (let at = 0; at < files; at += 1) {
        writeFileSync(join(source, String(at)), randomBytes(fileBytes));
    }
    const empty = join(rig.root, 'empty');
    await restic(empty, 'init');
    const backups: { readonly ours: Took[]; readonly bare: Took[] } = { ours: [], bare: [] };
    const restores: { readonly ours: Took[]; readonly bare: Took[] } = { ours: [], bare: [] };
    for (let round = 0; round < rounds; round += 1) {
        const bare = join(rig.root, `bare${round}`);
        const path = join(rig.root, `ours${round}`);
        cpSync(empty, bare, { recursive: true });
        cpSync(empty, path, { recursive: true });
        backups.bare.push(await took(() => restic(bare, 'backup', source)));
        restores.bare.push(
            await took(() => restic(bare, 'restore', 'latest', '--target', join(rig.root, `b${round}`)))
        );
        const id = await rig.repository({
            ...{ name: `many${round}`, type: 'local', path, mode: 'open' }
        });
        const plan = await rig.made('POST', '/plans', {
            ...{ name: `many${round}`, repositoryId: id, sources: [{ type: 'folder', path: source }] }
        });
        backups.ours.push(await took(() => succeeded(backedUp(rig, plan.id as number))));
        // Once a day a run is followed by a look at the sizes.
        await until(
            async () => (await rig.made('GET', `/repositories/${id}`)).storedBytes !== null,
            'the sizes',
            120_000
        );
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
        for (const name of ['b', 'o']) {
            const back = readdirSync(join(rig.root, `${name}${round}`, source));
            if (back.length !== files) {
                throw new Error(`${back.length} files came back`);
            }
        }
        for (const name of ['bare', 'ours', 'b', 'o']) {
            rmSync(join(rig.root, `${name}${round}`), { recursive: true });
        }
    }
    for (const [target, what, times, most] of [
        ['bu1', `a backup of ${files} files against restic`, backups, 1.15],
        ['bu2', 'their restore against restic', restores, 1.2]
    ] as const) {
        for (const kind of ['wall', 'processor'] as const) {
            const [ours, bare] = [times.ours, times.bare].map((all) => median(all.map((each) => each[kind])));
            report.add({
                value: (ours ?? NaN) / (bare ?? NaN),
                of: `${number(ours ?? NaN)} of ${number(bare ?? NaN)} ms`,
                ...(kind === 'wall'
                    ? { target, what, most: [most, most] }
                    : { target: '', what: 'the same in processor time' })
            });
        }
    }
    rmSync(source, { recursive: true });
}

/** Runs a plan, and waits for its end without asking again and again. */
async function backedUp(rig: BackupRig, planId: number): Promise<{ readonly state: string }> {
    const { id } = await rig.made('POST', `/plans/${planId}/run`, {});
    let last: unknown;
    for await (const { data } of rig.host.as({ permissions }).events(`/runs/${id}/log`)) {
        last = data;
    }
    return last as { readonly state: string };
}

async function succeeded(work: Promise<{ readonly state: string }>): Promise<void> {
    const { state } = await work;
    if (state !== 'succeeded') {
        throw new Error(`It ended as ${state}`);
    }
}

/** The panel as admins start it, with this plugin and one repository. */
interface Parts {
    readonly root: string;
    readonly report: Report;
    readonly panel: PanelProcess;
    readonly admin: Client;
    readonly repositoryId: number;
    /** How long it took to start. */
    readonly startMs: number;
}

async function measurePanel(report: Report): Promise<void> {
    const root = mkdtempSync(join(tmpdir(), 'portico-backup-bench-'));
    mkdirSync(join(root, 'extensions'));
    symlinkSync(join(import.meta.dirname, '../../../extensions/backup'), join(root, 'extensions', 'backup'));
    const panel = await createPanelProcess({
        environment: { PORTICO_PLUGIN_DIRS: join(root, 'extensions') },
        by: ['setsid'] // a session of its own, as what it starts has
    });
    try {
        await panel.start(); // makes its database
        await panel.end('SIGTERM');
        const startMs = await panel.start();
        const admin = await panel.login();
        await until(
            async () => (await admin.get('/api/plugins/backup')).data?.state === 'running',
            'the plugin to run',
            60_000
        );
        const { repositoryId = 0 } = await done(admin, '/repositories', {
            ...{ name: 'disk', type: 'local', path: join(root, 'repository'), password }
        });
        const parts = { root, report, panel, admin, repositoryId, startMs };
        await measureDrill(parts);
        await measureMemory(parts);
    } finally {
        await panel.close();
        rmSync(root, { recursive: true, force: true });
    }
}

/** Asks for a task, and waits for its end. */
async function done(admin: Client, path: string, body: object = {}): Promise<Record<string, number>> {
    const task = await ended(admin, await admin.post(base + path, body));
    await succeeded(Promise.resolve(task));
    return task.result as Record<string, number>;
}

/** Makes a plan and runs it. */
async function planned({ admin, repositoryId }: Parts, source: object): Promise<number> {
    const { data } = await admin.post(`${base}/plans`, { name: 'plan', repositoryId, sources: [source] });
    const { data: begun } = await admin.post(`${base}/plans/${data.id}/run`);
    const run = await until(
        async () => {
            const { data: found } = await admin.get(`${base}/runs/${begun.id}`);
            return found.finishedAt === null ? null : (found as { readonly state: string });
        },
        'the run ends',
        300_000
    );
    await succeeded(Promise.resolve(run));
    return data.id as number;
}

async function measureMemory(parts: Parts): Promise<void> {
    const { root, report, panel, admin, repositoryId } = parts;
    const source = join(root, 'large');
    mkdirSync(source);
    {
        await using file = await open(join(source, 'file'), 'w');
        for (let at = 0; at < mebibytes; at += 1) {
            await file.write(randomBytes(mebibyte));
        }
    }
    const before = memoryOf(panel.pid);
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, memoryOf(panel.pid))), 20);
    const planId = await planned(parts, { type: 'folder', path: source });
    const snapshots = `${base}/repositories/${repositoryId}/snapshots`;
    const { data } = await admin.get(`${snapshots}?planId=${planId}`);
    const path = encodeURIComponent(join(source, 'file'));
    const whole = await fetch(
        `http://127.0.0.1:${panel.port}${snapshots}/${data[0].id}/content?path=${path}`,
        { headers: { authorization: `Bearer ${admin.token}` } }
    );
    let bytes = 0;
    for await (const chunk of whole.body ?? []) {
        bytes += (chunk as Uint8Array).length;
    }
    clearInterval(watch);
    if (bytes !== mebibytes * mebibyte) {
        throw new Error(`The download has ${bytes} bytes`);
    }
    report.add({
        ...{ target: 'bu3', what: `memory of the panel for a backup and a download of ${mebibytes} MiB` },
        ...{ value: most - before, unit: 'MiB', most: [64, 64] }
    });
}

/** The panel proves its own backup: it is restored, and booted in a process of its own. */
async function measureDrill(parts: Parts): Promise<void> {
    const { report, admin, startMs } = parts;
    const planId = await planned(parts, { type: 'panel' });
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        times.push((await took(() => done(admin, `/plans/${planId}/drill`))).wall);
    }
    report.add({
        ...{ target: 'bu4', what: 'a drill of the panel against its start', most: [3, 3] },
        value: median(times) / startMs,
        of: `${number(median(times))} of ${number(startMs)} ms`
    });
}
