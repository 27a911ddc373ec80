/** What plugins cost: their memory, the way to them, a request, and a swap. */
import { EventEmitter } from 'node:events';
import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import { server as createHapi } from '@hapi/hapi';

import type { Answer } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { createPluginFolder, helloRoute, pluginModule } from '../../support/plugins/folder.ts';
import { ended } from '../../support/plugins/panel.ts';
import { versionedPackage } from '../../support/plugins/versioned.ts';
import { packageArchive } from '../../support/registry/archive.ts';
import { median, number, type Report } from '../report.ts';
import { startChild } from '../servers/child.ts';
import { compare, memoryOf, ratio } from '../servers/load.ts';
import type { PluginCosts, PluginCostsAsked } from '../servers/plugin-costs.ts';
import type { PluginGateway } from '../servers/plugin-gateway.ts';

const plugins = 12;
const starts = 3;
const swaps = 3;

export async function bench(report: Report): Promise<void> {
    await dispatching(report);
    await inProcess(report);
    await booting(report);
    await swapping(report);
}

async function dispatching(report: Report): Promise<void> {
    const child = await startChild<PluginGateway>('plugin-gateway.ts', {});
    const bare = await startChild<number>('two-hapi.ts', {});
    try {
        const alone = (path: string) => ({ url: `http://127.0.0.1:${bare.said}${path}`, pid: bare.pid });
        const of = (path: string) => ({
            url: `http://127.0.0.1:${child.said.port}${path}`,
            headers: { authorization: 'Bearer admin' },
            pid: child.pid
        });
        const found = await compare(
            {
                plain: of('/api/bench/probe/plain'),
                pluginPlain: of('/api/plugins/probe/plain'),
                list: of('/api/bench/probe/things'),
                pluginList: of('/api/plugins/probe/things'),
                first: alone('/first/plain'),
                second: alone('/second/plain')
            },
            { rounds: 9, seconds: 1 }
        );
        for (const [what, ours, core] of [
            ["a plugin's route against the same in the core", 'pluginPlain', 'plain'],
            ['the same, with a query and a list of twenty', 'pluginList', 'list']
        ] as const) {
            report.add({
                target: '4',
                what,
                value: ratio(found[ours], found[core]),
                least: [0.9, 0.95],
                of: `${number(found[ours].rate)} of ${number(found[core].rate)} /s`
            });
            report.add({
                target: '4',
                what: "its processor time: the core's against the plugin's",
                value: 1 / ratio(found[ours], found[core], 'cpu'),
                least: [0.95, 1],
                of: `${number(found[core].cpu)} of ${number(found[ours].cpu)} µs`
            });
        }
        report.add({
            target: '',
            what: 'processor time of two bare hapi servers with a hand-over: the first against the second',
            value: 1 / ratio(found.second, found.first, 'cpu'),
            of: `${number(found.first.cpu)} of ${number(found.second.cpu)} µs`
        });
        report.add({
            target: '',
            what: "what a plugin's route costs more than one of the core, against bare hapi",
            value: (found.pluginPlain.cpu - found.plain.cpu) / found.first.cpu,
            of: `${number(found.pluginPlain.cpu - found.plain.cpu)} of ${number(found.first.cpu)} µs`
        });
    } finally {
        await bare.close();
        await child.close();
        rmSync(child.said.folder, { recursive: true, force: true });
    }
}

async function inProcess(report: Report): Promise<void> {
    const child = await startChild<PluginCosts>(
        'plugin-costs.ts',
        { mounts: [10, 100], rounds: 15, cycles: 100, kept: 50 } satisfies PluginCostsAsked,
        ['--expose-gc']
    );
    try {
        const { mounting, cycle, compiled, kept, hook, loop, plan, call } = child.said;
        for (const { routes, milliseconds } of mounting) {
            const bare = await bareServer(routes);
            report.add({
                target: '',
                what: `mounting a plugin of ${routes} routes against a bare hapi server with them`,
                value: milliseconds / bare,
                of: `${number(milliseconds)} of ${number(bare)} ms`
            });
        }
        report.add({
            target: '5',
            what: '12 taps of 12 plugins, through the boundary, against a plain awaited loop',
            value: hook / loop,
            most: [20, 10],
            of: `${number(hook)} of ${number(loop)} ns`
        });
        report.add({
            target: '18',
            what: '`api.plan` of an update against the update, by `api.call`',
            value: plan / call,
            most: [4, 2],
            of: `${number(plan / 1000)} of ${number(call / 1000)} µs`
        });
        report.add({
            target: '20',
            what: 'heap that each mount and close leaves behind, over 100',
            value: cycle,
            unit: 'KiB',
            most: [1, 0.5],
            of: `and ${number(compiled)} KiB of code that V8 compiled meanwhile`
        });
        report.add({
            target: '',
            what: 'heap of a mounted plugin with a database and ten routes',
            value: kept,
            unit: 'KiB'
        });
    } finally {
        await child.close();
        rmSync(child.said.folder, { recursive: true, force: true });
    }
}

/** The median time to make, start and stop a hapi server, in milliseconds. */
async function bareServer(routes: number): Promise<number> {
    const taken: number[] = [];
    for (let round = 0; round < 15; round += 1) {
        const began = performance.now();
        const listener = Object.assign(new EventEmitter(), {
            close: (done?: () => void) => done?.(),
            address: () => null
        });
        const hapi = createHapi({
            listener: listener as never, // it never listens
            autoListen: false,
            operations: { cleanStop: false }
        });
        for (let n = 0; n < routes; n += 1) {
            hapi.route({ method: 'GET', path: `/route${n}/{id}`, handler: () => ({ n }) });
        }
        await hapi.start();
        taken.push(performance.now() - began);
        await hapi.stop();
    }
    return median(taken);
}

async function booting(report: Report): Promise<void> {
    const folder = createPluginFolder();
    const bare = await createPanelProcess();
    const full = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
    try {
        for (let n = 0; n < plugins; n += 1) {
            folder.write(
                `bench-${n}`,
                pluginModule(
                    `${helloRoute}\nctx.hooks.tap('host.afterChange', () => undefined);\nctx.onStart(() => undefined);`,
                    {
                        more: "settings: joi.object({ word: joi.string() }), migrations: [{ name: '1', up: ['create table item (id integer primary key)'] }],"
                    }
                )
            );
        }
        const [without, ready, all]: [number[], number[], number[]] = [[], [], []];
        for (let round = -1; round < starts; round += 1) {
            const took = [await bare.start(), await full.start()] as const;
            const began = performance.now();
            await running(full);
            if (round >= 0) {
                without.push(took[0]);
                ready.push(took[1]);
                all.push(took[1] + performance.now() - began);
            }
            if (round < starts - 1) {
                await bare.end('SIGTERM');
                await full.end('SIGTERM');
            }
        }
        await wait(500);
        const [light, heavy] = [memoryOf(bare.pid), memoryOf(full.pid)];
        report.add({
            target: '',
            what: `ready with ${plugins} plugins against none`,
            value: median(ready) / median(without),
            of: `${number(median(ready))} of ${number(median(without))} ms`
        });
        report.add({
            target: '',
            what: `until all ${plugins} run, against ready without`,
            value: median(all) / median(without),
            of: `${number(median(all))} ms`
        });
        report.add({
            target: '',
            what: `memory with ${plugins} plugins against none`,
            value: heavy / light,
            of: `${number(heavy)} of ${number(light)} MB, ${number((heavy - light) / plugins)} each`
        });
    } finally {
        await bare.close();
        await full.close();
        folder.remove();
    }
}

async function running(panel: PanelProcess): Promise<void> {
    const client = await panel.login();
    for (let turns = 0; turns < 2_000; turns += 1) {
        const { data } = await client.get('/api/plugins');
        if ((data as { state: string }[]).filter(({ state }) => state === 'running').length >= plugins) {
            return;
        }
        await wait(5);
    }
    throw new Error('The plugins do not run');
}

async function swapping(report: Report): Promise<void> {
    const panel = await createPanelProcess();
    try {
        await panel.start();
        const client = await panel.login();
        const headers = { authorization: `Bearer ${client.token}` };
        const put = async (version: string): Promise<void> => {
            const answer = await fetch(`http://127.0.0.1:${panel.port}/api/plugins`, {
                method: 'POST',
                headers: { ...headers, 'content-type': 'application/gzip' },
                body: packageArchive(...versionedPackage(version))
            });
            const task = await ended(client, {
                status: answer.status,
                data: (JSON.parse(await answer.text()) as { data: Answer['data'] }).data,
                text: ''
            });
            if (task.state !== 'succeeded') {
                throw new Error(`The plugin did not come: ${JSON.stringify(task)}`);
            }
        };
        await put('1.0.0');
        const read = (path: string): Promise<void> =>
            new Promise((resolve, reject) => {
                request({ port: panel.port, host: '127.0.0.1', path, headers }, (answer) => {
                    answer.resume();
                    answer.once('end', () =>
                        answer.statusCode === 200
                            ? resolve()
                            : reject(new Error(`${path} answered ${answer.statusCode}`))
                    );
                })
                    .once('error', reject)
                    .end();
            });
        /** The longest time that one of four readers waited, in milliseconds. */
        const longest = async (path: string, during: () => Promise<void>): Promise<number> => {
            let [open, most] = [true, 0];
            const reader = async (): Promise<void> => {
                while (open) {
                    const began = performance.now();
                    await read(path);
                    most = Math.max(most, performance.now() - began);
                }
            };
            const all = Promise.all(Array.from({ length: 4 }, reader));
            await Promise.race([during(), all]);
            open = false;
            await all;
            return most;
        };
        await longest('/api/plugins/rows/word', () => wait(1_000));
        const [quiet, own, other]: [number[], number[], number[]] = [[], [], []];
        for (let n = 1; n <= swaps; n += 1) {
            quiet.push(await longest('/api/plugins/rows/word', () => wait(1_000)));
            own.push(await longest('/api/plugins/rows/word', () => put(`1.${n}.0`)));
            other.push(await longest('/api/auth/me', () => put(`1.${n}.1`)));
        }
        report.add({
            target: '',
            what: 'longest that a reader of a plugin waits while it is exchanged',
            value: median(own),
            unit: 'ms',
            of: `${number(median(quiet))} ms otherwise; none failed`
        });
        report.add({
            target: '',
            what: 'longest that a reader of the core waits meanwhile',
            value: median(other),
            unit: 'ms'
        });
    } finally {
        await panel.close();
    }
}
