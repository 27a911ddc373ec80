/** The known series. Their number is limited: the series that had no value for the longest time makes room. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

interface Known {
    readonly id: number;
    /** When it last had a value, milliseconds since 1970. */
    seen: number;
}

/** A series with a value since this long ago does not make room for another one. */
const protectedMs = 86_400_000;
const mostRefused = 1_000;

/** Gives each series an id, and remembers when it last had a value. */
export class SeriesTable {
    readonly #db: Db;
    readonly #known = new Map<string, Known>();
    /** Names that there was no room for, since the last start. */
    readonly refused = new Set<string>();
    #removed: number[] = [];
    #added = new Set<string>();
    #next = 1;

    constructor(db: Db) {
        this.#db = db;
    }

    /** Reads the table. */
    async load(): Promise<void> {
        const rows = await this.#db.read((em) =>
            em.execute<{ id: number; name: string; seen: number }[]>('select id, name, seen from series')
        );
        const [last] = await this.#db.read((em) =>
            em.execute<{ next: number | null }[]>('select next from series_next')
        );
        rows.forEach(({ id, name, seen }) => this.#known.set(name, { id, seen }));
        this.#next = last?.next ?? 1;
    }

    /** The id of a series; null for an unknown one. */
    id(name: string): number | null {
        return this.#known.get(name)?.id ?? null;
    }

    /** All names, in no order. */
    names(): readonly string[] {
        return [...this.#known.keys()];
    }

    /** Number of series. */
    get size(): number {
        return this.#known.size;
    }

    /** Notes that a series has a value now, and returns its id; null when there is no room for a new series. Ids are never used again, since old rows have them. */
    touch(name: string, now: number, most: number): number | null {
        const known = this.#known.get(name);
        if (known !== undefined) {
            known.seen = now;
            return known.id;
        }
        if (this.#known.size >= most && !this.#makeRoom(now)) {
            if (this.refused.size < mostRefused) {
                this.refused.add(name);
            }
            return null;
        }
        const id = this.#next;
        this.#next += 1;
        this.#known.set(name, { id, seen: now });
        this.#added.add(name);
        this.refused.delete(name);
        return id;
    }

    /** Removes series without a value since `before`. */
    expire(before: number): void {
        [...this.#known].filter(([, { seen }]) => seen < before).forEach(([name]) => this.#remove(name));
    }

    /** Whether series were added or removed since the last write. */
    get dirty(): boolean {
        return this.#added.size > 0 || this.#removed.length > 0;
    }

    /** Writes what has changed; with `all`, also when each series last had a value. The caller calls `saved` when the transaction is durable. */
    async write(em: EntityManager, all: boolean): Promise<void> {
        for (const id of this.#removed) {
            await em.execute('delete from series where id = ?', [id], 'run');
        }
        for (const [name, { id, seen }] of this.#known) {
            if (all || this.#added.has(name)) {
                await em.execute(
                    'insert into series (id, name, seen) values (?, ?, ?) on conflict (id) do update set seen = excluded.seen',
                    [id, name, seen],
                    'run'
                );
            }
        }
        if (this.#added.size > 0) {
            await em.execute(
                'insert into series_next (id, next) values (1, ?) on conflict (id) do update set next = excluded.next',
                [this.#next],
                'run'
            );
        }
    }

    /** Notes that the last write is durable. */
    saved(): void {
        this.#removed = [];
        this.#added = new Set();
    }

    #makeRoom(now: number): boolean {
        let oldest: readonly [string, Known] | null = null;
        for (const entry of this.#known) {
            oldest = oldest === null || entry[1].seen < oldest[1].seen ? entry : oldest;
        }
        if (oldest === null || oldest[1].seen > now - protectedMs) {
            return false;
        }
        this.#remove(oldest[0]);
        return true;
    }

    #remove(name: string): void {
        const known = this.#known.get(name);
        if (known !== undefined) {
            this.#known.delete(name);
            if (!this.#added.delete(name)) {
                this.#removed.push(known.id);
            }
        }
    }
}
