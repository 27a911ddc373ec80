/** What a database of MariaDB holds beside its tables, as the statements that make it again. */
import { fail } from '../../errors.ts';
import type { Row, Session } from '../../kinds/kind.ts';
import { quote } from '../names.ts';
import { structure } from '../structure.ts';

/** A thing that has no rows. Two of the same type and name cannot be in one database. */
export interface Definition {
    readonly type: 'trigger' | 'procedure' | 'function' | 'package' | 'package body' | 'view' | 'event';
    readonly name: string;
    /** The statement as the server writes it, with names as they are for the database that it is in. */
    readonly text: string;
    /** Sets what the server keeps of the session that makes it. */
    readonly settings: string;
}

/** What is in a database. */
export interface Content {
    /** Tables and sequences. */
    readonly tables: readonly string[];
    /** Views that cannot be read, because of what they refer to. */
    readonly brokenViews: readonly string[];
    /** In an order in which they can be made. Broken views are left out. */
    readonly definitions: readonly Definition[];
}

/** Leaves the session in another database. @throws SQL_FAILED 42250 where the account may not see a definition */
export async function readContent(session: Session, database: string): Promise<Content> {
    await session.run("set session sql_mode = '', sql_quote_show_create = 1");
    await session.run(`use ${quote(database)}`);
    const select = async (sql: string): Promise<readonly Row[]> => session.all(sql, [database]);
    const all = await select(
        `select table_name as name, table_type as type from information_schema.tables
         where table_schema = ? and table_type <> 'TEMPORARY' order by table_name`
    );
    const views = all.filter(({ type }) => type === 'VIEW');
    // Only this statement looks into the views.
    const status = await session.all(`show table status from ${quote(database)} where comment <> 'VIEW'`);
    const doubtful = new Set(status.map(({ Name }) => Name));
    const isWhole = ({ name }: Row): boolean => !doubtful.has(name);
    const others = [
        ...(await select(
            `select 'trigger' as type, trigger_name as name from information_schema.triggers where trigger_schema = ?
             order by event_object_table, action_timing, event_manipulation, action_order`
        )),
        ...(await select(
            `select lower(routine_type) as type, routine_name as name from information_schema.routines where routine_schema = ?
             order by routine_type = 'PACKAGE BODY', routine_name`
        ))
    ];
    const events = await select(
        "select 'event' as type, event_name as name from information_schema.events where event_schema = ? order by event_name"
    );
    const read = async (rows: readonly Row[]): Promise<readonly Definition[]> => {
        const found: Definition[] = [];
        for (const { type, name } of rows) {
            found.push(
                await readDefinition(session, String(type).toLowerCase() as Definition['type'], String(name))
            );
        }
        return found;
    };
    const [first, last] = [await read(others), await read(events)];
    const inOrder = await sortViews(session, database, await read(views.filter(isWhole)));
    return {
        tables: all.filter(({ type }) => type !== 'VIEW').map(({ name }) => String(name)),
        brokenViews: views.filter((row) => !isWhole(row)).map(({ name }) => String(name)),
        definitions: [...first, ...inOrder, ...last]
    };
}

async function readDefinition(session: Session, type: Definition['type'], name: string): Promise<Definition> {
    const [row = {}] = await session.all(`show create ${type} ${quote(name)}`);
    const column =
        type === 'trigger'
            ? 'SQL Original Statement'
            : Object.keys(row).find((each) => each.toLowerCase() === `create ${type}`);
    const text = row[column ?? ''];
    if (typeof text !== 'string') {
        throw fail.SQL_FAILED({ sqlState: null, message: `the definition of ${name} cannot be read` });
    }
    const value = (key: string): string => structure.literal(String(row[key] ?? ''));
    return {
        type,
        name,
        text,
        settings: [
            `set session sql_mode = ${value('sql_mode')}, collation_connection = ${value('collation_connection')}`,
            ...(type === 'event' ? [`time_zone = ${value('time_zone')}`] : [])
        ].join(', ')
    };
}

/** Each view behind those that it reads. Seen from another database, a view names its tables with theirs. */
async function sortViews(
    session: Session,
    database: string,
    views: readonly Definition[]
): Promise<readonly Definition[]> {
    await session.run('use information_schema');
    const texts = new Map<Definition, string>();
    for (const view of views) {
        const [row] = await session.all(`show create view ${quote(database)}.${quote(view.name)}`);
        texts.set(view, String(row?.['Create View']));
    }
    const sorted = new Set<Definition>();
    const seen = new Set<Definition>();
    const add = (view: Definition): void => {
        if (!seen.has(view)) {
            seen.add(view);
            views
                .filter(({ name }) => texts.get(view)?.includes(`${quote(database)}.${quote(name)}`) === true)
                .forEach(add);
            sorted.add(view);
        }
    };
    views.forEach(add);
    return [...sorted];
}
