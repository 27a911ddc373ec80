/** Tables of MySQL and MariaDB and what they are made of. */
import { errors } from '@portico/sdk';

import type {
    Cell,
    ColumnInfo,
    ForeignKey,
    Session,
    StructureStatements,
    TableInfo,
    TableName,
    TableStructure
} from '../kinds/kind.ts';
import { quote } from './names.ts';
import { parameterOf } from './rows/cells.ts';
import { insert } from './rows/insert.ts';

/** The structure of databases. A schema is the database itself. */
export const structure: StructureStatements = {
    defaultSchema: (database) => database,
    foreignKeys,
    parts: async (_session, name) => [name],
    dangling,
    tables,
    table,
    insert,
    quoteTable: ({ database, table: name }) => `${quote(database)}.${quote(name)}`,
    literal: literalOf,
    same
};

async function tables(session: Session, database: string): Promise<readonly TableInfo[]> {
    const rows = (await session.all(
        `select table_name as name, table_type as type, table_rows as estimate, data_length + index_length as bytes
         from information_schema.tables where table_schema = ? order by table_name`,
        [database]
    )) as { name: string; type: string; estimate: number | null; bytes: number | null }[];
    return rows.map(({ name, type, estimate, bytes }) => ({
        schema: database,
        name,
        type: type.includes('VIEW') ? 'view' : 'table',
        rows: estimate === null ? null : Number(estimate),
        sizeBytes: bytes === null ? null : Number(bytes)
    }));
}

async function table(session: Session, name: TableName): Promise<TableStructure> {
    const place = [name.database, name.table];
    const columns = await selectColumns(session, place);
    if (columns.length === 0) {
        throw errors.notFound(`There is no table ${name.table}`);
    }
    return {
        columns,
        indexes: await selectIndexes(session, place),
        keys: await selectKeys(session, place),
        ddl: await selectDdl(session, name)
    };
}

async function selectColumns(session: Session, place: readonly string[]): Promise<readonly ColumnInfo[]> {
    const rows = (await session.all(
        `select column_name as name, column_type as type, is_nullable as nullable, column_default as preset, extra as extra
         from information_schema.columns where table_schema = ? and table_name = ? order by ordinal_position`,
        place
    )) as { name: string; type: string; nullable: string; preset: string | null; extra: string }[];
    return rows.map(({ name, type, nullable, preset, extra }) => ({
        name,
        type,
        nullable: nullable === 'YES',
        default: preset,
        generated: /auto_increment|generated/i.test(extra) && !/default_generated/i.test(extra)
    }));
}

async function selectIndexes(session: Session, place: readonly string[]): Promise<TableStructure['indexes']> {
    const rows = (await session.all(
        `select index_name as name, non_unique as repeats, column_name as part
         from information_schema.statistics where table_schema = ? and table_name = ? order by index_name, seq_in_index`,
        place
    )) as { name: string; repeats: number; part: string | null }[];
    return [...Map.groupBy(rows, ({ name }) => name)].map(([name, parts]) => ({
        name,
        unique: Number(parts[0]?.repeats) === 0,
        columns: parts.map(({ part }) => part ?? '(expression)')
    }));
}

async function selectKeys(session: Session, place: readonly string[]): Promise<TableStructure['keys']> {
    const rows = (await session.all(
        `select c.constraint_name as name, c.constraint_type as type, k.column_name as part,
                k.referenced_table_schema as target_schema, k.referenced_table_name as target, k.referenced_column_name as target_part
         from information_schema.table_constraints c
         join information_schema.key_column_usage k
           on k.constraint_schema = c.constraint_schema and k.constraint_name = c.constraint_name and k.table_name = c.table_name
         where c.table_schema = ? and c.table_name = ? and c.constraint_type in ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
         order by c.constraint_name, k.ordinal_position`,
        place
    )) as {
        name: string;
        type: string;
        part: string;
        target_schema: string | null;
        target: string | null;
        target_part: string | null;
    }[];
    return [...Map.groupBy(rows, ({ name }) => name)].map(([name, parts]) => {
        const [first] = parts;
        const type = first?.type ?? '';
        return {
            name,
            type: type.startsWith('PRIMARY') ? 'primary' : type.startsWith('FOREIGN') ? 'foreign' : 'unique',
            columns: parts.map(({ part }) => part),
            references:
                first === undefined || first.target === null
                    ? null
                    : {
                          schema: first.target_schema ?? '',
                          table: first.target,
                          columns: parts.map((each) => each.target_part ?? '')
                      }
        } as const;
    });
}

async function foreignKeys(session: Session, database: string): Promise<readonly ForeignKey[]> {
    const rows = (await session.all(
        `select table_name as name, constraint_name as rule, column_name as part, referenced_table_name as target, referenced_column_name as target_part
         from information_schema.key_column_usage where table_schema = ? and referenced_table_schema = ? order by table_name, constraint_name, ordinal_position`,
        [database, database]
    )) as { name: string; rule: string; part: string; target: string; target_part: string }[];
    return [...Map.groupBy(rows, ({ name, rule }) => `${name}\0${rule}`).values()].map((parts) => ({
        table: { database, schema: database, table: parts[0]?.name ?? '' },
        columns: parts.map(({ part }) => part),
        target: { database, schema: database, table: parts[0]?.target ?? '' },
        targetColumns: parts.map((each) => each.target_part)
    }));
}

/** A join, because a statement may not read the table that it deletes from in another way. */
function dangling({ table: own, columns, target, targetColumns }: ForeignKey): string {
    const same = columns.map((name, index) => `r.${quote(targetColumns[index] ?? '')} = o.${quote(name)}`);
    const set = columns.map((name) => `o.${quote(name)} is not null`);
    return `delete o from ${quote(own.table)} o left join ${quote(target.table)} r on ${same.join(' and ')}
            where r.${quote(targetColumns[0] ?? '')} is null and ${set.join(' and ')}`;
}

async function selectDdl(session: Session, name: TableName): Promise<string> {
    const [row = {}] = await session.all(`show create table ${structure.quoteTable(name)}`);
    return String(row['Create Table'] ?? row['Create View'] ?? '');
}

function literalOf(value: Cell): string {
    if (value === null || typeof value === 'number' || typeof value === 'boolean') {
        return String(value);
    }
    if (typeof value === 'object' && 'base64' in value) {
        return `x'${Buffer.from(String(value.base64), 'base64').toString('hex')}'`;
    }
    const text = typeof value === 'object' ? JSON.stringify(value) : value;
    return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The server compares texts by its collations and numbers by their values; here both must also read the same. */
function same(column: string, value: Cell, parameters: unknown[]): string {
    if (value === null) {
        return `${quote(column)} is null`;
    }
    const given = parameterOf(value);
    if (given instanceof Buffer) {
        parameters.push(value);
        return `cast(${quote(column)} as binary) = ?`;
    }
    const text = `cast(${quote(column)} as char character set utf8mb4) collate utf8mb4_bin`;
    if (typeof value === 'number' || typeof value === 'boolean') {
        parameters.push(Number(value), String(Number(value)));
        return `(${quote(column)} = ? or ${text} = ?)`;
    }
    parameters.push(given);
    return `${text} = ?`;
}
