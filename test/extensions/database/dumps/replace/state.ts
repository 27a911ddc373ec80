/** A database of MariaDB with everything that one can hold, and what it is seen from outside. */
import type { Instance } from '../../instances.ts';

/** Makes one state of a database: `second` has other columns, names and definitions than `first`. */
export const states = {
    first: `
        set sql_mode = 'ANSI_QUOTES';
        create function twice(n int) returns int deterministic return "n" * 2;
        set sql_mode = default;
        create table people (id int primary key, name text, note text default 'first');
        create table orders (id int auto_increment primary key, person int, total decimal(8,2),
            constraint buyer foreign key (person) references people (id) on delete cascade, foreign key (person) references people (id));
        create table audit (id int auto_increment primary key, line text);
        create table tags (id int primary key) engine = Aria;
        create table gone_view (n int);
        create sequence numbers start with 100;
        create view names as select id, name from people;
        create view z_last as select n.name, twice(n.id) as doubled from names n;
        create view a_first as select name from z_last;
        create trigger one before insert on orders for each row set new.total = new.total + 1;
        create trigger two before insert on orders for each row insert into audit (line) values (concat('first: ', new.total));
        create trigger kept after update on people for each row insert into audit (line) values ('ü🙂 first');
        create procedure list_people() begin select 'first' as state; select id from people; end;
        create event tick on schedule every 1 day starts '2030-01-01 00:00:00' do insert into audit (line) values ('first');
        insert into people (id, name) values (1, 'Ann'), (2, 'Bob');
        insert into orders (person, total) values (1, 10), (2, 20);`,
    second: `
        create table people (id int primary key, name text, born int);
        create table things (id int primary key, person int, constraint buyer foreign key (person) references people (id));
        create table names (n int);
        create table z_plain (n int);
        create table only_second (n int);
        create view gone_view as select 'second' as state, id from people;
        create view z_last as select born from people;
        create view broken as select n from only_second;
        create trigger one before insert on things for each row set new.id = new.id + 1000;
        create trigger kept before update on people for each row set new.born = 2;
        create procedure list_people() select 'second' as state;
        create procedure second_only() select 1;
        create event tock on schedule every 2 day starts '2031-01-01 00:00:00' do set @second = 1;
        insert into people values (7, 'Zoe', 1990);
        insert into things values (1, 7);
        drop table only_second;`
} as const;

/** Everything in a database, as texts that can be compared; without the accounts that own things. */
export async function stateOf(
    instance: Instance,
    database: string
): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {};
    const all = await instance.sql(
        `select table_name as name, table_type as type from information_schema.tables where table_schema = database() order by 1`,
        database
    );
    const objects = await instance.sql(
        `select 'trigger' as type, trigger_name as name from information_schema.triggers where trigger_schema = database()
         union all select lower(routine_type), routine_name from information_schema.routines where routine_schema = database()
         union all select 'event', event_name from information_schema.events where event_schema = database()`,
        database
    );
    const what = [
        ...all.map(({ name, type }) => ({ type: type === 'VIEW' ? 'view' : 'table', name })),
        ...objects
    ];
    for (const { type, name } of what) {
        const [row = {}] = await instance.sql(`show create ${String(type)} \`${String(name)}\``, database);
        const shown = Object.entries(row).filter(([key]) => key !== 'Created');
        found[`${String(type)} ${String(name)}`] = JSON.stringify(shown).replace(
            /definer=(`[^`]*`|\\"[^"]*\\")@(`[^`]*`|\\"[^"]*\\")/gi,
            ''
        );
        if (type === 'table' || type === 'view') {
            const rows = await instance.sql(`select * from \`${String(name)}\``, database).catch(String);
            found[`rows ${String(name)}`] = JSON.stringify(rows);
        }
    }
    return found;
}
