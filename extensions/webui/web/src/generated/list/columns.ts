/** Which properties of a list's items become columns, and in which order. */
import { plain, type Schema, titleOf } from '../../schema/schema.ts';

/** One column of a generated list. */
export interface Column {
    readonly key: string;
    readonly title: string;
    readonly schema: Schema;
}

const most = 6;
const first = ['name', 'title', 'domain', 'username', 'label'];
const second = ['state', 'status', 'enabled', 'health'];
const left = new Set(['version', 'createdAt', 'updatedAt', 'id']);

/** The columns of items: those that say so first, then names, states and the rest; never objects, secrets or stamps unless they say so. */
export function columnsOf(schema: Schema): readonly Column[] {
    const all = Object.entries(schema.properties ?? {}).map(([key, each]) => ({
        key,
        title: titleOf(key, each),
        schema: each
    }));
    const said = all
        .filter(({ schema: each }) => typeof each['x-ui']?.column === 'number')
        .sort((a, b) => Number(a.schema['x-ui']?.column) - Number(b.schema['x-ui']?.column));
    const rest = all
        .filter(
            (column) => !said.includes(column) && column.schema['x-ui']?.column !== false && isShown(column)
        )
        .sort((a, b) => rank(a.key) - rank(b.key));
    const columns = [...said, ...rest].slice(0, most);
    return columns.length > 0 ? columns : all.slice(0, 1);
}

/** The schema of a list's items; of what the rows have where the route does not describe them. */
export function itemSchema({ items = {} }: Schema, rows: readonly object[]): Schema {
    const keys = items.properties === undefined ? Object.keys(rows[0] ?? {}) : [];
    return keys.length === 0 ? items : { properties: Object.fromEntries(keys.map((key) => [key, {}])) };
}

/** Name of the property that names an item: what the route says, else the first that is usual. */
export function labelOf(schema: Schema, said: string | undefined): string | undefined {
    const keys = Object.keys(schema.properties ?? {});
    return [said, ...first].find((key) => key !== undefined && keys.includes(key)) ?? keys[0];
}

/** Name of the property that the path's parameter is filled with. */
export function idOf(schema: Schema, param: string): string {
    const keys = Object.keys(schema.properties ?? {});
    return [param, 'id', 'name', 'key'].find((key) => keys.includes(key)) ?? param;
}

function isShown({ key, schema }: Column): boolean {
    const { kind } = plain(schema);
    return !left.has(key) && !['object', 'list', 'map', 'json', 'secret', 'lines'].includes(kind);
}

function rank(key: string): number {
    return first.includes(key) ? 0 : second.includes(key) ? 1 : 2;
}
