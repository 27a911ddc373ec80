/** Clones, masked clones and samples of real databases of both kinds. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { Harness } from './harness.ts';
import { type Instance, noMariadb, noPostgresql, startMariadb, startPostgresql } from './instances.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const kinds = [
    { kind: 'mysql', lacks: noMariadb, start: startMariadb },
    { kind: 'postgresql', lacks: noPostgresql, start: startPostgresql }
] as const;
/** What no clone may hold. */
const secrets = ['Ada', 'Grete', 'lovelace', '010-00', "O'Neil\\", 'whisper'];
const source = `it's "live"`;

for (const { kind, lacks, start } of kinds) {
    const isMysql = kind === 'mysql';
    describe(`clones: ${kind}`, { timeout: 90_000 }, () => {
        const run = itUnless(lacks, it);
        let instance: Instance;
        let panel: Harness;
        let server: string;
        const base = (): string => `${server}/databases/${encodeURIComponent(source)}`;
        const clone = (name: string, more: object = {}) =>
            panel.ask('POST', `${base()}/clone`, { name, ...more });
        const made = async (name: string, more: object = {}): Promise<void> => {
            const task = await panel.task(await clone(name, more));
            expect([task.state, task.error]).to.equal(['succeeded', null]);
        };
        // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into rows of every shape
        const rows = async (sql: string, database: string): Promise<any[]> =>
            (await instance.sql(sql, database)).map((row) => ({ ...row }));
        const names = async (): Promise<string[]> =>
            ((await panel.ask('GET', `${server}/databases?limit=500`)).data as { name: string }[]).map(
                ({ name }) => name
            );

        before({ timeout: 90_000 }, async () => {
            if (lacks !== undefined) {
                return;
            }
            [instance, panel] = await Promise.all([start(), Harness.start()]);
            server = await panel.register(instance);
            await panel.ask('POST', `${server}/databases`, { name: source });
            const people = `
                insert into people (id, email, name, phone, secret, note) values
                    (1, 'ada@lovelace.test', 'Ada', '+1 (555) 010-001', 'whisper one', 'it''s; fine'),
                    (2, 'grete@lovelace.test', 'Grete', '+1 (555) 010-002', null, ''),
                    (3, 'o''neil@lovelace.test', ${isMysql ? "'O\\'Neil\\\\'" : "'O''Neil\\'"}, 'call Ada', 'whisper two', null),
                    (-4, 'last@lovelace.test', 'Ada', '5551', 'whisper', 'x');
                insert into orders (id, person, boss) values (11, 2, null), (10, 1, 11), (12, -4, 10), (13, null, 12);`;
            await instance.sql(
                isMysql
                    ? `create table people (id int primary key, email varchar(60) not null unique, name varchar(40) not null, phone varchar(30), secret text, note text, big double as (id * 2) stored);
                       create table orders (id bigint primary key, person int, boss bigint, foreign key (person) references people (id), foreign key (boss) references orders (id));
                       create table \`many\`\` rows\` (n int primary key, word varchar(20), raw blob);
                       ${people}
                       insert into \`many\`\` rows\` select seq, concat('w''(', seq, '),'), x'00ff27' from seq_1_to_3000;
                       create view seen as select email from people`
                    : `create table people (id int primary key, email varchar(60) not null unique, name varchar(40) not null, phone varchar(30), secret text, note text, big bigint generated always as (id::bigint * 2) stored);
                       create table orders (id bigint primary key, person int references people (id), boss bigint references orders (id));
                       create table "many\` rows" (n int primary key, word varchar(20), raw bytea);
                       create table staff (desk text) inherits (people);
                       create table logs (n int, who text) partition by range (n);
                       create table logs_1 partition of logs for values from (0) to (10);
                       ${people}
                       insert into staff (id, email, name, phone, desk) values (7, 'staff@lovelace.test', 'Ada', '+1 (555) 9', 'd');
                       insert into logs values (1, 'Ada');
                       insert into "many\` rows" select n, 'w''(' || n || '),', '\\x00ff27' from generate_series(1, 3000) n;
                       create materialized view seen as select email from people`,
                source
            );
        });
        after({ timeout: 90_000 }, async () => {
            await panel?.close();
            await instance?.close();
        });

        run('are whole copies, without the accounts of the first', async () => {
            await panel.ask('POST', `${server}/users`, {
                username: 'web',
                grants: [{ database: source, level: 'owner' }]
            });
            await made('copy');
            for (const table of ['people', 'orders', isMysql ? '`many`` rows`' : '"many` rows"', 'seen']) {
                const all = `select * from ${table} order by 1`;
                expect(await rows(all, 'copy')).to.equal(await rows(all, source));
            }
            const web = (await panel.ask('GET', `${server}/users`)).data.find((each: { user: string }) =>
                each.user.startsWith('web')
            );
            expect(web.grants).to.equal([{ database: source, level: 'owner' }]);
            expect((await clone('copy')).code).to.equal(40900);
            expect(
                (await panel.ask('POST', `${base()}/clone`, { name: 'no' }, { as: 'operator' })).status
            ).to.equal(403);
        });

        run('hold masked rows only, and what refers to them still does', async () => {
            const mask = [
                { table: 'people', column: 'id', rule: 'hash' },
                { table: 'people', column: 'email', rule: 'email' },
                { table: 'people', column: 'name', rule: 'name' },
                { table: 'people', column: 'phone', rule: 'phone' },
                { table: 'people', column: 'secret', rule: 'null' },
                { table: 'people', column: 'note', rule: 'fixed', value: `x\\'"\t` },
                { table: 'many` rows', column: 'word', rule: 'shuffle' },
                ...(isMysql ? [] : [{ table: 'logs', column: 'who', rule: 'hash' }])
            ];
            await made('masked', { mask });
            const tables = isMysql ? ['people', 'orders'] : ['people', 'orders', 'staff', 'logs', 'seen'];
            const texts = await Promise.all(tables.map((table) => rows(`select * from ${table}`, 'masked')));
            const text = JSON.stringify(texts);
            for (const secret of secrets) {
                expect(text, secret).to.not.include(JSON.stringify(secret).slice(1, -1));
            }
            const people = await rows('select * from people order by email', 'masked');
            expect(people.length).to.equal(isMysql ? 4 : 5);
            expect(new Set(people.map(({ email }) => email)).size).to.equal(people.length);
            expect(people.every(({ email }) => /^[a-z2-7]{16}@example\.com$/.test(email))).to.be.true();
            expect(people.every(({ id, big }) => Number(big) === 2 * id || big === null)).to.be.true();
            expect(people.filter(({ note }) => note === `x\\'"\t`).length).to.equal(3);
            expect(people.filter(({ phone }) => /^\+\d \(\d{3}\) \d{3}-\d{3}$/.test(phone)).length).to.equal(
                2
            );
            // The same name has become the same one, and every order still has its person.
            expect(new Set(people.map(({ name }) => name)).size).to.be.at.most(3);
            const joined = 'select o.id from orders o join people p on p.id = o.person';
            expect((await rows(joined, 'masked')).length).to.equal(3);
            expect((await rows('select id from people where id in (1, 2, 3, -4)', 'masked')).length).to.equal(
                0
            );
            const many = isMysql ? '`many`` rows`' : '"many` rows"';
            const word = `select word from ${many} order by n`;
            const [was, is] = [await rows(word, source), await rows(word, 'masked')];
            expect(is.filter((row, index) => row.word === was[index].word)).to.equal([]);
            const sorted = (list: { word: string }[]) => list.map((row) => row.word).sort();
            expect(sorted(is)).to.equal(sorted(was));
            // Another clone of this server has the same values.
            await made('again', { mask: mask.slice(0, 2) });
            const email = 'select id, email from people order by email';
            expect(await rows(email, 'again')).to.equal(await rows(email, 'masked'));
        });

        run('take a sample of rows that refer to each other', async () => {
            await made('sample', { rows: 2 });
            expect(
                (await rows(`select id from ${isMysql ? '' : 'only '}people order by id`, 'sample')).length
            ).to.equal(2);
            const orders = 'select id from orders order by id';
            const [people] = await rows(
                'select group_of from (select count(*) as group_of from people where id in (1, 2)) x',
                'sample'
            );
            expect(Number(people.group_of)).to.be.at.least(1);
            const dangling =
                'select o.id from orders o left join people p on p.id = o.person where p.id is null and o.person is not null';
            expect(await rows(dangling, 'sample')).to.equal([]);
            expect((await rows(orders, 'sample')).length).to.be.at.most(2);
        });

        run('are refused where a mask is not possible, and make nothing then', async () => {
            const table = 'people';
            for (const wrong of [
                { table, column: 'nope', rule: 'null' },
                { table: 'nope', column: 'id', rule: 'null' },
                { table, column: 'email', rule: 'null' },
                { table, column: 'email', rule: 'fixed', value: 'x' },
                { table, column: 'note', rule: 'fixed' },
                { table, column: 'id', rule: 'shuffle' },
                { table, column: 'id', rule: 'email' },
                { table: 'many` rows', column: 'raw', rule: 'hash' }
            ]) {
                const refused = await clone('wrong', { mask: [wrong] });
                expect([wrong, [40001, 40400].includes(refused.code as number)]).to.equal([wrong, true]);
            }
            const twice = [
                { table, column: 'id', rule: 'hash' },
                { table: 'orders', column: 'person', rule: 'null' }
            ];
            expect((await clone('wrong', { mask: twice })).code).to.equal(40001);
            expect((await clone(isMysql ? 'mysql' : 'postgres')).code).to.equal(40001);
            expect(await names()).to.not.include('wrong');
        });

        run('leave nothing when they are cut in the middle', async () => {
            // The dump waits for a table until the server ends, after this test.
            const locked = instance.sql(
                isMysql
                    ? 'lock tables people write; select sleep(60)'
                    : 'begin; lock table people in access exclusive mode; select pg_sleep(60)',
                source
            );
            locked.catch(() => undefined);
            await until(async () =>
                JSON.stringify(
                    await instance.sql(
                        isMysql
                            ? 'select info from information_schema.processlist'
                            : 'select query as info from pg_stat_activity'
                    )
                ).includes('sleep(60)')
            );
            const begun = await clone('cut');
            await until(async () => (await names()).includes('cut'));
            expect((await clone('other')).code).to.equal(40901);
            await panel.host.stop();
            await panel.host.start();
            await until(async () => !(await names()).includes('cut'));
            expect((await panel.task(begun)).state).to.not.equal('succeeded');
            const users = (await panel.ask('GET', `${server}/users?limit=500`)).text;
            expect(users).to.not.include('portico_guest');
        });
    });
}
