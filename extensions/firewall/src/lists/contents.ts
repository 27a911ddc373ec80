/** The elements of sets: stored as text, kept ready for the kernel and the evaluator. */
import { findRow } from '@portico/sdk/db';

import { formatInterval, type Interval, mergeIntervals, parseWritten } from '../address/interval.ts';
import { layOut, type Piece } from '../address/layout.ts';
import type { AddressSet } from '../draft/model.ts';
import { ListEntity, type ListRow } from '../entities.ts';
import type { Element } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';

/** An element as it was written. */
export interface Entry {
    readonly interval: Interval;
    /** Milliseconds since 1970; null: it stays. */
    readonly until: number | null;
}

/** What answers say of a set's elements. */
export type ListState = Pick<ListRow, 'count' | 'skipped' | 'updatedAt' | 'error'>;
const none: ListState = { count: 0, skipped: 0, updatedAt: null, error: null };

/** The elements of all sets of the draft and of what is applied, by the id of the set. */
export class Contents {
    readonly #ctx: Ctx;
    readonly #now: () => number;
    readonly #entries = new Map<number, readonly Entry[]>();
    readonly #pieces = new Map<number, readonly Piece[]>();
    /** Elements of pieces that do not end: each apply needs them, and lists are long. */
    readonly #lasting = new WeakMap<readonly Piece[], readonly Element[]>();

    constructor(ctx: Ctx, now: () => number) {
        this.#ctx = ctx;
        this.#now = now;
    }

    /** The elements of a set, those that have ended left out. */
    async entries(set: number): Promise<readonly Entry[]> {
        const now = this.#now();
        let entries = this.#entries.get(set);
        if (entries === undefined) {
            const row = await this.#row(set);
            entries = row === null ? [] : parseEntries(row.elements);
            this.#entries.set(set, entries);
        }
        return entries.every(({ until }) => until === null)
            ? entries
            : entries.filter(({ until }) => until === null || until > now);
    }

    /** Numbers and times of a set. */
    async state(set: number): Promise<ListState> {
        return (await this.#row(set)) ?? none;
    }

    /** How many elements these sets hold together. */
    async total(sets: readonly number[]): Promise<number> {
        const [row] = await this.#ctx.db.read((em) =>
            em.execute<readonly { readonly total: number }[]>(
                'select coalesce(sum(count), 0) as total from lists where set_id in (select value from json_each(?))',
                [JSON.stringify(sets)]
            )
        );
        return row?.total ?? 0;
    }

    /** The elements as they lie in the kernel: without overlaps. */
    async pieces(set: number): Promise<readonly Piece[]> {
        const known = this.#pieces.get(set);
        const now = this.#now();
        const isFresh = known?.every(({ until }) => until === null || until > now) ?? false;
        if (known !== undefined && isFresh) {
            return known;
        }
        const pieces = piecesOf(await this.entries(set));
        this.#pieces.set(set, pieces);
        return pieces;
    }

    /** Stores the elements of a set. */
    async store(
        set: number,
        entries: readonly Entry[],
        state: Partial<Omit<ListState, 'count'>> = {}
    ): Promise<void> {
        const elements = entries
            .map(({ interval, until }) => `${formatInterval(interval)}${until === null ? '' : ` ${until}`}`)
            .join('\n');
        const before = await this.state(set);
        await this.#ctx.db.write(async (em) => {
            await em.upsert(ListEntity, {
                ...none,
                ...before,
                ...state,
                set,
                elements,
                count: entries.length
            });
        });
        this.#entries.set(set, entries);
        this.#pieces.delete(set);
    }

    /** Records why a set could not be fetched; its elements stay. */
    async storeFailure(set: number, error: string): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.execute(
                `insert into lists (set_id, elements, count, skipped, error) values (?, '', 0, 0, ?) on conflict (set_id) do update set error = excluded.error`,
                [set, error]
            );
        });
    }

    /** Forgets sets that no model names. */
    async keepOnly(sets: ReadonlySet<number>): Promise<void> {
        const ids = await this.#ctx.db.read((em) =>
            em.execute<{ id: number }[]>('select set_id as id from lists')
        );
        const gone = ids.map(({ id }) => id).filter((id) => !sets.has(id));
        if (gone.length > 0) {
            await this.#ctx.db.write((em) => em.nativeDelete(ListEntity, { set: { $in: gone } }));
            gone.forEach((id) => [this.#entries.delete(id), this.#pieces.delete(id)]);
        }
    }

    /** The elements of all these sets for the compiler, by name. */
    async elements(sets: readonly AddressSet[]): Promise<(set: string) => readonly Element[]> {
        const byName = new Map<string, readonly Element[]>();
        for (const { id, name } of sets) {
            byName.set(name, this.#elementsOf(await this.pieces(id)));
        }
        return (set) => byName.get(set) ?? [];
    }

    #elementsOf(pieces: readonly Piece[]): readonly Element[] {
        const known = this.#lasting.get(pieces);
        if (known !== undefined) {
            return known;
        }
        const elements = elementsOf(pieces, this.#now());
        if (elements.every(({ seconds }) => seconds === null)) {
            this.#lasting.set(pieces, elements);
        }
        return elements;
    }

    /** The addresses of all these sets for the evaluator, by name. */
    async intervals(sets: readonly AddressSet[]): Promise<(set: string) => readonly Interval[]> {
        const byName = new Map<string, readonly Interval[]>();
        for (const { id, name } of sets) {
            byName.set(name, await this.pieces(id));
        }
        return (set) => byName.get(set) ?? [];
    }

    async #row(set: number): Promise<ListRow | null> {
        return this.#ctx.db.read((em) => findRow(em, ListEntity, { set }));
    }
}

/** Pieces as elements of the kernel. */
export function elementsOf(pieces: readonly Piece[], now: number): readonly Element[] {
    return pieces.flatMap((piece) =>
        piece.until !== null && piece.until <= now
            ? []
            : [
                  {
                      interval: formatInterval(piece),
                      seconds:
                          piece.until === null ? null : Math.max(1, Math.ceil((piece.until - now) / 1000))
                  }
              ]
    );
}

/** Elements without overlaps. Where none of them ends, those that touch are joined. */
function piecesOf(entries: readonly Entry[]): readonly Piece[] {
    return entries.every(({ until }) => until === null)
        ? mergeIntervals(entries.map(({ interval }) => interval)).map((each) => ({
              ...each,
              until: null,
              owner: null
          }))
        : layOut(entries.map(({ interval, until }) => ({ ...interval, until, owner: null })));
}

function parseEntries(text: string): readonly Entry[] {
    return text === ''
        ? []
        : text.split('\n').map((line) => {
              const [interval = '', until] = line.split(' ');
              return { interval: parseWritten(interval), until: until === undefined ? null : Number(until) };
          });
}
