/**
 * Puts the content of one database in the place of another's. MariaDB has no statement that renames a database, so the tables change places in one
 * RENAME TABLE, and what cannot be moved is made again. The server runs all of it as one statement: it goes on when the panel is killed.
 */
import { errors } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { Access, Session, SwapStatements } from '../../kinds/kind.ts';
import { ensureDefiner, guestOf } from '../accounts.ts';
import { databases } from '../databases.ts';
import { quote, quoteAccount } from '../names.ts';
import { structure } from '../structure.ts';
import { type Content, readContent } from './definitions.ts';
import { type Places, placesOf, type Plan, planOf } from './plan.ts';

/** Time that one statement waits for others which use the same table. */
const lockSeconds = 10;
/** As long as that, and longer: what was begun has to be taken back. */
const undoLockSeconds = 60;
/** From here on RENAME TABLE is all or nothing, also when the server is killed. */
const firstVersion = [10, 6] as const;

type Part = keyof Plan;
/** The name of the plan's table when a part begins. */
const whereIs: Readonly<Record<Part, 'planned' | 'done'>> = {
    leave: 'planned',
    move: 'planned',
    make: 'done',
    back: 'done',
    return: 'done',
    undo: 'planned'
};

const variables = 'declare at int; declare step longtext character set utf8mb4;';

/** How a new database takes the place of one. */
export const swap: SwapStatements = {
    check: (access, name) => access.use(null, (session) => check(session, name)),
    run: (access, name, other) => access.use(name, (session) => run(access, session, placesOf(name, other))),
    reconcile: (access, other) =>
        access.use(null, (session) => reconcile(access, session, placesOf('', other)))
};

async function check(session: Session, name: string): Promise<void> {
    const [major = 0, minor = 0] = session.serverVersion.split('.').map(Number);
    const isOld = major < firstVersion[0] || (major === firstVersion[0] && minor < firstVersion[1]);
    if (session.flavour !== 'mariadb' || isOld) {
        throw refused('Only MariaDB from 10.6 on can do this: restore into a new database');
    }
    const [outside] = await session.all(
        `select constraint_schema as found, table_name as name from information_schema.referential_constraints
         where unique_constraint_schema = ? and constraint_schema <> ?`,
        [name, name]
    );
    if (outside !== undefined) {
        throw refused(
            `${String(outside['name'])} in the database ${String(outside['found'])} refers to a table of this one`
        );
    }
}

function refused(message: string): Error {
    return errors.invalid([{ path: 'replace', message }]);
}

async function run(access: Access, session: Session, places: Places): Promise<void> {
    const { name, other, aside } = places;
    await lock(session, other);
    await check(session, name);
    await databases.create(access, { name: aside, owner: null, charset: null, collation: null });
    const definer = guestOf(name);
    await ensureDefiner(session, definer, name);
    // Without the right to make things for another account, the old database could not be mended either.
    await session.run(
        `create definer = ${quoteAccount(definer)} procedure ${quote(aside)}.${quote(other)}() begin end`
    );
    const old = await readContent(session, name);
    const fresh = await readFresh(session, places);
    await writePlan(session, places, planOf(places, old, fresh, definer));
    for (const { type, name: trigger } of fresh.definitions) {
        if (type === 'trigger') {
            await session.run(`drop trigger ${quote(other)}.${quote(trigger)}`);
        }
    }
    await session.run(`use ${quote(name)}`);
    try {
        await execute(session, block(places, ['leave', 'move', 'make']));
    } catch (error) {
        // The connection may have been lost behind the move of the tables.
        if (!(await access.use(null, (next) => complete(next, places)).catch(() => false))) {
            throw error;
        }
    }
}

/** The new content, for its new place. @throws SQL_FAILED 42250 where it names the place that it is in */
async function readFresh(session: Session, { name, other }: Places): Promise<Content> {
    const fresh = await readContent(session, other);
    const [broken] = fresh.brokenViews;
    if (broken !== undefined) {
        throw fail.SQL_FAILED({
            sqlState: null,
            message: `the view ${broken} refers to what is not there`
        });
    }
    const [from, to] = [`${quote(other)}.`, `${quote(name)}.`];
    const [column] = await session.all(
        'select table_name as name from information_schema.columns where table_schema = ? and instr(column_default, ?) > 0',
        [other, from]
    );
    // A name with quotes could end a text of the view that says the same by chance.
    const stuck = /['"\\]/.test(name)
        ? fresh.definitions.find(({ type, text }) => type === 'view' && text.includes(from))?.name
        : undefined;
    const found = column?.['name'] ?? stuck;
    if (found !== undefined) {
        throw fail.SQL_FAILED({
            sqlState: null,
            message: `${String(found)} names its database, and cannot be moved to another one`
        });
    }
    return {
        ...fresh,
        definitions: fresh.definitions.map((each) =>
            each.type === 'view' ? { ...each, text: each.text.replaceAll(from, to) } : each
        )
    };
}

async function writePlan(session: Session, { name, aside, planned }: Places, plan: Plan): Promise<void> {
    const table = `${quote(aside)}.${quote(planned)}`;
    await session.run(
        `create table ${table} (id int auto_increment primary key, part varchar(10) not null, text longtext not null)
         engine = InnoDB character set utf8mb4`
    );
    await session.run('begin');
    const rows: readonly (readonly [string, readonly string[]])[] = [
        ...Object.entries(plan),
        ['name', [name]]
    ];
    for (const [part, texts] of rows) {
        for (const text of texts) {
            await session.run(`insert into ${table} (part, text) values (?, ?)`, [part, text]);
        }
    }
    await session.run('commit');
}

/** One statement that runs these parts of the plan, and takes everything back where one fails. */
function block(places: Places, parts: readonly Part[]): string {
    return `begin not atomic
        ${variables}
        declare code int default 0;
        declare message text character set utf8mb4;
        begin
            declare exit handler for sqlexception get diagnostics condition 1 code = mysql_errno, message = message_text;
            set session lock_wait_timeout = ${lockSeconds};
            ${parts.map((part) => runPart(places, part)).join('')}
            drop table ${tableOf(places, 'done')};
        end;
        if code <> 0 then
            ${undo(places)}
            signal sqlstate '45000' set mysql_errno = code, message_text = message;
        end if;
    end`;
}

function undoBlock(places: Places): string {
    return `begin not atomic ${variables} ${undo(places)} end`;
}

function undo(places: Places): string {
    const { literal } = structure;
    return `set session lock_wait_timeout = ${undoLockSeconds};
        if exists (select 1 from information_schema.tables
                   where table_schema = ${literal(places.aside)} and table_name = ${literal(places.done)}) then
            ${runPart(places, 'back')}
            ${runPart(places, 'return')}
        end if;
        ${runPart(places, 'undo')}
        drop table ${tableOf(places, 'planned')};`;
}

/** Runs the statements of a part in their order. `move` and `return` are one each, which renames the table that it is read from. */
function runPart(places: Places, part: Part): string {
    const table = tableOf(places, whereIs[part]);
    const next = (after: string): string =>
        `set at = (select min(id) from ${table} where part = '${part}'${after});`;
    const once = `${next('')} set step = (select text from ${table} where id = at); execute immediate step;`;
    return part === 'move' || part === 'return'
        ? once
        : `${next('')}
            while at is not null do
                set step = (select text from ${table} where id = at);
                execute immediate step;
                ${next(' and id > at')}
            end while;`;
}

function tableOf({ aside, ...tables }: Places, which: 'planned' | 'done'): string {
    return `${quote(aside)}.${quote(tables[which])}`;
}

async function reconcile(access: Access, session: Session, places: Places): Promise<void> {
    await complete(session, places);
    const found = await findPlaces(session, places);
    for (const database of [places.other, places.aside].filter((each) => found.includes(each))) {
        await databases.drop(access, database);
    }
}

/** Finishes what was cut behind the move of the tables, and undoes what was cut before it. Says whether it finished something. */
async function complete(session: Session, places: Places): Promise<boolean> {
    await lock(session, places.other);
    const found = await findPlaces(session, places);
    const which = (['done', 'planned'] as const).find((each) => found.includes(places[each]));
    if (which === undefined) {
        return false;
    }
    const [row] = await session.all(`select text from ${tableOf(places, which)} where part = 'name'`);
    if (row === undefined) {
        // The plan was not written to its end, so nothing of it has run.
        return false;
    }
    await session.run(`use ${quote(String(row['text']))}`);
    if (which === 'planned') {
        await execute(session, undoBlock(places));
        return false;
    }
    const failure = await execute(session, block(places, ['make'])).then(
        () => null,
        (error: unknown) => error
    );
    const left = await findPlaces(session, places);
    if (left.includes(places.done) || left.includes(places.planned)) {
        throw failure;
    }
    return failure === null;
}

/** Which of the databases there are, and which table has the plan. */
async function findPlaces(
    session: Session,
    { other, aside, planned, done }: Places
): Promise<readonly string[]> {
    const rows = await session.all(
        `select schema_name as name from information_schema.schemata where schema_name in (?, ?)
         union all select table_name from information_schema.tables where table_schema = ? and table_name in (?, ?)`,
        [other, aside, aside, planned, done]
    );
    return rows.map(({ name }) => String(name));
}

/** Holds off others until the session ends: one that was cut may still be at work on the server. @throws IN_USE 40901 */
async function lock(session: Session, other: string): Promise<void> {
    const [row] = await session.all('select get_lock(?, 1) as held', [other]);
    if (Number(row?.['held']) !== 1) {
        throw errors.inUse(`a replacement with ${other}`);
    }
}

/** Runs a statement that may take longer than those of the plugin. */
async function execute(session: Session, sql: string): Promise<void> {
    const result = await session.stream(sql, [], { write: true });
    for await (const _ of result.batches) {
        // It gives no rows; its end is wanted.
    }
}
