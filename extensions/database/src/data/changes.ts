/** Changes of rows: all of a request, or none. */
import { errors } from '@portico/sdk';

import type { Access, Cell, Kind, Session, TableName } from '../kinds/kind.ts';

/** Values by the names of their columns. */
export type Values = Readonly<Record<string, Cell>>;

/** One change of a row of a table. */
export interface Change {
    readonly op: 'insert' | 'update' | 'delete';
    /** Names the row; not for `insert`. */
    readonly key?: Values | undefined;
    /** What is set; not for `delete`. */
    readonly set?: Values | undefined;
    /** What the client saw; where a column differs, nothing is changed. */
    readonly expected?: Values | undefined;
}

/** Makes all changes in one transaction. @throws VERSION_STALE 41200, NOT_FOUND 40400, VALIDATION_FAILED 40001, SQL_FAILED 42250 */
export async function applyChanges(
    kind: Kind,
    access: Access,
    table: TableName,
    changes: readonly Change[]
): Promise<{ readonly affected: number }> {
    return access.use(table.database, async (session) => {
        await session.run('begin');
        for (const [index, change] of changes.entries()) {
            await apply({ kind, session, place: kind.structure.quoteTable(table) }, change, `changes.${index}`);
        }
        // Without it the session ends with its transaction open, and the server takes all of it back.
        await session.run('commit');
        return { affected: changes.length };
    });
}

interface Target {
    readonly kind: Kind;
    readonly session: Session;
    readonly place: string;
}

async function apply({ kind, session, place }: Target, change: Change, path: string): Promise<void> {
    const { op, set = {}, key = {}, expected = {} } = change;
    const [names, keys] = [Object.keys(set), Object.keys(key)];
    if (op === 'insert' ? keys.length > 0 : keys.length === 0) {
        throw errors.invalid([{ path: `${path}.key`, message: 'Each change but an insert has a key' }]);
    }
    if (op === 'delete' ? names.length > 0 : op === 'update' && names.length === 0) {
        throw errors.invalid([{ path: `${path}.set`, message: 'An update sets something, and a delete nothing' }]);
    }
    const parameters: unknown[] = [];
    const bound = (value: Cell): string => kind.placeholder(parameters.push(value));
    const assigned = names.map((name) => [kind.quote(name), bound(set[name] ?? null)] as const);
    if (op === 'insert') {
        const columns = assigned.map(([name]) => name).join(', ');
        const values = assigned.map(([, value]) => value).join(', ');
        const nothing = kind.name === 'mysql' ? '() values ()' : 'default values';
        await session.run(
            `insert into ${place} ${names.length === 0 ? nothing : `(${columns}) values (${values})`}`,
            parameters
        );
        return;
    }
    const found = keys.map((name) => {
        const value = key[name] ?? null;
        return value === null ? `${kind.quote(name)} is null` : `${kind.quote(name)} = ${bound(value)}`;
    });
    const seen = Object.entries(expected).map(([name, value]) => kind.structure.same(name, value, parameters));
    const where = [...found, ...seen].join(' and ');
    const affected = await session.run(
        op === 'delete'
            ? `delete from ${place} where ${where}`
            : `update ${place} set ${assigned.map(([name, value]) => `${name} = ${value}`).join(', ')} where ${where}`,
        parameters
    );
    if (affected === 0) {
        throw Object.keys(expected).length > 0
            ? errors.stale('another one')
            : errors.notFound(`${path}: no row has that key`);
    }
    if (affected > 1) {
        throw errors.invalid([{ path: `${path}.key`, message: `${affected} rows have this key` }]);
    }
}
