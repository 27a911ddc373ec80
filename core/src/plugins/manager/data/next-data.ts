/** The data folder that a swap makes for the new code. */
import { rm } from 'node:fs/promises';

import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { PluginDataRow } from '../records/entities.ts';
import type { Decision } from '../records/plugin.ts';
import type { DataRows } from './data-rows.ts';

/** Options of `rm` for a folder that a closing process may still write to. */
export const wholeFolder = { recursive: true, force: true, maxRetries: 3 } as const;

/** One new folder, until the swap is committed or given up. */
export class NextData {
    /** Absolute path of the folder. */
    readonly path: string;
    readonly #db: Database;
    readonly #rows: DataRows;
    readonly #commit: (row: PluginDataRow, also?: (tx: Transaction) => Promise<void>) => Promise<void>;
    #row: PluginDataRow;

    constructor(
        row: PluginDataRow,
        options: {
            readonly path: string;
            readonly db: Database;
            readonly rows: DataRows;
            readonly commit: (row: PluginDataRow, also?: (tx: Transaction) => Promise<void>) => Promise<void>;
        }
    ) {
        this.path = options.path;
        this.#db = options.db;
        this.#rows = options.rows;
        this.#commit = options.commit;
        this.#row = row;
    }

    /** Number of the folder, unique for the plugin's name. */
    get n(): number {
        return this.#row.n;
    }

    /** Notes that the new code is about to accept its first change. */
    async accepted(): Promise<void> {
        if (this.#isKnown) {
            await this.#rows.accept(this.#row);
        }
        this.#row = { ...this.#row, accepted: true };
    }

    /** Writes the row as pending. Must have ended before the lock names the code. */
    prepare(decision: Decision | null): Promise<void> {
        this.#row = { ...this.#row, decision: decision === null ? null : JSON.stringify(decision) };
        return this.#db.write((tx) => this.#rows.insert(tx, this.#row));
    }

    /** Makes the data count, after the lock named the code. Of the earlier folders the last one is kept; the others are deleted. */
    commit(also?: (tx: Transaction) => Promise<void>): Promise<void> {
        return this.#commit(this.#row, also);
    }

    /** Deletes the folder and its row. */
    async discard(): Promise<void> {
        if (this.#isKnown) {
            await this.#db.write((tx) => this.#rows.delete(tx, [this.#row]));
        }
        await rm(this.path, wholeFolder);
    }

    get #isKnown(): boolean {
        return this.#rows.get(this.#row) !== null;
    }
}
