/** The clock of cronjob with many tasks, what it says ahead, the search in output, and what a sandbox costs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

import { createCronjobRig, type CronjobRig } from '../../extensions/cronjob/rig.ts';
import { median, number, type Report } from '../report.ts';

const tasks = 1_000;
const kept = 200_000;
const rounds = 9;

export async function bench(report: Report): Promise<void> {
    await measureTimes(report);
    await measureSearch(report);
    await measureStarts(report);
    await measureSandbox(report);
}

/** Tasks as rows: making a thousand by the API is not what is measured. */
async function insertTasks(cron: CronjobRig, task: object): Promise<void> {
    const id = await cron.task(task);
    await cron.host.db.write(async (em) => {
        const columns = (await em.execute<{ name: string }[]>("select name from pragma_table_info('tasks')"))
            .map(({ name }) => `"${name}"`)
            .filter((name) => name !== '"id"')
            .join(', ');
        await em.execute(
            `insert into tasks (${columns}) with recursive n(x) as (select 2 union all select x + 1 from n where x < ${tasks})
             select ${columns} from n, tasks where tasks.id = ${id}`
        );
    });
}

async function measureTimes(report: Report): Promise<void> {
    const cron = await createCronjobRig();
    try {
        const blackouts = [{ from: '22:00', to: '06:00' }];
        await insertTasks(cron, { schedule: '17 * * * *', command: ['true'], blackouts });
        // Not one schedule for all: what they share is computed once.
        await cron.host.db.write((em) =>
            em.execute("update tasks set schedule = (id % 60) || ' ' || (id % 24) || ' * * *'")
        );
        const preview = { schedule: '*/7 * * * *', timezone: 'Europe/Berlin', count: 100, blackouts };
        const request = await fastest(() => cron.ask('GET', '/tags'));
        const times = await fastest(() => cron.ask('POST', '/schedule/preview', preview));
        report.add({
            target: 'cj1',
            what: 'a preview of 100 times with a blackout, without the request itself',
            value: times - request,
            unit: 'ms',
            most: [10, 5],
            of: `${number(times)} ms less the ${number(request)} ms of a list of tags`
        });
        const path = '/calendar?from=2026-06-01T00:00:00Z&to=2026-07-02T00:00:00Z';
        report.add({
            target: 'cj2',
            what: `a calendar of 31 days over ${tasks} tasks`,
            value: await fastest(() => cron.ask('GET', path)),
            unit: 'ms',
            most: [400, 200]
        });
    } finally {
        await cron.close();
    }
}

async function measureSearch(report: Report): Promise<void> {
    const cron = await createCronjobRig({ settings: { runsKept: 10_000 } });
    try {
        const id = await cron.task({ command: ['echo', 'nothing to see'] });
        const run = await cron.finish(id);
        await cron.host.db.write(async (em) => {
            const columns = (
                await em.execute<{ name: string }[]>("select name from pragma_table_info('runs')")
            )
                .map(({ name }) => `"${name}"`)
                .filter((name) => name !== '"id"')
                .join(', ');
            await em.execute(
                `insert into runs (${columns}) with recursive n(x) as (select 2 union all select x + 1 from n where x < ${kept})
                 select ${columns} from n, runs where runs.id = ${run.id}`
            );
            await em.execute(
                `insert into outputs (run_id, head, tail, total) select id, 'Backup of shop ' || id || char(10) || 'wrote 4711 files to /srv/backup/' || id || char(10), '', 80
                 from runs where id <> ${run.id}`
            );
            await em.execute("update outputs set head = head || 'a needle' where run_id = 3");
        });
        for (const [target, what, q] of [
            ['cj3', 'a word that one of them has', 'needle'],
            ['cj4', 'a word that no line has', 'absent-word']
        ] as const) {
            report.add({
                target,
                what: `a search in the output of ${kept} kept runs: ${what}`,
                value: await fastest(() => cron.ask('GET', `/output?q=${q}`)),
                unit: 'ms',
                most: [600, 300]
            });
        }
    } finally {
        await cron.close();
    }
}

/** All due in one second; `startedAt` of the last one says how late it was. */
async function measureStarts(report: Report): Promise<void> {
    const cron = await createCronjobRig();
    try {
        const due = Math.ceil(Date.now() / 1_000) * 1_000 + 5_000;
        const at = new Date(due);
        const schedule = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
        await insertTasks(cron, { schedule, command: ['true'] });
        await wait(due - Date.now() - 100);
        const before = process.cpuUsage();
        const runs = await allEnded(cron);
        const spent = cpuSeconds(before);
        const bare = await startBare();
        report.add({
            target: 'cj5',
            what: `${tasks} tasks that are due in one second, until the last one starts, 50 at a time`,
            value: (runs.last - due) / 1_000,
            unit: 's',
            most: [10, 5],
            of: `${number(spent)} s of processor time; bare, from this process: ${number(bare.seconds)} s, ${number(bare.spent)} s`
        });
        report.add({
            target: '',
            what: 'the same, processor time against as many bare starts',
            value: spent / bare.spent
        });
        report.add({
            target: 'cj6',
            what: 'the drift of the clock: the first of them, after it was due',
            value: runs.first - due,
            unit: 'ms',
            most: [100, 50]
        });
    } finally {
        await cron.close();
    }
}

/** Few looks: each costs the panel, which is this process. */
async function allEnded(cron: CronjobRig): Promise<{ readonly first: number; readonly last: number }> {
    for (;;) {
        const [count] = await cron.host.db.read((em) =>
            em.execute<{ done: number; first: number; last: number }[]>(
                'select count(*) as done, min(started_at) as first, max(started_at) as last from runs where finished_at is not null'
            )
        );
        if (count !== undefined && count.done >= tasks) {
            return count;
        }
        await wait(250);
    }
}

/** As many programs started by Node alone, 50 at a time, and waited for. */
async function startBare(): Promise<{ readonly seconds: number; readonly spent: number }> {
    const [began, before] = [performance.now(), process.cpuUsage()];
    let left = tasks;
    const work = async (): Promise<void> => {
        for (; left > 0; await once(spawn('true', { stdio: ['pipe', 'pipe', 'pipe'] }), 'close')) {
            left -= 1;
        }
    };
    await Promise.all(Array.from({ length: 50 }, work));
    return { seconds: (performance.now() - began) / 1_000, spent: cpuSeconds(before) };
}

/** Of this process since a reading. */
function cpuSeconds(since: NodeJS.CpuUsage): number {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1e6;
}

async function measureSandbox(report: Report): Promise<void> {
    const cron = await createCronjobRig();
    try {
        const [plain, boxed] = [
            await cron.task({ command: ['true'] }),
            await cron.task({ command: ['true'], sandbox: {} })
        ];
        const [without, within, bare]: [number[], number[], number[]] = [[], [], []];
        for (let round = 0; round < rounds; round += 1) {
            without.push(await lasted(cron, plain));
            within.push(await lasted(cron, boxed));
            bare.push((await startedAlone(...sandboxed)) - (await startedAlone('true', [])));
        }
        report.add({
            target: 'cj7',
            what: 'what a sandbox adds to a run',
            value: median(within) - median(without),
            unit: 'ms',
            most: [120, 60],
            of: `${number(median(within))} and ${number(median(without))} ms; bubblewrap alone adds ${number(median(bare))} ms to a bare start`
        });
    } finally {
        await cron.close();
    }
}

/** What the plugin asks of bubblewrap, but for the folders of the panel. */
const sandboxed = [
    'bwrap',
    [
        ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
        ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
        ...['/tmp', '/var/tmp', '/run', '/home', '/root', '/dev/shm'].flatMap((folder) => [
            '--tmpfs',
            folder
        ]),
        ...['--chdir', '/tmp', '--', 'true']
    ]
] as const;

/** Milliseconds until a program that Node starts has ended. */
async function startedAlone(file: string, args: readonly string[]): Promise<number> {
    const began = performance.now();
    const [code] = await once(spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] }), 'close');
    if (code !== 0) {
        throw new Error(`${file} ended with ${code}`);
    }
    return performance.now() - began;
}

async function lasted(cron: CronjobRig, task: number): Promise<number> {
    const { startedAt, finishedAt } = await cron.finish(task);
    return Date.parse(finishedAt) - Date.parse(startedAt);
}

async function fastest(ask: () => Promise<{ readonly status: number }>): Promise<number> {
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        const began = performance.now();
        const { status } = await ask();
        times.push(performance.now() - began);
        if (status !== 200) {
            throw new Error(`It answered ${status}`);
        }
    }
    return Math.min(...times);
}
