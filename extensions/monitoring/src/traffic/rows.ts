/** Traffic in the plugin's database: a row for each host and minute, after two days for each host and hour. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { columns, Counts } from './counts.ts';

/** The finest step, in milliseconds. */
export const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** Minutes are kept for so long; then they are added up to hours. */
export const minutesKeptMs = 2 * dayMs;

/** The counts of one step for one host. */
export interface Row {
    /** Milliseconds since 1970. */
    readonly at: number;
    /** Null for names that no host has. */
    readonly hostId: number | null;
    readonly counts: Counts;
}

/** What is asked for; times in milliseconds. */
export interface Span {
    readonly from: number;
    readonly to: number;
    readonly step: number;
    readonly hostId: number | null;
}

/** Stands for the host of a name that no host has. */
const noHost = 0;
const names = columns.join(', ');
const sums = columns.map((each) => `sum(${each}) as ${each}`).join(', ');
const added = columns.map((each) => `${each} = ${each} + excluded.${each}`).join(', ');
const marks = columns.map(() => '?').join(', ');

/** The statements that make the tables. */
export const trafficTables: readonly string[] = [
    ...['traffic_minutes', 'traffic_hours'].map(
        (table) =>
            `create table ${table} (at integer not null, host integer not null, ${columns.map((each) => `${each} integer not null`).join(', ')}, primary key (at, host)) without rowid`
    ),
    'create table traffic_read (id integer primary key check (id = 1), at integer not null)'
];

/** Reads and writes the tables. */
export class TrafficRows {
    readonly #db: Db;

    constructor(db: Db) {
        this.#db = db;
    }

    /** The time of the last record that was counted; null before the first. */
    async readUntil(): Promise<number | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<{ at: number }[]>('select at from traffic_read')
        );
        return row?.at ?? null;
    }

    /** Adds counts by minute, and notes the last record that is in them. @param more - work of the same transaction */
    async add(
        rows: readonly Row[],
        readUntil: number,
        more: (em: EntityManager) => Promise<void>
    ): Promise<void> {
        await this.#db.write(async (em) => {
            for (const { at, hostId, counts } of rows) {
                await em.execute(
                    `insert into traffic_minutes (at, host, ${names}) values (?, ?, ${marks}) on conflict (at, host) do update set ${added}`,
                    [at, hostId ?? noHost, ...counts.values]
                );
            }
            await em.execute(
                'insert into traffic_read (id, at) values (1, ?) on conflict (id) do update set at = excluded.at',
                [readUntil]
            );
            await more(em);
        });
    }

    /** The counts by step and host, oldest first. @param most - rows at most */
    async find({ from, to, step, hostId }: Span, most: number): Promise<readonly Row[]> {
        const part = (table: string): string =>
            `select * from ${table} where at >= ? and at < ?${hostId === null ? '' : ' and host = ?'}`;
        const asked = [from, to, ...(hostId === null ? [] : [hostId])];
        const found = await this.#db.read((em) =>
            em.execute<Readonly<Record<string, number>>[]>(
                `select at / ? * ? as slot, host, ${sums} from (${part('traffic_minutes')} union all ${part('traffic_hours')})
                 group by slot, host order by slot, host limit ?`,
                [step, step, ...asked, ...asked, most]
            )
        );
        return found.map((row) => ({
            at: row['slot'] ?? 0,
            hostId: row['host'] === noHost ? null : (row['host'] ?? null),
            counts: new Counts(columns.map((each) => row[each] ?? 0))
        }));
    }

    /** Adds old minutes up to hours, and forgets what is older than it is kept. */
    async prune(now: number, keptDays: number): Promise<void> {
        const limit = Math.floor((now - minutesKeptMs) / hourMs) * hourMs;
        const forgotten = now - keptDays * dayMs;
        await this.#db.write(async (em: EntityManager) => {
            await em.execute(
                `insert into traffic_hours (at, host, ${names})
                 select at / ? * ? as slot, host, ${sums} from traffic_minutes where at < ? group by slot, host
                 on conflict (at, host) do update set ${added}`,
                [hourMs, hourMs, limit]
            );
            await em.execute('delete from traffic_minutes where at < ? or at < ?', [limit, forgotten]);
            await em.execute('delete from traffic_hours where at < ?', [forgotten]);
        });
    }
}
