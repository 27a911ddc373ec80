/** Rows into a table of PostgreSQL. */
import type { Cell, Session, StructureStatements, TableName } from '../kinds/kind.ts';
import { quote } from './accounts/names.ts';

/**
 * Inserts rows with one parameter a column: an array of texts. A value for each place would be a parameter, and the server takes three times as long.
 * Types have no length here, because a cast to `varchar(3)` would cut a text that the column refuses.
 */
export const insert: StructureStatements['insert'] = async (session, name, { names, rows }) => {
    const types = await typesOf(session, name);
    const cells = names.map((_, at) => `c${at}`);
    const values = names.map((each, at) => `c${at}::${types.get(each)}`);
    const arrays = names.map((_, at) => `$${at + 1}::text[]`);
    await session.run(
        `insert into ${quote(name.schema)}.${quote(name.table)} (${names.map(quote).join(', ')})
         select ${values.join(', ')} from unnest(${arrays.join(', ')}) as v (${cells.join(', ')})`,
        names.map((_, at) => rows.map((row) => textOf(row[at] ?? null)))
    );
};

/** The type of each column without its length; of a domain the type below it. */
async function typesOf(session: Session, { schema, table }: TableName): Promise<ReadonlyMap<string, string>> {
    const found = await session.all(
        `with recursive base (name, type) as (
             select a.attname, a.atttypid from pg_attribute a
             join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
             where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped
             union all select b.name, t.typbasetype from base b join pg_type t on t.oid = b.type where t.typtype = 'd')
         select b.name, format_type(b.type, -1) as type from base b join pg_type t on t.oid = b.type where t.typtype <> 'd'`,
        [schema, table]
    );
    return new Map(found.map(({ name, type }) => [String(name), String(type)]));
}

/** A value as the server reads it from a text. */
function textOf(value: Cell): string | null {
    if (value === null || typeof value === 'string') {
        return value;
    }
    if (Array.isArray(value)) {
        return `{${value.map((each: Cell) => elementOf(each)).join(',')}}`;
    }
    if (typeof value !== 'object') {
        return String(value);
    }
    return 'base64' in value && typeof value.base64 === 'string'
        ? `\\x${Buffer.from(value.base64, 'base64').toString('hex')}`
        : JSON.stringify(value);
}

function elementOf(value: Cell): string {
    const text = textOf(value);
    return text === null ? 'NULL' : Array.isArray(value) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}
