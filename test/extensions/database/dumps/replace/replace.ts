/** A database of MariaDB that a dump replaces, with a real server. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createConnection } from 'mysql2/promise';

import { itUnless } from '../../../../support/skip.ts';
import { type EndedTask, Harness } from '../../harness.ts';
import { type Instance, noMariadb, startMariadb } from '../../instances.ts';
import { Locks } from './locks.ts';
import { stateOf, states } from './state.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

describe('restores that replace a database of MariaDB', { timeout: 90_000 }, () => {
    const run = itUnless(noMariadb, it);
    const shop = 'the_shop';
    let instance: Instance;
    let locks: Locks;
    let panel: Harness;
    let server: string;
    let serverId: number;
    let dump: number;
    let first: Readonly<Record<string, string>>;
    let second: Readonly<Record<string, string>>;

    const upload = async (text: string): Promise<number> =>
        (await panel.upload('/dumps/upload?kind=mysql&name=given', text)).data.id as number;
    const begin = (id: number, database = shop) =>
        panel.ask('POST', `/dumps/${id}/restore`, { serverId, database, replace: true });
    const replace = async (id: number): Promise<EndedTask> => panel.task(await begin(id));
    const remake = async (): Promise<void> => {
        await instance.sql(
            `drop database if exists \`${shop}\`; create database \`${shop}\` character set latin1`
        );
    };
    before({ timeout: 90_000 }, async () => {
        if (noMariadb !== undefined) {
            return;
        }
        [instance, panel] = await Promise.all([startMariadb(), Harness.start()]);
        locks = new Locks(instance, shop);
        server = await panel.register(instance);
        serverId = Number(server.split('/').at(-1));
        await remake();
        await instance.sql(states.first, shop);
        first = await stateOf(instance, shop);
        const made = await panel.task(
            await panel.ask('POST', '/dumps', { serverId, databases: [shop], format: 'native' })
        );
        expect(made.error).to.be.null();
        dump = made.result.dumpIds[0] as number;
    });
    beforeEach(async () => {
        if (noMariadb === undefined) {
            await remake();
            await instance.sql(states.second, shop);
            second = await stateOf(instance, shop);
        }
    });
    afterEach(async () => {
        if (noMariadb === undefined) {
            expect(await locks.temporary()).to.equal([]);
        }
    });
    after({ timeout: 90_000 }, async () => {
        await panel?.close();
        await instance?.close();
    });

    run('take what the dump has, and leave accounts as they are', async () => {
        const made = await panel.ask('POST', `${server}/users`, {
            username: 'web',
            grants: [{ database: shop, level: 'write' }]
        });
        const login = { username: 'web', password: made.data.password as string };
        await instance.sql(`grant select (name) on people to web@localhost`, shop);
        const rights = await instance.sql('show grants for web@localhost');
        for (const round of [1, 2]) {
            const task = await replace(dump);
            expect([round, task.state, task.error]).to.equal([round, 'succeeded', null]);
            expect(await stateOf(instance, shop)).to.equal(first);
        }
        expect(await instance.sql('show grants for web@localhost')).to.equal(rights);
        await instance.sql('insert into orders (person, total) values (1, 5)', shop, login);
        expect(await instance.sql('select total from orders where id = 3', shop)).to.equal([
            { total: '6.00' }
        ]);
        expect(await instance.sql('select line from audit where id > 2', shop, login)).to.equal([
            { line: 'first: 6.00' }
        ]);
        await expect(instance.sql('insert into orders (person) values (99)', shop)).to.reject(/buyer|ibfk/);
        expect(await instance.sql('select name, doubled from z_last', shop, login)).to.have.length(2);
        const definers = await instance.sql(
            'select distinct definer from information_schema.triggers where trigger_schema = database()',
            shop
        );
        expect(definers).to.have.length(1);
        expect(String(definers[0]?.['definer'])).to.match(/^portico_[0-9a-f]{16}@%$/);
    });

    run('leave the old one whole where the new one cannot be made', async () => {
        for (const text of [
            'create table people (id int); insert into nope values (1);',
            'create table people (id int); \\! true\n',
            'create table t (n int); create view v as select n from t; drop table t;',
            `create sequence s; create table t (n int default nextval(s));`
        ]) {
            const task = await replace(await upload(text));
            expect([text, task.state]).to.equal([text, 'failed']);
            expect([text, await stateOf(instance, shop)]).to.equal([text, second]);
        }
    });

    run('leave the old one whole where it is used for too long', async () => {
        const { given: task } = await locks.whileMoving(
            () => begin(dump),
            async () => (await panel.host.tasks.wait()) as EndedTask
        );
        expect([task.state, task.error?.code]).to.equal(['failed', 42250]);
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('take everything back where something cannot be made behind the move of the tables', async () => {
        const { begun } = await locks.whileMoving(
            () => begin(dump),
            () => instance.sql('create table a_first (n int)', shop)
        );
        const task = await panel.task(begun);
        expect([task.state, task.error?.code]).to.equal(['failed', 42250]);
        expect(task.error?.message).to.include('a_first');
        await instance.sql('drop table a_first', shop);
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('are finished where the connection is lost behind the move of the tables', async () => {
        const { begun, session, end } = await locks.pastMoving(() => begin(dump));
        await instance.sql(`kill ${session}`);
        expect(await instance.sql('select id from orders', shop)).to.have.length(2);
        await end();
        expect((await panel.task(begun)).error).to.be.null();
        expect(await stateOf(instance, shop)).to.equal(first);
    });

    run('are undone where the connection is lost before the move of the tables', async () => {
        const { begun } = await locks.whileMoving(
            () => begin(dump),
            async (session) => {
                expect(locks.hasTrigger()).to.be.false();
                await instance.sql(`kill ${session}`);
            }
        );
        const task = await panel.task(begun);
        expect(task.state, JSON.stringify(task.error)).to.equal('failed');
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('move views that also read what belongs to the server', async () => {
        const text = `create table t (n int); insert into t values (3);
            create view v as select t.n, count(*) > 0 as isThere from t join information_schema.schemata s on s.schema_name = database();`;
        expect((await replace(await upload(text))).error).to.be.null();
        expect(await instance.sql('select * from v', shop)).to.equal([{ n: 3, isThere: 1 }]);
    });

    run('are refused where a table of another database refers to one of this', async () => {
        await instance.sql('drop database if exists other; create database other');
        await instance.sql(
            `create table outside (id int primary key, foreign key (id) references \`${shop}\`.people (id))`,
            'other'
        );
        const { code, text } = await begin(dump);
        expect(code, text).to.equal(40001);
        expect(text).to.include('outside in the database other');
        await instance.sql('drop database other');
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('show each statement the old or the new tables, never both and never none', async () => {
        const seen = new Set<string>();
        let isOver = false;
        const read = async (): Promise<void> => {
            const { port, username: user, password } = instance;
            const connection = await createConnection({
                host: '127.0.0.1',
                port,
                user,
                password,
                database: shop
            });
            while (!isOver) {
                const [rows] = await connection.query(
                    'select group_concat(name order by id) as names, (select count(*) from people) as count from people'
                );
                seen.add(JSON.stringify(rows));
            }
            await connection.end();
        };
        const readers = [read(), read(), read()];
        const over = Promise.all(readers);
        over.catch(() => undefined);
        const task = await replace(dump);
        isOver = true;
        await over;
        expect(task.error).to.be.null();
        expect([...seen].sort()).to.equal(['[{"names":"Ann,Bob","count":2}]', '[{"names":"Zoe","count":1}]']);
    });
});
