/** Pages of the rows of a table. */
import { errors } from '@portico/sdk';

import type { Kind, TableName, TableStructure } from '../kinds/kind.ts';

/** Which rows, in which order. */
export interface RowsQuery {
    readonly sort?: string | undefined;
    readonly order: 'asc' | 'desc';
    /** `column:operator:value` each; a value may hold colons. */
    readonly filter: readonly string[];
    readonly limit: number;
    readonly offset: number;
}

/** A statement with its parameters. */
export interface BoundStatement {
    readonly sql: string;
    readonly parameters: readonly unknown[];
}

const comparisons: Readonly<Record<string, string>> = {
    eq: '=',
    ne: '<>',
    lt: '<',
    lte: '<=',
    gt: '>',
    gte: '>='
};

/** The statement that reads one page, and one row more than that. @throws VALIDATION_FAILED 40001 for a column that there is not, or an unknown operator */
export function selectRows(
    kind: Kind,
    name: TableName,
    { columns, keys }: TableStructure,
    query: RowsQuery
): BoundStatement {
    const known = new Set(columns.map((column) => column.name));
    const parameters: unknown[] = [];
    const wheres = query.filter.map((filter, index) => conditionOf(kind, { filter, index, known, parameters }));
    const primary = keys.find(({ type }) => type === 'primary')?.columns ?? [];
    if (query.sort !== undefined && !known.has(query.sort)) {
        throw errors.invalid([{ path: 'sort', message: `There is no column ${query.sort}` }]);
    }
    // Pages of a table without an order could repeat rows; the key makes the order complete.
    const orders = [
        ...(query.sort === undefined ? [] : [`${kind.quote(query.sort)} ${query.order}`]),
        ...primary.filter((column) => column !== query.sort).map((column) => kind.quote(column))
    ];
    const sql = [
        `select * from ${kind.structure.quoteTable(name)}`,
        wheres.length === 0 ? '' : ` where ${wheres.join(' and ')}`,
        orders.length === 0 ? '' : ` order by ${orders.join(', ')}`,
        ` limit ${query.limit + 1} offset ${query.offset}`
    ];
    return { sql: sql.join(''), parameters };
}

function conditionOf(
    kind: Kind,
    given: {
        readonly filter: string;
        readonly index: number;
        readonly known: ReadonlySet<string>;
        readonly parameters: unknown[];
    }
): string {
    const { filter, index, known, parameters } = given;
    // A name may hold colons itself: the longest that is a column counts.
    const name = [...known]
        .filter((column) => filter.startsWith(`${column}:`))
        .sort((one, other) => other.length - one.length)[0];
    const [, operator = '', value = ''] = /^([^:]*):?(.*)$/s.exec(filter.slice((name?.length ?? 0) + 1)) ?? [];
    const wrong = (message: string): Error => errors.invalid([{ path: `filter.${index}`, message }]);
    if (name === undefined) {
        throw wrong('A filter is column:operator:value, and the column is one of the table');
    }
    const column = kind.quote(name);
    if (operator === 'null' || operator === 'notnull') {
        return `${column} is ${operator === 'null' ? '' : 'not '}null`;
    }
    const comparison = comparisons[operator];
    if (comparison !== undefined) {
        return `${column} ${comparison} ${kind.placeholder(parameters.push(value))}`;
    }
    if (operator === 'contains') {
        const text = kind.name === 'mysql' ? `cast(${column} as char)` : `${column}::text`;
        const pattern = `%${value.replace(/[%_!]/g, '!$&')}%`;
        return `${text} like ${kind.placeholder(parameters.push(pattern))} escape '!'`;
    }
    throw wrong(`${operator} is not one of ${[...Object.keys(comparisons), 'contains', 'null', 'notnull'].join(', ')}`);
}
