/** Tables of PostgreSQL and what they are made of. */
import { errors } from '@portico/sdk';

import type {
    Cell,
    ColumnInfo,
    Session,
    StructureStatements,
    TableInfo,
    TableName,
    TableStructure
} from '../kinds/kind.ts';
import { literal, quote } from './accounts/names.ts';
import { insert } from './insert.ts';
import { dangling, foreignKeys, parts } from './references.ts';

const types = { r: 'table', p: 'table', v: 'view', m: 'materialized', f: 'foreign' } as const;

/** The structure of databases. */
export const structure: StructureStatements = {
    defaultSchema: () => 'public',
    foreignKeys,
    parts,
    dangling,
    tables,
    table,
    insert,
    quoteTable: ({ schema, table: name }) => `${quote(schema)}.${quote(name)}`,
    literal: literalOf,
    same
};

async function tables(
    session: Session,
    _database: string,
    schema: string | null
): Promise<readonly TableInfo[]> {
    const rows = (await session.all(
        `select n.nspname as schema, c.relname as name, c.relkind as type, c.reltuples::float8 as estimate,
                case when c.relkind in ('r', 'm', 'p') then pg_total_relation_size(c.oid) end as bytes
         from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
           ${schema === null ? '' : 'and n.nspname = $1'} order by n.nspname collate "C", c.relname collate "C"`,
        schema === null ? [] : [schema]
    )) as {
        schema: string;
        name: string;
        type: keyof typeof types;
        estimate: number;
        bytes: number | null;
    }[];
    return rows.map(({ schema: place, name, type, estimate, bytes }) => ({
        schema: place,
        name,
        type: types[type],
        rows: estimate < 0 ? null : Math.round(estimate),
        sizeBytes: bytes === null ? null : Number(bytes)
    }));
}

async function table(session: Session, name: TableName): Promise<TableStructure> {
    const [found] = await session.all(
        `select c.oid::int8 as oid, c.relkind as kind from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')`,
        [name.schema, name.table]
    );
    if (found === undefined) {
        throw errors.notFound(`There is no table ${name.table}`);
    }
    const oid = Number(found['oid']);
    const columns = await selectColumns(session, oid);
    const indexes = await selectIndexes(session, oid);
    const keys = await selectKeys(session, oid);
    const view = await session.all(`select pg_get_viewdef(${oid}::oid) as text`);
    const isView = found['kind'] === 'v' || found['kind'] === 'm';
    const ddl = isView
        ? `create ${found['kind'] === 'm' ? 'materialized ' : ''}view ${structure.quoteTable(name)} as\n${String(view[0]?.['text'])}`
        : ddlOf(name, columns, keys.definitions, indexes.definitions);
    return { columns, indexes: indexes.rows, keys: keys.rows, ddl };
}

async function selectColumns(session: Session, oid: number): Promise<readonly ColumnInfo[]> {
    const rows = (await session.all(
        `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable,
                pg_get_expr(d.adbin, d.adrelid) as preset, a.attidentity <> '' or a.attgenerated <> '' or pg_get_expr(d.adbin, d.adrelid) like 'nextval(%' as generated
         from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
         where a.attrelid = ${oid} and a.attnum > 0 and not a.attisdropped order by a.attnum`
    )) as {
        name: string;
        type: string;
        nullable: boolean;
        preset: string | null;
        generated: boolean | null;
    }[];
    return rows.map(({ preset, generated, ...row }) => ({
        ...row,
        default: preset,
        generated: generated ?? false
    }));
}

async function selectIndexes(
    session: Session,
    oid: number
): Promise<{ rows: TableStructure['indexes']; definitions: readonly string[] }> {
    const rows = (await session.all(
        `select c.relname as name, i.indisunique as "unique", pg_get_indexdef(i.indexrelid) as definition,
                array_to_json(array(select pg_get_indexdef(i.indexrelid, k, true) from generate_series(1, i.indnkeyatts) k))::text as columns,
                exists (select 1 from pg_constraint o where o.conindid = i.indexrelid and o.conrelid = i.indrelid) as owned
         from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = ${oid} order by c.relname collate "C"`
    )) as { name: string; unique: boolean; definition: string; columns: string; owned: boolean }[];
    return {
        rows: rows.map(({ name, unique, columns }) => ({
            name,
            unique,
            columns: JSON.parse(columns) as string[]
        })),
        definitions: rows.filter(({ owned }) => !owned).map(({ definition }) => definition)
    };
}

async function selectKeys(
    session: Session,
    oid: number
): Promise<{ rows: TableStructure['keys']; definitions: readonly string[] }> {
    const parts = (keys: string, relation: string): string =>
        `array_to_json(array(select a.attname from unnest(${keys}) with ordinality k(num, place) join pg_attribute a on a.attrelid = ${relation} and a.attnum = k.num order by k.place))::text`;
    const rows = (await session.all(
        `select c.conname as name, c.contype as type, pg_get_constraintdef(c.oid) as definition, ${parts('c.conkey', 'c.conrelid')} as columns,
                n.nspname as target_schema, t.relname as target, ${parts('c.confkey', 'c.confrelid')} as target_columns
         from pg_constraint c left join pg_class t on t.oid = c.confrelid left join pg_namespace n on n.oid = t.relnamespace
         where c.conrelid = ${oid} order by c.conname collate "C"`
    )) as {
        name: string;
        type: string;
        definition: string;
        columns: string;
        target_schema: string | null;
        target: string | null;
        target_columns: string;
    }[];
    const words = { p: 'primary', u: 'unique', f: 'foreign' } as const;
    return {
        rows: rows.flatMap(
            ({ name, type, columns, target_schema: schema, target, target_columns: targets }) =>
                type in words
                    ? [
                          {
                              name,
                              type: words[type as keyof typeof words],
                              columns: JSON.parse(columns) as string[],
                              references:
                                  target === null
                                      ? null
                                      : {
                                            schema: schema ?? '',
                                            table: target,
                                            columns: JSON.parse(targets) as string[]
                                        }
                          }
                      ]
                    : []
        ),
        definitions: rows
            .filter(({ type }) => 'pufcx'.includes(type))
            .map(({ name, definition }) => `constraint ${quote(name)} ${definition}`)
    };
}

/** The server gives no text for a table: this one is made of what it says of the parts. */
function ddlOf(
    name: TableName,
    columns: readonly ColumnInfo[],
    constraints: readonly string[],
    indexes: readonly string[]
): string {
    const lines = columns.map(
        ({ name: column, type, nullable, default: preset }) =>
            `${quote(column)} ${type}${preset === null ? '' : ` default ${preset}`}${nullable ? '' : ' not null'}`
    );
    const body = [...lines, ...constraints].map((line) => `    ${line}`).join(',\n');
    return [`create table ${structure.quoteTable(name)} (\n${body}\n)`, ...indexes]
        .map((each) => `${each};`)
        .join('\n');
}

function literalOf(value: Cell): string {
    if (value === null || typeof value === 'number' || typeof value === 'boolean') {
        return String(value);
    }
    if (typeof value === 'object' && 'base64' in value) {
        return `'\\x${Buffer.from(String(value.base64), 'base64').toString('hex')}'`;
    }
    const text = typeof value === 'object' ? JSON.stringify(value) : value;
    return `'${text.replaceAll("'", "''")}'`;
}

/** Compares what the column reads as: that is what the client saw. */
function same(column: string, value: Cell, parameters: unknown[]): string {
    if (value === null) {
        return `${quote(column)} is null`;
    }
    if (typeof value === 'object' && 'base64' in value) {
        return `${quote(column)} = decode(${literal(String(value.base64))}, 'base64')`;
    }
    parameters.push(typeof value === 'object' ? value : String(value));
    return `${quote(column)}::text = $${parameters.length}::text`;
}
