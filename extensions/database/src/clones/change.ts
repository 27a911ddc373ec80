/** Changes a dump on its way into a clone: rows are masked, and left out beyond a number, before the new database sees them. */
import { randomInt } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

import { fail } from '../errors.ts';
import type { ForeignKey, Kind, Session } from '../kinds/kind.ts';
import type { Mask } from './masking.ts';
import { type MaskPlan, tableKey, type TableMasks } from './plan.ts';

/** A value as a dump writes it, and its meaning. */
export interface RowFormat {
    /** Null for an empty value. */
    read(raw: string): string | null;
    write(value: string | null): string;
}

/** What a clone holds of the rows of the database that it is made of. */
export interface CloneContent {
    readonly masks: MaskPlan;
    /** Rows of each table; null: all. */
    readonly rows: number | null;
}

/** Rows that are masked before others get their turn. */
export const chunkRows = 250;
/** Lets other work of the panel go on. */
export const pause = (): Promise<void> => setImmediate();

type Row = string[];
const noMasks: TableMasks = new Map();

/** Rows whose values are exchanged wait for others, so that no row keeps its own. */
class Windows {
    #held: Row[] = [];

    /** Takes rows in, and gives those that are ready. */
    push(rows: readonly Row[], columns: readonly number[]): readonly Row[] {
        if (rows.length < 2) {
            this.#held.push(...rows);
            return [];
        }
        const ready = this.#held;
        this.#held = [...rows];
        return shuffled(ready, columns);
    }

    end(columns: readonly number[]): readonly Row[] {
        const ready = this.#held;
        this.#held = [];
        return shuffled(ready, columns);
    }
}

/** Each value goes to another row (Sattolo's algorithm), each column by itself. */
function shuffled(rows: readonly Row[], columns: readonly number[]): readonly Row[] {
    for (const column of columns) {
        for (let last = rows.length - 1; last > 0; last -= 1) {
            const [one, other] = [rows[last], rows[randomInt(last)]];
            if (one !== undefined && other !== undefined) {
                [one[column], other[column]] = [other[column] ?? '', one[column] ?? ''];
            }
        }
    }
    return rows;
}

/** The rows of one table on their way. */
export class TableRows {
    readonly #windows = new Windows();
    readonly #format: RowFormat;
    readonly #masks: readonly (readonly [number, Mask])[];
    readonly #shuffled: readonly number[];
    #left: number;

    /** @throws SQL_FAILED 42250 where the dump does not name a column that is to be masked: its rows would come unmasked */
    constructor(format: RowFormat, columns: readonly string[], masks: TableMasks, rows: number | null) {
        this.#format = format;
        this.#left = rows ?? Infinity;
        const placed = [...masks].map(([column, mask]) => [columns.indexOf(column), mask, column] as const);
        const missing = placed.find(([index]) => index < 0);
        if (missing !== undefined) {
            throw fail.SQL_FAILED({
                sqlState: null,
                message: `the dump does not name the column ${missing[2]}`
            });
        }
        this.#masks = placed.flatMap(([index, mask]) => (mask === 'shuffle' ? [] : [[index, mask] as const]));
        this.#shuffled = placed.flatMap(([index, mask]) => (mask === 'shuffle' ? [index] : []));
    }

    /** Rows that are ready for the new database. */
    take(rows: readonly Row[]): readonly Row[] {
        const wanted = rows.slice(0, this.#left);
        this.#left -= wanted.length;
        for (const row of wanted) {
            for (const [index, mask] of this.#masks) {
                const value = this.#format.read(row[index] ?? '');
                row[index] = value === null ? (row[index] ?? '') : this.#format.write(mask(value));
            }
        }
        return this.#shuffled.length === 0 ? wanted : this.#windows.push(wanted, this.#shuffled);
    }

    /** The rows that waited for others. */
    end(): readonly Row[] {
        return this.#windows.end(this.#shuffled);
    }
}

/** Makes what changes the rows of each table. */
export class CloneRows {
    readonly #content: CloneContent;

    constructor(content: CloneContent) {
        this.#content = content;
    }

    /** Whether rows of this table come as they are. */
    isPlain(schema: string, table: string): boolean {
        return this.#content.rows === null && !this.#content.masks.has(tableKey(schema, table));
    }

    of(format: RowFormat, schema: string, table: string, columns: readonly string[]): TableRows {
        const masks = this.#content.masks.get(tableKey(schema, table)) ?? noMasks;
        return new TableRows(format, columns, masks, this.#content.rows);
    }
}

/** Removes rows that refer to rows which are not in the sample, until there are none. */
export async function removeDangling(
    kind: Kind,
    session: Session,
    foreignKeys: readonly ForeignKey[]
): Promise<void> {
    for (let removed = 1; removed > 0;) {
        removed = 0;
        for (const key of foreignKeys) {
            const result = await session.stream(kind.structure.dangling(key), [], { write: true });
            for await (const _ of result.batches) {
                // It gives no rows; its end is wanted.
            }
            removed += result.affected() ?? 0;
        }
    }
}
