/** A panel that is killed: what its servers, and the work on them, are after that. */
import { execFileSync } from 'node:child_process';
import {
    chmodSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import pg from 'pg';

import { ServicesRig } from '../../support/machine/services.ts';
import type { Answer, Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { type Ended, ended } from '../../support/plugins/panel.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { portRange } from './harness.ts';
import { noPostgresql } from './instances.ts';
import { heldTable, newer, noUpgrade, older, serversOn, takingData } from './releases.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/database';

describe('database servers of a panel that is killed', { timeout: 240_000 }, () => {
    let top: string;
    let panel: PanelProcess;
    let client: Client;

    before({ timeout: 120_000 }, async () => {
        if (noPostgresql !== undefined) {
            return;
        }
        top = mkdtempSync(join(tmpdir(), 'portico-database-killed-'));
        chmodSync(top, 0o755);
        mkdirSync(join(top, 'plugins'));
        const extension = fileURLToPath(new URL('../../../extensions/database', import.meta.url));
        execFileSync('ln', ['-s', extension, join(top, 'plugins', 'database')]);
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: join(top, 'plugins') } });
        await panel.start();
        client = await panel.login();
        await client.put('/api/plugins/database', {
            settings: { dataFolder: join(top, 'data'), ports: await portRange() }
        });
    });
    after({ timeout: 120_000 }, async () => {
        if (panel !== undefined) {
            await new ServicesRig(panel.dataDir).end();
            await panel.close();
            rmSync(top, { recursive: true, force: true });
        }
    });

    itUnless(noPostgresql, it)(
        'copy a server again whose copy was cut, and leave nothing of one that was to be as it was',
        async () => {
            const made = await ended(
                client,
                await client.post(`${base}/servers`, {
                    name: 'past',
                    kind: 'postgresql',
                    mode: 'managed',
                    preset: 'tiny',
                    pointInTime: true
                })
            );
            expect(made.state, JSON.stringify(made.error)).to.equal('succeeded');
            const id = (made.result as { serverId: number }).serverId;
            const past = `${base}/servers/${id}/point-in-time`;
            const bases = join(top, 'data/servers', String(id), 'archive/bases');
            const copies = () => (existsSync(bases) ? readdirSync(bases) : []);
            await until(() => copies().length === 1, 'the copy', 60_000);
            await panel.end('SIGKILL');
            const [cut] = copies();
            await panel.start();
            client = await panel.login();
            const isWhole = async () => typeof (await client.get(past)).data?.from === 'string';
            await until(isWhole, 'a copy that is complete', 60_000);
            // Either it was complete, or another one is in its place.
            const [only, ...more] = copies();
            expect(more).to.equal([]);
            expect(existsSync(join(bases, only as string, 'backup_label'))).to.be.true();
            expect(statSync(join(bases, only as string, 'global/pg_control')).size).to.be.above(0);
            expect(Number(only) >= Number(cut)).to.be.true();

            // A new server as this one was, whose data are there only in part: nothing of it stays, and nothing of it runs.
            const { to } = (await client.get(past)).data;
            await client.post(`${past}/restore`, { at: to, name: 'back' });
            const half = `/servers/${id + 1}/data`;
            await until(() => existsSync(join(top, `data${half}/global`)), 'the half of the data', 60_000);
            await panel.end('SIGKILL');
            await panel.start();
            client = await panel.login();
            const names = (await client.get(`${base}/servers`)).data.map(
                ({ name }: { name: string }) => name
            );
            expect(names).to.equal(['past']);
            // After three starts that were cut, the panel would load no plugin.
            await panel.end('SIGTERM');
            await panel.start();
            client = await panel.login();
            expect(readdirSync(join(top, 'data/servers'))).to.equal([String(id)]);
            expect(serversOn(half)).to.equal([]);
            expect(copies()).to.equal([only]);
            const again = await ended(client, await client.post(`${past}/restore`, { at: to, name: 'back' }));
            expect(again.state, JSON.stringify(again.error)).to.equal('succeeded');
            const back = `${base}/servers/${(again.result as { serverId: number }).serverId}`;
            expect((await client.get(back)).data.state).to.equal('online');
            await ended(client, await client.delete(`${back}?data=delete`));
            const gone = await ended(client, await client.delete(`${base}/servers/${id}?data=delete`));
            expect(gone.state, JSON.stringify(gone.error)).to.equal('succeeded');
        }
    );

    itUnless(noPostgresql, it)('serve on, and nothing is left of one that was being made', async () => {
        const made = await ended(
            client,
            await client.post(`${base}/servers`, {
                name: 'kept',
                kind: 'postgresql',
                mode: 'managed',
                preset: 'tiny'
            })
        );
        expect(made.state, JSON.stringify(made.error)).to.equal('succeeded');
        const id = (made.result as { serverId: number }).serverId;
        const server = `${base}/servers/${id}`;
        await client.post(`${server}/databases`, { name: 'shop' });
        const user = await client.post(`${server}/users`, {
            username: 'web',
            grants: [{ database: 'shop', level: 'owner' }]
        });
        const { port } = (await client.get(server)).data.listen as { port: number };
        const own = new pg.Client({
            host: '127.0.0.1',
            port,
            user: 'web',
            password: user.data.password as string,
            database: 'shop'
        });
        await own.connect();
        try {
            await own.query('create table kept (n int); insert into kept values (7)');
            await client.post(`${base}/servers`, { name: 'half', kind: 'postgresql', mode: 'managed' });
            const slow = 'select pg_sleep(900)';
            const running = client
                .post(`${server}/query`, { database: 'shop', sql: slow, timeoutSeconds: 300 })
                .catch(() => null);
            const statements = async () =>
                (await client.get(`${server}/sessions`)).data.filter(
                    ({ sql }: { sql: string }) => sql === slow
                ).length;
            await until(async () => (await statements()) === 1, 'the statement');
            await until(() => existsSync(join(top, 'data/servers', String(id + 1), 'data/base')));
            await panel.end('SIGKILL');
            await running;

            expect((await own.query('select n from kept')).rows).to.equal([{ n: 7 }]);
            await panel.start();
            client = await panel.login();
            await until(async () => (await client.get(server)).data?.state === 'online');
            expect(
                (await client.get(`${base}/servers`)).data.map(({ name }: { name: string }) => name)
            ).to.equal(['kept']);
            expect(readdirSync(join(top, 'data/servers'))).to.equal([String(id)]);
            await until(async () => (await statements()) === 0, 'the end of the statement');
        } finally {
            await own.end();
        }
        const pid = Number(
            readFileSync(join(top, 'data/servers', String(id), 'data/postmaster.pid'), 'utf8').split('\n')[0]
        );
        const gone = await ended(client, await client.delete(`${server}?data=delete`));
        expect(gone.state, JSON.stringify(gone.error)).to.equal('succeeded');
        expect(existsSync(`/proc/${pid}`)).to.be.false();
        expect(readdirSync(join(top, 'data/servers'))).to.equal([]);
    });

    itUnless(noUpgrade, it)('have all of an upgrade or nothing', async () => {
        const settled = async (accepted: Answer): Promise<Ended> => {
            const task = await ended(client, accepted);
            expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            return task;
        };
        const made = await settled(
            await client.post(`${base}/servers`, {
                name: 'raised',
                kind: 'postgresql',
                mode: 'managed',
                preset: 'tiny',
                release: older
            })
        );
        const id = (made.result as { serverId: number }).serverId;
        const server = `${base}/servers/${id}`;
        await client.post(`${server}/databases`, { name: 'shop' });
        const user = await client.post(`${server}/users`, {
            username: 'web',
            grants: [{ database: 'shop', level: 'owner' }]
        });
        const { port } = (await client.get(server)).data.listen as { port: number };
        const sql = async (text: string): Promise<object[]> => {
            const own = new pg.Client({
                host: '127.0.0.1',
                port,
                user: 'web',
                password: user.data.password as string,
                database: 'shop'
            });
            await own.connect();
            try {
                return (await own.query(text)).rows as object[];
            } finally {
                await own.end();
            }
        };
        /** Kills the panel when there is such a server, and starts it again. Returns the release that then serves the row. */
        const killWhen = async (look: () => boolean): Promise<{ release: string; previous: unknown }> => {
            await until(look, 'the moment to kill', 60_000);
            await panel.end('SIGKILL');
            await panel.start();
            client = await panel.login();
            await until(async () => (await client.get(server)).data?.state === 'online', 'online', 60_000);
            expect(await sql('select n from kept')).to.equal([{ n: 7 }]);
            const { data } = await client.get(server);
            return data as { release: string; previous: unknown };
        };
        const folders = (): string[] => readdirSync(join(top, 'data/servers', String(id))).sort();
        const folder = `/servers/${id}/data`;
        const servesOn = (path: string): boolean =>
            serversOn(path).some(({ command }) => command.includes(`\0port=${port}\0`));
        await sql(`create table kept (n int); insert into kept values (7); ${heldTable}`);
        await sql('insert into held values (1)');

        await client.post(`${server}/upgrade`, { release: newer });
        const undone = await killWhen(() => takingData(`${folder}-${newer}`) !== null);
        expect(undone).to.include({ release: older, previous: null });
        expect(folders()).to.equal(['config', 'data', 'run']);
        expect([serversOn(`${folder}-${newer}`).length, servesOn(folder)]).to.equal([0, true]);
        // After three starts that were cut, the panel would load no plugin.
        await panel.end('SIGTERM');
        await panel.start();
        client = await panel.login();

        await sql('drop table held');
        await client.post(`${server}/upgrade`, { release: newer });
        const upgraded = await killWhen(() => servesOn(`${folder}-${newer}`));
        expect([upgraded.release, upgraded.previous === null]).to.equal([newer, false]);
        expect(folders()).to.equal(['config', 'data', `data-${newer}`, 'run']);
        expect(serversOn(folder).length).to.equal(0);

        await sql('insert into kept values (8)');
        await client.post(`${server}/rollback`, { confirm: 'raised' });
        const back = await killWhen(() => servesOn(folder));
        expect(back).to.include({ release: older, previous: null });
        expect(folders()).to.equal(['config', 'data', 'run']);
        await settled(await client.delete(`${server}?data=delete`));
    });
});
