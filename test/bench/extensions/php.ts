/** Sites of PHP against bare parts: requests behind a bare Caddy, an account and a start by hand; changes under load, and memory. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    chmodSync,
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    statSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { PhpRig, withoutPhp } from '../../extensions/php/rig.ts';
import { makeRelease } from '../../extensions/php/stand-in.ts';
import { startCaddy } from '../../support/engine/caddy.ts';
import { freePort } from '../../support/ports.ts';
import { median, number, type Report } from '../report.ts';
import { compare, ratio, wrk } from '../servers/load.ts';

const fpm = '/usr/sbin/php-fpm8.2';
const script = '<?php echo "hello";';
const rounds = 5;
const reloads = 100;
const idleSites = 50;
const release = '7.6';

export async function bench(report: Report): Promise<void> {
    if (withoutPhp !== undefined) {
        console.log(`      not measured: ${withoutPhp}`);
        return;
    }
    const rig = await PhpRig.start();
    try {
        rig.use(makeRelease(release));
        await measureCreation(rig, report);
        const id = await rig.create('load', { release: '8.2' });
        rig.write('load', 'public/index.php', script);
        await measureRate(rig, report);
        await measureChanges(rig, id, report);
        await measureMemory(rig, report);
    } finally {
        await rig.close();
    }
}

/** A pool of PHP-FPM as an admin writes it, of the same size as that of a new site. */
async function startPool(folder: string, user: string): Promise<{ socket: string; end(): Promise<void> }> {
    mkdirSync(folder);
    const [socket, file] = [join(folder, 'fpm.sock'), join(folder, 'fpm.conf')];
    writeFileSync(
        file,
        `[global]\ndaemonize = no\nerror_log = ${join(folder, 'error.log')}\n[www]\nuser = ${user}\nlisten = ${socket}\nlisten.mode = 0666\npm = ondemand\npm.max_children = 5\npm.max_requests = 500\n`
    );
    const child: ChildProcess = spawn(fpm, ['--nodaemonize', '--fpm-config', file], { stdio: 'ignore' });
    while (!existsSync(socket)) {
        await wait(2);
    }
    return {
        socket,
        async end() {
            child.kill('SIGQUIT');
            await once(child, 'exit');
        }
    };
}

async function measureCreation(rig: PhpRig, report: Report): Promise<void> {
    const [ours, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
        let began = performance.now();
        await rig.create(`made${round}`, { release: '8.2' });
        ours.push(performance.now() - began);
        const account = `php-${rig.name(`bare${round}`)}`;
        began = performance.now();
        execFileSync('useradd', ['--system', '--user-group', '--no-create-home', '--', account]);
        const pool = await startPool(join(rig.top, `bare${round}`), account);
        bare.push(performance.now() - began);
        await pool.end();
    }
    report.add({
        target: 'ph3',
        what: 'a site against useradd and the start of PHP-FPM',
        value: median(ours) / median(bare),
        most: [3, 3],
        of: `${number(median(ours))} of ${number(median(bare))} ms`
    });
}

async function measureRate(rig: PhpRig, report: Report): Promise<void> {
    const pool = await startPool(join(rig.top, 'pool'), 'nobody');
    const caddy = await startCaddy();
    try {
        const root = join(rig.top, 'bare-root');
        mkdirSync(root);
        writeFileSync(join(root, 'index.php'), script);
        // The rig has set the mask of the panel.
        chmodSync(root, 0o755);
        chmodSync(join(root, 'index.php'), 0o644);
        const port = await freePort();
        const file = join(rig.top, 'Caddyfile');
        writeFileSync(
            file,
            `{\n\tadmin unix/${caddy.context.folders.adminSocket}\n\tauto_https off\n}\nhttp://127.0.0.1:${port} {\n\troot * ${root}\n\tphp_fastcgi unix/${pool.socket}\n\tfile_server\n}\n`
        );
        const adapted = execFileSync('caddy', ['adapt', '--config', file, '--adapter', 'caddyfile'], {
            stdio: ['ignore', 'pipe', 'ignore']
        });
        await caddy.load(JSON.parse(adapted.toString()) as Parameters<typeof caddy.load>[0]);
        const found = await compare(
            {
                ours: {
                    url: `http://127.0.0.1:${rig.panel.httpPort}/`,
                    headers: { host: 'load.test' },
                    pid: process.pid
                },
                bare: { url: `http://127.0.0.1:${port}/`, pid: caddy.pid }
            },
            { rounds, seconds: 3, connections: 16 }
        );
        report.add({
            target: 'ph1',
            what: 'requests through the engine against a bare pool and Caddy',
            value: ratio(found.ours, found.bare),
            least: [0.9, 0.9],
            of: `${number(found.ours.rate)} of ${number(found.bare.rate)} /s`
        });
    } finally {
        await caddy.close();
        await pool.end();
    }
}

/** What visitors lose while the site is changed. A change of the host may close connections between two requests: those are told apart. */
async function measureChanges(rig: PhpRig, id: number, report: Report): Promise<void> {
    const changes = [
        {
            ...{ target: 'ph2', what: `failed requests over ${reloads} reloads` },
            work: async () => {
                for (let round = 0; round < reloads; round += 1) {
                    await rig.post(`/sites/${id}/reload`);
                }
            }
        },
        {
            ...{ target: 'ph5', what: 'failed requests over a switch to another release' },
            work: async () => {
                const accepted = await rig.post(`/sites/${id}/switch`, {
                    ...{ release, percent: 50, observeSeconds: 5 }
                });
                const { state, error } = await rig.finish(accepted);
                if (state !== 'succeeded') {
                    throw new Error(`The switch failed: ${JSON.stringify(error)}`);
                }
            }
        }
    ];
    for (const { target, what, work } of changes) {
        let isOver = false;
        const working = work().finally(() => (isOver = true));
        let [requests, failed, cut] = [0, 0, 0];
        while (!isOver) {
            const run = await wrk({
                url: `http://127.0.0.1:${rig.panel.httpPort}/`,
                headers: { host: 'load.test' },
                ...{ seconds: 2, connections: 8 }
            });
            requests += run.requests;
            failed += run.failures;
            cut += run.cut;
        }
        await working;
        report.add({
            ...{ target, what, value: failed, unit: '', most: [0, 0] },
            of: `of ${number(requests)}; ${cut} connections were closed`
        });
    }
}

/** The share of each site in the memory of the machine while no visitor comes. */
async function measureMemory(rig: PhpRig, report: Report): Promise<void> {
    const users = new Set<number>();
    for (let at = 0; at < idleSites; at += 1) {
        await rig.create(`idle${at}`, { release: '8.2' });
        users.add(statSync(join(rig.top, 'www', rig.name(`idle${at}`))).uid);
    }
    const bytes = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map((pid) => shareOf(pid, users))
        .reduce((sum, share) => sum + share, 0);
    report.add({
        target: 'ph4',
        what: `memory of each of ${idleSites} idle sites`,
        value: bytes / 1e6 / idleSites,
        unit: 'MB',
        most: [20, 20]
    });
}

function shareOf(pid: string, users: ReadonlySet<number>): number {
    try {
        if (!users.has(statSync(`/proc/${pid}`).uid)) {
            return 0;
        }
        const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
        return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
    } catch {
        return 0; // It ended meanwhile.
    }
}
