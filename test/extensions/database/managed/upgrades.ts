/** Upgrades of servers that the panel runs, and the way back: real releases of PostgreSQL with data, accounts and options, and MariaDB after a change of its package. */
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import pg from 'pg';

import { ManagedEntity } from '../../../../extensions/database/src/entities.ts';
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../../../support/machine/small-disk.ts';
import { itUnless } from '../../../support/skip.ts';
import { type Answer, Harness, until } from '../harness.ts';
import { noMariadb, noPostgresql, startPostgresql } from '../instances.ts';
import { heldTable, newer, noUpgrade, older, serversOn, takingData } from '../releases.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const mebibyte = 1024 * 1024;

/** The account that a folder belongs to. */
function identityOf(folder: string): { readonly uid: number; readonly gid: number } {
    const { uid, gid } = statSync(folder);
    return { uid, gid };
}

/** What the tests do with one server. */
class ServerRig {
    readonly id: number;
    readonly #panel: Harness;

    private constructor(panel: Harness, id: number) {
        this.#panel = panel;
        this.id = id;
    }

    static async make(panel: Harness, body: object): Promise<ServerRig> {
        const task = await panel.task(
            await panel.ask('POST', '/servers', { mode: 'managed', preset: 'tiny', ...body })
        );
        expect([task.state, task.error]).to.equal(['succeeded', null]);
        return new ServerRig(panel, task.result.serverId as number);
    }

    ask(method: string, path = '', body?: object, as = 'admin'): Promise<Answer> {
        return this.#panel.ask(method, `/servers/${this.id}${path}`, body, { as });
    }

    async view(): Promise<Answer['data']> {
        return (await this.ask('GET')).data;
    }

    async done(method: string, path: string, body?: object): Promise<void> {
        const task = await this.#panel.task(await this.ask(method, path, body));
        expect([path, task.state, task.error]).to.equal([path, 'succeeded', null]);
    }

    async fails(method: string, path: string, body?: object): Promise<{ code: number; message: string }> {
        const task = await this.#panel.task(await this.ask(method, path, body));
        expect([path, task.state]).to.equal([path, 'failed']);
        return task.error as { code: number; message: string };
    }

    async write(sql: string, database = 'shop'): Promise<void> {
        const { status, text } = await this.ask('POST', '/query', { database, sql, write: true });
        expect(status, text).to.equal(200);
    }

    /** Rows as an account of the server itself reads them. */
    async rows(login: { user: string; password: string; database: string }, sql: string): Promise<object[]> {
        const { port } = (await this.view()).listen as { port: number };
        const client = new pg.Client({ host: '127.0.0.1', port, ...login });
        await client.connect();
        try {
            return (await client.query(sql)).rows as object[];
        } finally {
            await client.end();
        }
    }

    /** Its folders. */
    folders(): readonly string[] {
        return readdirSync(join(this.#panel.dataFolder, 'servers', String(this.id))).sort();
    }

    async account(username: string, database: string, level: string): Promise<string> {
        const made = await this.ask('POST', '/users', { username, grants: [{ database, level }] });
        expect(made.status, made.text).to.equal(201);
        return made.data.password as string;
    }
}

describe('upgrades of servers that the panel runs', { timeout: 240_000 }, () => {
    let panel: Harness;
    let disk: SmallDisk;
    before({ timeout: 60_000 }, async () => {
        panel = await Harness.start();
        if (noSmallDisk === undefined) {
            disk = mountSmallDisk(panel.dataFolder, 1_024 * mebibyte, 100_000);
        }
    });
    after({ timeout: 60_000 }, async () => {
        disk?.close();
        await panel?.close();
    });

    /** A folder of the account of a server, outside of its data. */
    function ownFolder({ id }: ServerRig, name: string): string {
        const folder = join(panel.dataFolder, name);
        mkdirSync(folder, { mode: 0o700 });
        const { uid, gid } = identityOf(join(panel.dataFolder, 'servers', String(id), 'data'));
        chownSync(folder, uid, gid);
        return folder;
    }

    itUnless(noUpgrade, it)('keep data, accounts, levels and options, and lead back', async () => {
        const server = await ServerRig.make(panel, { name: 'own', kind: 'postgresql', release: older });
        expect(await server.view()).to.include({ release: older, previous: null, state: 'online' });
        for (const name of ['shop', 'Other "one"']) {
            expect((await server.ask('POST', '/databases', { name })).status).to.equal(201);
        }
        const web = {
            user: 'web',
            password: await server.account('web', 'shop', 'owner'),
            database: 'shop'
        };
        const eye = {
            user: 'eye',
            password: await server.account('eye', 'Other "one"', 'read'),
            database: 'Other "one"'
        };
        await server.write('create table kept (n int primary key, note text unique)');
        await server.write("insert into kept select n, 'É' || n from generate_series(1, 500) n");
        await server.write('create table seen (n int)', 'Other "one"');
        await server.write('insert into seen values (3)', 'Other "one"');
        const installed = await server.ask('POST', '/databases/shop/extensions', { name: 'hstore' });
        expect(installed.status, installed.text).to.equal(200);
        await server.ask('PUT', '/config', { values: { work_mem: 3 * mebibyte, max_connections: 44 } });
        const { port, socket } = (await server.view()).listen;

        for (const [release, as, code] of [
            [older, 'admin', 40001],
            ['13', 'admin', 40001],
            ['../../bin', 'admin', 40001],
            [newer, 'operator', 40300]
        ] as const) {
            const refused = await server.ask('POST', '/upgrade', { release }, as);
            expect([release, as, refused.code]).to.equal([release, as, code]);
        }
        expect((await server.ask('POST', '/rollback', { confirm: 'own' })).code).to.equal(40400);
        expect((await server.ask('DELETE', '/previous')).code).to.equal(40400);

        const begun = await server.ask('POST', '/upgrade', { release: newer });
        for (const [method, path, body] of [
            ['POST', '/upgrade', { release: newer }],
            ['POST', '/restart', {}],
            ['DELETE', '', undefined]
        ] as const) {
            expect((await server.ask(method, path, body)).code).to.equal(40901);
        }
        const upgraded = await panel.task(begun);
        expect([upgraded.state, upgraded.error]).to.equal(['succeeded', null]);
        const seen = await server.view();
        expect(seen).to.include({ release: newer, state: 'online' });
        expect(seen.serverVersion as string).to.startWith(`${newer}.`);
        expect(seen.listen).to.include({ port, socket });
        expect(seen.previous.release).to.equal(older);
        expect(seen.previous.bytes as number).to.be.above(10 * mebibyte);
        expect(server.folders()).to.equal(['config', 'data', `data-${newer}`, 'run']);

        expect(
            await server.rows(web, 'select count(*)::int as n, max(note collate "C") as note from kept')
        ).to.equal([{ n: 500, note: 'É99' }]);
        await server.rows(web, 'create table later (n int); insert into later values (1)');
        await server.rows(web, "insert into kept values (501, 'new')");
        expect(await server.rows(eye, 'select n from seen')).to.equal([{ n: 3 }]);
        await expect(server.rows(eye, 'insert into seen values (4)')).to.reject();
        await expect(server.rows({ ...eye, database: 'shop' }, 'select n from kept')).to.reject();
        const users = (await server.ask('GET', '/users')).data as { username: string; grants: object[] }[];
        expect(users.find(({ username }) => username === 'web')?.grants).to.equal([
            { database: 'shop', level: 'owner' }
        ]);
        expect(users.find(({ username }) => username === 'eye')?.grants).to.equal([
            { database: 'Other "one"', level: 'read' }
        ]);
        const config = (await server.ask('GET', '/config')).data as { name: string; value: unknown }[];
        expect(config.find(({ name }) => name === 'work_mem')?.value).to.equal(3 * mebibyte);
        expect(config.find(({ name }) => name === 'max_connections')?.value).to.equal(44);
        expect(
            await server.rows(web, "select extname as name from pg_extension where extname = 'hstore'")
        ).to.equal([{ name: 'hstore' }]);
        const read = await server.ask('POST', '/query', {
            database: 'shop',
            sql: 'select count(*) from kept'
        });
        expect(read.data.rows).to.equal([[501]]);

        // Back, with what was written since gone; the account that was made since, too.
        await server.account('late', 'shop', 'read');
        expect((await server.ask('POST', '/rollback', { confirm: 'other' })).code).to.equal(40001);
        expect((await server.ask('POST', '/rollback', {})).code).to.equal(40001);
        await server.done('POST', '/rollback', { confirm: 'own' });
        expect(await server.view()).to.include({ release: older, previous: null, state: 'online' });
        expect(server.folders()).to.equal(['config', 'data', 'run']);
        expect(await server.rows(web, 'select count(*)::int as n from kept')).to.equal([{ n: 500 }]);
        expect((await server.ask('GET', '/users/late')).code).to.equal(40400);

        // Again, and for good.
        await server.done('POST', '/upgrade', { release: newer });
        // The past of one release is of no use to another one.
        expect((await server.ask('PUT', '', { pointInTime: true })).status).to.equal(200);
        expect((await server.ask('POST', '/rollback', { confirm: 'own' })).code).to.equal(40901);
        await server.done('DELETE', '/previous');
        expect(await server.view()).to.include({ release: newer, previous: null });
        expect(server.folders()).to.equal(['archive', 'config', `data-${newer}`, 'run']);
        expect((await server.ask('POST', '/rollback', { confirm: 'own' })).code).to.equal(40400);
        await panel.host.restart();
        expect(await server.rows(web, 'select count(*)::int as n from kept')).to.equal([{ n: 500 }]);
        const gone = await panel.task(await server.ask('DELETE', '?data=keep'));
        expect(existsSync(join(gone.result.kept as string, 'PG_VERSION'))).to.be.true();
    });

    itUnless(noUpgrade ?? noSmallDisk, it)(
        'leave the old server as it was when they fail at any point',
        async () => {
            const server = await ServerRig.make(panel, { name: 'kept', kind: 'postgresql', release: older });
            await server.ask('POST', '/databases', { name: 'shop' });
            const web = {
                user: 'web',
                password: await server.account('web', 'shop', 'owner'),
                database: 'shop'
            };
            await server.write('create table kept (n int)');
            await server.write('insert into kept values (7)');
            const before = await server.view();
            const isAsBefore = async (): Promise<void> => {
                expect(await server.view()).to.equal(before);
                expect(server.folders()).to.equal(['config', 'data', 'run']);
                expect(await server.rows(web, 'select n from kept')).to.equal([{ n: 7 }]);
                expect(serversOn(`/servers/${server.id}/data-${newer}`)).to.equal([]);
            };

            // What the new server refuses: a check that finds its table by the path of the session, which a dump has not.
            await server.write('create table other (n int)');
            await server.write(
                "create function fits(n int) returns boolean language sql as 'select not exists (select from other where other.n = $1)'"
            );
            await server.write('create table refused (n int check (fits(n)))');
            await server.write('insert into refused values (1)');
            const refused = await server.fails('POST', '/upgrade', { release: newer });
            expect(refused.code).to.equal(42250);
            expect(refused.message).to.match(/"other" does not exist/);
            await isAsBefore();
            await server.write('drop table refused');

            // The new server dies while it takes the data.
            await server.write(heldTable);
            await server.write('insert into held values (1)');
            const begun = await server.ask('POST', '/upgrade', { release: newer });
            const pid = await until('the new server takes the data', async () =>
                takingData(`/servers/${server.id}/data-${newer}`)
            );
            expect((await server.view()).state).to.equal('upgrading');
            await expect(server.rows(web, 'select n from kept')).to.reject();
            process.kill(pid, 'SIGKILL');
            const died = await panel.task(begun);
            expect([died.state, died.error?.code]).to.equal(['failed', 42250]);
            await isAsBefore();

            // A person ends it.
            const ended = await server.ask('POST', '/upgrade', { release: newer });
            await until('the data go to the new server', async () =>
                takingData(`/servers/${server.id}/data-${newer}`)
            );
            expect((await panel.host.tasks.cancel(ended.data.id as number)).state).to.equal('cancelled');
            await isAsBefore();

            // The disk is full before it begins, and in the middle.
            disk.fill();
            expect((await server.fails('POST', '/upgrade', { release: newer })).code).to.equal(50700);
            await isAsBefore();
            disk.free();
            const full = await server.ask('POST', '/upgrade', { release: newer });
            await until('the data go to the new server', async () =>
                takingData(`/servers/${server.id}/data-${newer}`)
            );
            disk.fill();
            expect((await panel.host.tasks.cancel(full.data.id as number)).state).to.equal('cancelled');
            await isAsBefore();
            disk.free();

            // A tablespace would belong to both releases.
            const far = ownFolder(server, 'far');
            const data = join(panel.dataFolder, 'servers', String(server.id), 'data');
            await server.done('POST', '/stop', {});
            execFileSync(
                `/usr/lib/postgresql/${older}/bin/postgres`,
                ['--single', '-D', data, '-c', 'unix_socket_directories=', 'postgres'],
                {
                    ...identityOf(data),
                    input: `create tablespace far location '${far}'\n`,
                    stdio: ['pipe', 'ignore', 'ignore']
                }
            );
            await server.done('POST', '/start', {});
            const outside = await server.fails('POST', '/upgrade', { release: newer });
            expect([outside.code, outside.message.includes('pg_tblspc/')]).to.equal([40901, true]);
            await isAsBefore();

            // One that is stopped has nothing to read.
            await server.done('POST', '/stop', {});
            expect((await server.fails('POST', '/upgrade', { release: newer })).code).to.equal(50350);
            expect((await server.view()).state).to.equal('stopped');
        }
    );

    itUnless(noMariadb, it)(
        'follow MariaDB when its package was replaced, and lead back: mysql',
        async () => {
            const server = await ServerRig.make(panel, {
                ...{ name: 'maria', kind: 'mysql', memoryBytes: 256 * mebibyte }
            });
            const { release, listen } = await server.view();
            for (const wanted of [release, '9.1', '../x']) {
                const refused = await server.ask('POST', '/upgrade', { release: wanted });
                expect([wanted, refused.code]).to.equal([wanted, 40001]);
            }
            await server.ask('POST', '/databases', { name: 'shop' });
            const password = await server.account('web', 'shop', 'owner');
            await server.write('create table kept (n int primary key)');
            await server.write('insert into kept values (7)');
            // What an older release did not have: a table of the server itself.
            await server.write('drop table mysql.column_stats');
            await panel.host.db.write(
                async (em) =>
                    void (await em.nativeUpdate(ManagedEntity, { id: server.id }, { release: '10.6' }))
            );
            const hasTable = async (): Promise<boolean> => {
                const sql = "select 1 from information_schema.tables where table_name = 'column_stats'";
                // The reader does not see what belongs to the server.
                const { data } = await server.ask('POST', '/query', { database: 'shop', sql, write: true });
                return data.rows.length === 1;
            };
            const numbers = async (): Promise<unknown> =>
                (
                    await server.ask('POST', '/query', {
                        database: 'shop',
                        sql: 'select n from kept order by n'
                    })
                ).data?.rows;
            const isAsBefore = async (): Promise<void> => {
                expect(await server.view()).to.include({ release: '10.6', previous: null, state: 'online' });
                expect(server.folders()).to.equal(['config', 'data', 'run']);
                expect([await numbers(), await hasTable()]).to.equal([[[7]], false]);
            };

            // A table that lies elsewhere would belong to both.
            const far = ownFolder(server, 'far-table');
            await server.write(`create table away (n int) data directory = '${far}'`);
            const outside = await server.fails('POST', '/upgrade', { release });
            expect([outside.code, outside.message.includes('away')]).to.equal([40901, true]);
            await server.write('drop table away');
            await isAsBefore();
            // The new server dies while its tables are put in order.
            const dying = await server.ask('POST', '/upgrade', { release });
            const [alone] = await until('the new server', async () => {
                const found = serversOn(`/servers/${server.id}/data-${release}`);
                return found.length > 0 && found;
            });
            process.kill((alone as { pid: number }).pid, 'SIGKILL');
            await panel.host.tasks.cancel(dying.data.id as number);
            await isAsBefore();

            await server.done('POST', '/upgrade', { release });
            const upgraded = await server.view();
            expect(upgraded).to.include({ release, state: 'online', listen });
            expect(upgraded.previous.release).to.equal('10.6');
            expect(server.folders()).to.equal(['config', 'data', `data-${release}`, 'run']);
            expect([await numbers(), await hasTable()]).to.equal([[[7]], true]);
            const made = await panel.ask('POST', '/servers', {
                ...{ name: 'as web', kind: 'mysql', mode: 'registered', host: '127.0.0.1' },
                ...{ port: listen.port, username: 'web', password }
            });
            expect(made.status, made.text).to.equal(201);
            await panel.ask('DELETE', `/servers/${made.data.id}`);

            // The older package has to be there for the way back.
            await server.write('insert into kept values (8)');
            expect((await server.ask('POST', '/rollback', { confirm: 'maria' })).code).to.equal(50302);
            await panel.host.db.write(
                async (em) =>
                    void (await em.nativeUpdate(
                        ManagedEntity,
                        { id: server.id },
                        { previous: { ...upgraded.previous, folder: 'data', at: 0, release } }
                    ))
            );
            await server.done('POST', '/rollback', { confirm: 'maria' });
            expect(await server.view()).to.include({ release, previous: null, state: 'online' });
            expect([await numbers(), await hasTable()]).to.equal([[[7]], false]);
            expect(server.folders()).to.equal(['config', 'data', 'run']);
        }
    );

    itUnless(noPostgresql, it)('are for servers that the panel runs', async () => {
        const instance = await startPostgresql();
        try {
            const path = await panel.register(instance, { name: 'registered' });
            for (const [method, route, body] of [
                ['POST', '/upgrade', { release: newer }],
                ['POST', '/rollback', { confirm: 'registered' }],
                ['DELETE', '/previous', undefined]
            ] as const) {
                expect((await panel.ask(method, path + route, body)).code).to.equal(40950);
            }
            expect((await panel.ask('GET', path)).data.previous).to.be.null();
        } finally {
            await instance.close();
        }
    });
});
