/** The rows of channels. Reads see the last commit; every write is part of a transaction that the caller opened. */
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import type { ChannelRow } from '../entities.ts';

const columns =
    'id, name, type, events, enabled, fields, sealed, version, created_at as createdAt, updated_at as updatedAt';

/** Reads and writes channels. */
export class ChannelStore {
    readonly #writer = new Writer();
    readonly #all: Statement<[], ChannelRow>;
    readonly #byId: Statement<[number], ChannelRow>;

    constructor(db: Database) {
        this.#all = db.prepare(`select ${columns} from notification_channel order by id`);
        this.#byId = db.prepare(`select ${columns} from notification_channel where id = ?`);
    }

    /** All channels by their ids. */
    all(): readonly ChannelRow[] {
        return this.#all.all();
    }

    /** One channel, if there is one of this id. */
    find(id: number): ChannelRow | undefined {
        return this.#byId.get(id);
    }

    /** How many channels there are, as the transaction sees it. */
    async count(tx: Transaction): Promise<number> {
        const statement = await this.#writer.statement(
            tx,
            'select count(*) as count from notification_channel'
        );
        return (statement.get() as { count: number }).count;
    }

    /** Adds a channel and returns its id: `wanted`, unless a channel has or had it; otherwise the next one. */
    async insert(tx: Transaction, row: Omit<ChannelRow, 'id'>, wanted?: number): Promise<number> {
        const [last] = await tx.em.execute<{ seq: number }[]>(
            "select seq from sqlite_sequence where name = 'notification_channel'"
        );
        const id =
            wanted !== undefined && wanted > (last?.seq ?? 0) && wanted < 1_000_000_000 ? wanted : null;
        const statement = await this.#writer.statement(
            tx,
            'insert into notification_channel (id, name, type, events, enabled, fields, sealed, version, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id'
        );
        const { name, type, events, enabled, fields, sealed, version, createdAt, updatedAt } = row;
        return (
            statement.get(id, name, type, events, enabled, fields, sealed, version, createdAt, updatedAt) as {
                id: number;
            }
        ).id;
    }

    /** Writes a channel. False when it is gone, or its version is not the one before. */
    async update(tx: Transaction, row: ChannelRow): Promise<boolean> {
        const statement = await this.#writer.statement(
            tx,
            'update notification_channel set name = ?, events = ?, enabled = ?, fields = ?, sealed = ?, version = ?, updated_at = ? where id = ? and version = ?'
        );
        const { id, name, events, enabled, fields, sealed, version, updatedAt } = row;
        const { changes } = statement.run(
            name,
            events,
            enabled,
            fields,
            sealed,
            version,
            updatedAt,
            id,
            version - 1
        );
        return changes === 1;
    }

    /** Disables a channel. False when it is disabled already, or gone. */
    async disable(tx: Transaction, id: number, at: string): Promise<boolean> {
        const statement = await this.#writer.statement(
            tx,
            'update notification_channel set enabled = 0, version = version + 1, updated_at = ? where id = ? and enabled = 1'
        );
        return statement.run(at, id).changes === 1;
    }

    /** Removes a channel with its deliveries. False when it is gone, or has another version. */
    async remove(tx: Transaction, id: number, version: number): Promise<boolean> {
        const statement = await this.#writer.statement(
            tx,
            'delete from notification_channel where id = ? and version = ?'
        );
        return statement.run(id, version).changes === 1;
    }
}
