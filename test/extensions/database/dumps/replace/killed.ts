/** A panel that is killed while a dump replaces a database of MariaDB. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ServicesRig } from '../../../../support/machine/services.ts';
import type { Client } from '../../../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../../../support/panel/process.ts';
import { ended } from '../../../../support/plugins/panel.ts';
import { itUnless } from '../../../../support/skip.ts';
import { until } from '../../../../support/until.ts';
import { type Instance, noMariadb, startMariadb } from '../../instances.ts';
import { Locks } from './locks.ts';
import { stateOf, states } from './state.ts';

export const lab = Lab.script();
const { after, before, beforeEach, describe, it } = lab;

const patienceMs = 90_000;
const base = '/api/plugins/database';

describe('a panel that is killed while a dump replaces a database', { timeout: 180_000 }, () => {
    const run = itUnless(noMariadb, it);
    let top: string;
    let instance: Instance;
    let locks: Locks;
    let panel: PanelProcess;
    let client: Client;
    let kills = 0;
    let serverId: number;
    let dump: number;
    let first: Readonly<Record<string, string>>;
    let second: Readonly<Record<string, string>>;

    const remake = async (state: keyof typeof states): Promise<Readonly<Record<string, string>>> => {
        await instance.sql('drop database if exists shop; create database shop');
        await instance.sql(states[state], 'shop');
        return stateOf(instance, 'shop');
    };
    const replace = (id: number) =>
        client.post(`${base}/dumps/${id}/restore`, { serverId, database: 'shop', replace: true });
    /** What a panel that starts again makes of it. */
    const startAgain = async (): Promise<Readonly<Record<string, string>>> => {
        await panel.start();
        // Where the server did not answer in time, the panel asks again after a minute.
        await until(
            async () => (await locks.temporary()).length === 0,
            'the end of the work',
            patienceMs
        ).catch((error: unknown) => {
            throw new Error(panel.output, { cause: error });
        });
        const state = await stateOf(instance, 'shop');
        kills += 1;
        // After three starts that ended in a kill, the next one would load no plugin.
        if (kills === 2) {
            await panel.end('SIGTERM');
            await panel.start();
        }
        client = await panel.login();
        return state;
    };

    before({ timeout: 120_000 }, async () => {
        if (noMariadb !== undefined) {
            return;
        }
        instance = await startMariadb();
        locks = new Locks(instance, 'shop');
        top = mkdtempSync(join(tmpdir(), 'portico-replace-killed-'));
        chmodSync(top, 0o755);
        mkdirSync(join(top, 'plugins'));
        const extension = fileURLToPath(new URL('../../../../../extensions/database', import.meta.url));
        execFileSync('ln', ['-s', extension, join(top, 'plugins', 'database')]);
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: join(top, 'plugins') } });
        await panel.start();
        client = await panel.login();
        await client.put('/api/plugins/database', { settings: { dataFolder: join(top, 'data') } });
        const { kind, port, username, password } = instance;
        const server = { name: 'own', kind, mode: 'registered', host: '127.0.0.1', port, username, password };
        const registered = await client.post(`${base}/servers`, server);
        expect(registered.status, registered.text).to.equal(201);
        serverId = registered.data.id as number;
        first = await remake('first');
        const made = await ended(
            client,
            await client.post(`${base}/dumps`, { serverId, databases: ['shop'] })
        );
        dump = (made.result as { dumpIds: [number] }).dumpIds[0];
    });
    beforeEach(async () => {
        if (noMariadb === undefined) {
            second = await remake('second');
        }
    });
    after({ timeout: 120_000 }, async () => {
        if (panel !== undefined) {
            await new ServicesRig(panel.dataDir).end();
            await panel.close();
            rmSync(top, { recursive: true, force: true });
        }
        await instance?.close();
    });

    run(
        'finds the old one while the new one is being restored, and nothing of a clone and an import',
        async () => {
            await instance.sql(
                'drop database if exists beside; create database beside; create table beside.people (id int primary key); insert into beside.people values (1); create event beside.tick on schedule every 1 day do set @n = 1'
            );
            const at = `${base}/servers/${serverId}/databases/beside`;
            const works = [
                () => client.post(`${at}/clone`, { name: 'copied' }),
                () =>
                    client.call('POST', `${at}/import?table=people&mode=replace`, {
                        body: Buffer.from('id\n2\n3\n'),
                        headers: { 'content-type': 'application/octet-stream' }
                    })
            ];
            const ends = [
                await locks.hold('lock tables mysql.event read; select sleep(603)'),
                await locks.hold('lock tables beside.people read; select sleep(604)')
            ];
            const begun = [await replace(dump), ...(await Promise.all(works.map((work) => work())))];
            expect(begun.map(({ status }) => status)).to.equal([202, 202, 202]);
            const sessions = await until(async () => {
                const found = await locks.allWaiting();
                return found.length === 3 && found;
            }, 'all of them to wait');
            await panel.end('SIGKILL');
            await Promise.all(sessions.map((session) => locks.kill(session)));
            await Promise.all(ends.map((end) => end()));
            expect(await locks.temporary()).to.have.length(1);
            expect(await startAgain()).to.equal(second);
            for (const { data } of begun) {
                expect((await client.get(`/api/tasks/${data.id}`)).data.state).to.equal('failed');
            }
            const names = async () =>
                (await client.get(`${base}/servers/${serverId}/databases`)).data.map(
                    ({ name }: { name: string }) => name
                ) as string[];
            await until(async () => !(await names()).includes('copied'), 'the end of the clone');
            const ids = async () => (await instance.sql('select id from beside.people')).map(({ id }) => id);
            expect(await ids()).to.equal([1]);
            const guests = "select user from mysql.user where user like 'portico_guest%'";
            await until(async () => (await instance.sql(guests)).length === 0, 'the end of the guests');
            expect(readdirSync(join(top, 'data')).includes('uploads')).to.be.false();
            for (const work of works) {
                const task = await ended(client, await work());
                expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            }
            expect([(await names()).includes('copied'), await ids()]).to.equal([true, [2, 3]]);
        }
    );

    run('finds the new one where the server went on', async () => {
        // A stopped panel does nothing more, as a killed one, and yet the server does not give up for a client that is gone.
        await locks.whileMoving(
            () => replace(dump),
            async () => panel.signal('SIGSTOP')
        );
        await until(() => locks.hasMoved());
        await panel.end('SIGKILL');
        expect(await startAgain()).to.equal(first);
    });

    run('finds the old one where the server stopped before the tables were moved', async () => {
        await locks.whileMoving(
            () => replace(dump),
            async (session) => {
                expect(locks.hasTrigger()).to.be.false();
                await panel.end('SIGKILL');
                await locks.kill(session);
            }
        );
        expect(await startAgain()).to.equal(second);
    });

    run('finds the new one where the server stopped behind that', async () => {
        const { session, end } = await locks.pastMoving(() => replace(dump));
        await panel.end('SIGKILL');
        await locks.kill(session);
        expect(await instance.sql('select id from orders', 'shop')).to.have.length(2);
        expect(locks.hasTrigger()).to.be.false();
        await end();
        expect(await startAgain()).to.equal(first);
    });
});
