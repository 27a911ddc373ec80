import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { engineHome } from '../../../../core/src/engine/files/home.ts';
import { readConfig } from '../../../../core/src/platform/config.ts';
import { swapPhases } from '../../../../core/src/plugins/manager/upgrade/ports.ts';
import { Client } from '../../../support/panel/client.ts';
import { ended } from '../../../support/plugins/panel.ts';
import { publishVersion } from '../../../support/plugins/versioned.ts';
import { freePort } from '../../../support/ports.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const password = 'a quiet harbour at dawn';
const rows = '@acme/portico-plugin-rows';
const path = '/api/plugins/rows';
const startMs = 120_000;

interface Running {
    readonly child: ChildProcess;
    readonly client: Client;
    /** How it ended. */
    readonly end: Promise<NodeJS.Signals | number | null>;
}

describe('kill -9 of the panel in every phase of a swap', { timeout: 480_000 }, () => {
    let npm: NpmRegistry;
    let root: string;
    let environment: NodeJS.ProcessEnv;
    let running: Running;
    const children = new Set<ChildProcess>();
    const acknowledged: string[] = [];

    const start = async (phase: string): Promise<Running> => {
        const child = spawn(
            process.execPath,
            [
                ...process.execArgv,
                join(import.meta.dirname, '../../../support/plugins/processes/swap-process.ts'),
                phase
            ],
            { stdio: ['ignore', 'pipe', 'inherit'], env: environment }
        );
        children.add(child);
        const end = new Promise<NodeJS.Signals | number | null>((resolve) =>
            child.once('close', (code, signal) => {
                children.delete(child);
                resolve(signal ?? code);
            })
        );
        const late = setTimeout(() => child.kill('SIGKILL'), startMs);
        for await (const line of createInterface({ input: child.stdout })) {
            const port = /^port (\d+)$/.exec(line)?.[1];
            if (port !== undefined) {
                clearTimeout(late);
                const client = new Client(Number(port));
                client.token = (await client.login('admin', password)).data.token as string;
                return { child, client, end };
            }
        }
        throw new Error('The panel did not start');
    };
    const stop = async (): Promise<void> => {
        running.child.kill('SIGTERM');
        expect(await running.end).to.equal(0);
    };
    /** Changes the version under steady writes until the panel is dead. */
    const changeUntilDead = async ({ client, end }: Running, phase: string, body: object): Promise<void> => {
        let dead = false;
        const write = async (): Promise<void> => {
            for (let n = 0; !dead; n += 1) {
                const text = `${phase} ${n}`;
                const answer = await client.post(`${path}/rows`, { text }).catch(() => null);
                if (answer?.status === 200) {
                    acknowledged.push(text);
                }
                await wait(5); // The swap needs the processor, too.
            }
        };
        const writing = 'restoreData' in body ? Promise.resolve() : write();
        expect((await client.put(path, body)).status).to.equal(202);
        expect([phase, await end]).to.equal([phase, 'SIGKILL']);
        dead = true;
        await writing;
    };
    /** It runs in one version, with its rows, and nothing is left of the swap. */
    const check = async ({ client }: Running, phase: string, version: string): Promise<void> => {
        const { data } = await client.get(path);
        expect([phase, data.state, data.version]).to.equal([phase, 'running', version]);
        const { data: found } = await client.get(`${path}/rows`);
        expect([phase, found.word]).to.equal([phase, version]);
        expect([phase, acknowledged.filter((text) => !(found.rows as string[]).includes(text))]).to.equal([
            phase,
            []
        ]);
        const tasks = (await client.get('/api/tasks')).data as {
            kind: string;
            state: string;
            error: { reason: string } | null;
        }[];
        expect([phase, tasks[0]?.state, tasks[0]?.error?.reason]).to.equal([phase, 'failed', 'INTERRUPTED']);
        const db = new Sqlite(join(root, 'data', 'portico.db'), { readonly: true });
        const kept = db
            .prepare<[], { n: number; pending: number; current: number; version: string }>(
                'select n, pending, current, version from plugin_data order by n'
            )
            .all();
        db.close();
        expect([
            phase,
            kept.filter(({ pending }) => pending === 1),
            kept.filter(({ current }) => current === 1).map((each) => each.version)
        ]).to.equal([phase, [], [version]]);
        expect([phase, readdirSync(join(root, 'data', 'plugin-data', 'rows')).toSorted()]).to.equal([
            phase,
            kept.map(({ n }) => String(n)).toSorted()
        ]);
    };

    before(async () => {
        npm = await startNpmRegistry();
        root = mkdtempSync(join(tmpdir(), 'portico-kill-'));
        environment = {
            PATH: process.env['PATH'],
            HOME: root,
            NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
            PORTICO_HOST: '127.0.0.1',
            PORTICO_PORT: '0',
            PORTICO_DATA_DIR: join(root, 'data'),
            PORTICO_ADMIN_PASSWORD: password,
            PORTICO_PLUGIN_DIRS: '',
            PORTICO_NPM_REGISTRY: npm.url,
            PORTICO_ENGINE_HTTP_PORT: String(await freePort()),
            PORTICO_ENGINE_HTTPS_PORT: String(await freePort())
        };
        await publishVersion(npm, '1.0.0');
        await publishVersion(npm, '2.0.0', { migrations: 2 });
    });
    after(async () => {
        children.forEach((child) => child.kill('SIGKILL'));
        await npm?.stop();
        const { persistent, runtime } = engineHome(
            join(root, 'data'),
            readConfig(environment, root).engineUser
        );
        [root, persistent, runtime].forEach((folder) => rmSync(folder, { recursive: true, force: true }));
    });

    it('leaves it running in exactly one of the two versions, with every acknowledged row', async () => {
        running = await start('');
        expect(
            (
                await ended(
                    running.client,
                    await running.client.post('/api/plugins', { package: rows, version: '1.0.0' })
                )
            ).result.state
        ).to.equal('running');
        await stop();
        running = await start(swapPhases[0]);
        // A start that shows what the last kill left is the one that is killed next.
        for (const [index, phase] of swapPhases.entries()) {
            await changeUntilDead(running, phase, { version: '2.0.0' });
            running = await start(swapPhases[index + 1] ?? 'stopped');
            await check(running, phase, phase === 'committed' ? '2.0.0' : '1.0.0');
        }
        expect(acknowledged.length).to.be.above(20);
        console.log(`      ${acknowledged.length} acknowledged rows, none lost`);
    });

    it('does so on the way back, too, where the data of then are wanted', async () => {
        for (const [phase, next] of [
            ['stopped', 'copied'],
            ['copied', 'started'],
            ['started', 'committed']
        ] as const) {
            const { client } = running;
            await client
                .post(`${path}/rows`, { text: `back ${phase}` })
                .then(() => acknowledged.push(`back ${phase}`));
            await changeUntilDead(running, phase, { version: '1.0.0', restoreData: true });
            running = await start(next);
            await check(running, phase, '2.0.0');
        }
        await changeUntilDead(running, 'committed', { version: '1.0.0', restoreData: true });
        acknowledged.splice(
            0,
            acknowledged.length,
            ...acknowledged.filter((text) => !text.startsWith('back'))
        );
        running = await start('');
        await check(running, 'committed', '1.0.0');
        await stop();
    });
});
