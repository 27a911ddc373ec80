/** Which tables of PostgreSQL refer to which, and which hold rows of others. */
import type { ForeignKey, Session, TableName } from '../kinds/kind.ts';
import { quote } from './accounts/names.ts';

/** All foreign keys of a database; those that partitions have from their table are left out. */
export async function foreignKeys(session: Session, database: string): Promise<readonly ForeignKey[]> {
    const parts = (keys: string, relation: string): string =>
        `array_to_json(array(select a.attname from unnest(${keys}) with ordinality k(num, place)
         join pg_attribute a on a.attrelid = ${relation} and a.attnum = k.num order by k.place))::text`;
    const rows = (await session.all(
        `select n.nspname as schema, t.relname as "table", ${parts('c.conkey', 'c.conrelid')} as columns,
                m.nspname as target_schema, r.relname as target, ${parts('c.confkey', 'c.confrelid')} as target_columns
         from pg_constraint c join pg_class t on t.oid = c.conrelid join pg_namespace n on n.oid = t.relnamespace
         join pg_class r on r.oid = c.confrelid join pg_namespace m on m.oid = r.relnamespace
         where c.contype = 'f' and c.conparentid = 0`
    )) as {
        schema: string;
        table: string;
        columns: string;
        target_schema: string;
        target: string;
        target_columns: string;
    }[];
    return rows.map((row) => ({
        table: { database, schema: row.schema, table: row.table },
        columns: JSON.parse(row.columns) as string[],
        target: { database, schema: row.target_schema, table: row.target },
        targetColumns: JSON.parse(row.target_columns) as string[]
    }));
}

/** The table with its partitions and the tables that inherit from it. */
export async function parts(session: Session, name: TableName): Promise<readonly TableName[]> {
    const rows = (await session.all(
        `with recursive tree as (
             select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2
             union select i.inhrelid from pg_inherits i join tree t on t.oid = i.inhparent)
         select n.nspname as schema, c.relname as "table" from tree t join pg_class c on c.oid = t.oid join pg_namespace n on n.oid = c.relnamespace`,
        [name.schema, name.table]
    )) as { schema: string; table: string }[];
    return rows.map(({ schema, table }) => ({ database: name.database, schema, table }));
}

/** The statement that removes rows that refer to rows that are not there. */
export function dangling({ table, columns, target, targetColumns }: ForeignKey): string {
    const same = columns.map((name, index) => `r.${quote(targetColumns[index] ?? '')} = o.${quote(name)}`);
    const set = columns.map((name) => `o.${quote(name)} is not null`);
    return `delete from ${place(table)} o where ${set.join(' and ')}
            and not exists (select 1 from ${place(target)} r where ${same.join(' and ')})`;
}

const place = ({ schema, table }: TableName): string => `${quote(schema)}.${quote(table)}`;
