/** Which folders with plugin data exist, and which of them count: the table `plugin_data`, held in memory. */
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { PluginDataEntity, type PluginDataRow } from '../records/entities.ts';

/** A package under a plugin name: data belong to both. */
export interface DataOwner {
    readonly name: string;
    readonly package: string;
}

/** The rows of all data folders. Memory follows each commit. */
export class DataRows {
    readonly #db: Database;
    #rows: readonly PluginDataRow[];

    /** Reads the table. */
    static async open(db: Database): Promise<DataRows> {
        const rows = new DataRows(db);
        await rows.reload();
        return rows;
    }

    private constructor(db: Database) {
        this.#db = db;
        this.#rows = [];
    }

    /** Reads the table again. */
    async reload(): Promise<void> {
        this.#rows = (await this.#db.read((em) => em.find(PluginDataEntity, {}))).map(plainRow);
    }

    /** Rows of swaps that were not committed. */
    pending(): readonly PluginDataRow[] {
        return this.#rows.filter((row) => row.pending);
    }

    /** All rows of an owner. */
    of({ name, package: packageName }: DataOwner): readonly PluginDataRow[] {
        return this.#rows.filter((row) => row.name === name && row.package === packageName);
    }

    /** The row that counts; null when the owner has no data. */
    current(owner: DataOwner): PluginDataRow | null {
        return this.of(owner).find((row) => row.current) ?? null;
    }

    /** The newest row that counted before the present one. @param code - only of data that were made for this code folder */
    earlier(owner: DataOwner, code?: string): PluginDataRow | null {
        const rows = this.of(owner).filter(
            (row) => !row.current && !row.pending && (code === undefined || row.folder === code)
        );
        return rows.sort((one, two) => two.n - one.n)[0] ?? null;
    }

    /** The row of a folder; null when there is none. */
    get({ name, n }: Pick<PluginDataRow, 'name' | 'n'>): PluginDataRow | null {
        return this.#rows.find((row) => row.name === name && row.n === n) ?? null;
    }

    /** The largest folder number of a plugin name; 0 for none. */
    largest(name: string): number {
        return Math.max(0, ...this.#rows.filter((row) => row.name === name).map(({ n }) => n));
    }

    /** Adds a row. */
    async insert(tx: Transaction, row: PluginDataRow): Promise<void> {
        await tx.em.insert(PluginDataEntity, row);
        tx.afterCommit(() => {
            this.#rows = [...this.#rows, row];
        });
    }

    /** Notes that a change was accepted on these data. Durable when it resolves. */
    async accept({ name, n }: PluginDataRow): Promise<void> {
        if (this.get({ name, n })?.accepted === false) {
            await this.#db.write((tx) =>
                tx.em.nativeUpdate(PluginDataEntity, { name, n }, { accepted: true })
            );
            const row = this.get({ name, n });
            if (row !== null) {
                this.replace({ ...row, accepted: true });
            }
        }
    }

    /** Writes changed columns of a row. */
    async update(
        tx: Transaction,
        row: PluginDataRow,
        change: Partial<Pick<PluginDataRow, 'current' | 'decision'>>
    ): Promise<void> {
        await tx.em.nativeUpdate(PluginDataEntity, { name: row.name, n: row.n }, change);
        tx.afterCommit(() => this.replace({ ...row, ...change }));
    }

    /** Writes `current` and `pending` of rows after a swap; what was decided with the swap goes. */
    async writeSwitch(tx: Transaction, rows: readonly PluginDataRow[]): Promise<void> {
        for (const { name, package: packageName, n, current, pending } of rows) {
            await tx.em.nativeUpdate(
                PluginDataEntity,
                { name, package: packageName, n },
                { current, pending, decision: null }
            );
        }
    }

    /** Replaces a row in memory. */
    replace(row: PluginDataRow): void {
        this.#rows = this.#rows.map((each) => (each.name === row.name && each.n === row.n ? row : each));
    }

    /** Deletes rows. */
    async delete(tx: Transaction, rows: readonly PluginDataRow[]): Promise<void> {
        for (const row of rows) {
            await tx.em.nativeDelete(PluginDataEntity, { name: row.name, package: row.package, n: row.n });
        }
        tx.afterCommit(() => {
            this.#rows = this.#rows.filter(
                (each) => !rows.some((row) => row.name === each.name && row.n === each.n)
            );
        });
    }
}

/** Without what the ORM adds; SQLite has numbers for booleans. */
function plainRow({ name, n, folder, version, createdAt, decision = null, ...row }: PluginDataRow): PluginDataRow {
    return {
        name,
        package: row.package,
        n,
        folder,
        version,
        createdAt,
        current: Boolean(row.current),
        pending: Boolean(row.pending),
        accepted: Boolean(row.accepted),
        decision
    };
}
