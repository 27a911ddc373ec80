/** A database of MariaDB that a dump replaces, with a real server. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createConnection } from 'mysql2/promise';

import { itUnless } from '../../../../support/skip.ts';
import { type Answer, type EndedTask, Harness, until } from '../../harness.ts';
import { type Instance, noMariadb, startMariadb } from '../../instances.ts';
import { stateOf, states } from './state.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

describe('restores that replace a database of MariaDB', { timeout: 90_000 }, () => {
    const run = itUnless(noMariadb, it);
    const shop = 'the shop';
    let instance: Instance;
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
    const temporary = async (): Promise<string[]> =>
        (
            await instance.sql(
                "select schema_name as name from information_schema.schemata where schema_name like 'portico%'"
            )
        ).map(({ name }) => String(name));
    const remake = async (): Promise<void> => {
        await instance.sql(
            `drop database if exists \`${shop}\`; create database \`${shop}\` character set latin1`
        );
    };
    /** A session whose statement has these words, once it waits for a lock. */
    const waiting = (words: RegExp): Promise<number> =>
        until(`a session that waits: ${words.source}`, async () => {
            const rows = await instance.sql(
                "select id, info from information_schema.processlist where state like 'Waiting for table metadata%'"
            );
            return rows.find(({ info }) => words.test(String(info)))?.['id'] as number | undefined;
        });
    /** Begins a statement that uses a table until it is ended. */
    const use = (sql: string) => {
        const running = instance.sql(sql, shop);
        running.catch(() => undefined);
        return async (): Promise<void> => {
            const rows = await instance.sql(
                'select id from information_schema.processlist where instr(info, ?) > 0'.replace(
                    '?',
                    `'${sql.slice(-12)}'`
                )
            );
            for (const { id } of rows) {
                await instance.sql(`kill ${String(id)}`).catch(() => undefined);
            }
            await running.catch(() => undefined);
        };
    };
    /** Begins a replacement that waits with the move of the tables, and lets it go on behind the work. The last table has no triggers: the others have lost theirs, and are locked. */
    const whileMoving = async <T>(
        work: (session: number) => Promise<T>
    ): Promise<{ begun: Answer; given: T }> => {
        const end = use('lock tables z_plain read; select sleep(61)');
        try {
            const begun = await begin(dump);
            return { begun, given: await work(await waiting(/./)) };
        } finally {
            await end();
        }
    };

    before({ timeout: 90_000 }, async () => {
        if (noMariadb !== undefined) {
            return;
        }
        [instance, panel] = await Promise.all([startMariadb(), Harness.start()]);
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
            expect(await temporary()).to.equal([]);
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
        const { given } = await whileMoving(async () => (await panel.host.tasks.wait()) as EndedTask);
        expect([given.state, given.error?.code]).to.equal(['failed', 42250]);
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('take everything back where something cannot be made behind the move of the tables', async () => {
        const { begun } = await whileMoving(() => instance.sql('create table a_first (n int)', shop));
        const task = await panel.task(begun);
        expect([task.state, task.error?.code]).to.equal(['failed', 42250]);
        expect(task.error?.message).to.include('a_first');
        await instance.sql('drop table a_first', shop);
        expect(await stateOf(instance, shop)).to.equal(second);
    });

    run('are finished where the connection is lost behind the move of the tables', async () => {
        const { begun, given: end } = await whileMoving(async () => {
            const used = use('select id, sleep(62) from people');
            await waiting(/sleep\(62\)/);
            return used;
        });
        await instance.sql(`kill ${await waiting(/begin not atomic|trigger/i)}`);
        expect(await instance.sql('select id from orders', shop)).to.have.length(2);
        await end();
        expect((await panel.task(begun)).error).to.be.null();
        expect(await stateOf(instance, shop)).to.equal(first);
    });

    run('are undone where the connection is lost before the move of the tables', async () => {
        const { begun } = await whileMoving(async (session) => {
            const triggers = await instance.sql('show triggers', shop);
            expect(triggers).to.equal([]);
            await instance.sql(`kill ${session}`);
        });
        const task = await panel.task(begun);
        expect(task.state, JSON.stringify(task.error)).to.equal('failed');
        expect(await stateOf(instance, shop)).to.equal(second);
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
