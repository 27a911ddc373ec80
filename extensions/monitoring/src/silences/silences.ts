/** Silences: spans of time in which alerts are recorded and not told. */
import { type Db, errors, requireVersion } from '@portico/sdk';

import type { AlertRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { SilenceEntity, type SilenceRow } from './entities.ts';
import type { ChangedSilence, NewSilence } from './schema.ts';

/** Largest number of silences. */
const mostSilences = 500;
/** A silence that is over is kept this long. */
const keptMs = 30 * 86_400_000;

type Fields = Pick<SilenceRow, 'ruleId' | 'metric' | 'instance' | 'from' | 'until' | 'reason'>;

/** Keeps silences in memory and in the database. */
export class Silences {
    readonly #db: Db;
    readonly #now: () => number;
    readonly #rows = new Map<number, SilenceRow>();

    constructor(db: Db, now: () => number) {
        this.#db = db;
        this.#now = now;
    }

    /** Reads the table. */
    async load(): Promise<void> {
        const rows = await this.#db.read((em) => em.find(SilenceEntity, {}));
        rows.forEach((row) => this.#rows.set(row.id, { ...row }));
    }

    /** The silence that covers an alert now; null: none. */
    covering({ rule, metric, instance }: Pick<AlertRow, 'rule' | 'metric' | 'instance'>): SilenceRow | null {
        const now = this.#now();
        const covers = (row: SilenceRow): boolean =>
            row.from <= now &&
            now < row.until &&
            (row.ruleId ?? rule) === rule &&
            (row.metric ?? metric) === metric &&
            (row.instance ?? instance) === instance;
        return this.list().find(covers) ?? null;
    }

    /** All silences, newest first. */
    list(): readonly SilenceRow[] {
        return [...this.#rows.values()].sort((a, b) => b.id - a.id);
    }

    /** One silence. @throws NOT_FOUND 40400 */
    get(id: number): SilenceRow {
        const row = this.#rows.get(id);
        if (row === undefined) {
            throw errors.notFound(`There is no silence ${id}`);
        }
        return row;
    }

    /** Makes a silence. @throws VALIDATION_FAILED 40001, TOO_MANY_SILENCES 40952 */
    async create(input: NewSilence, createdBy: string | null): Promise<SilenceRow> {
        const fields = this.#fieldsOf(input);
        if (this.#rows.size >= mostSilences) {
            throw fail.TOO_MANY_SILENCES({ limit: mostSilences });
        }
        const row = { ...fields, createdBy, version: 1 };
        const id = await this.#db.write(async (em) => Number(await em.insert(SilenceEntity, row)));
        const stored = { ...row, id } as SilenceRow;
        this.#rows.set(id, stored);
        return stored;
    }

    /** Changes the given fields of a silence. @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(id: number, change: ChangedSilence, ifMatch: string | null): Promise<SilenceRow> {
        const before = this.get(id);
        requireVersion(before, ifMatch, change.version);
        const fields = this.#fieldsOf({
            ruleId: change.ruleId === undefined ? (before.ruleId ?? null) : change.ruleId,
            metric: change.metric === undefined ? (before.metric ?? null) : change.metric,
            instance: change.instance === undefined ? (before.instance ?? null) : change.instance,
            reason: change.reason ?? before.reason,
            from: change.from ?? new Date(before.from).toISOString(),
            until: change.until ?? new Date(before.until).toISOString()
        });
        const row = { ...before, ...fields, version: before.version + 1 };
        const count = await this.#db.write((em) =>
            em.nativeUpdate(
                SilenceEntity,
                { id, version: before.version },
                { ...fields, version: row.version }
            )
        );
        if (count === 0) {
            throw errors.stale(this.#rows.get(id)?.version ?? row.version);
        }
        this.#rows.set(id, row);
        return row;
    }

    /** Removes a silence. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, ifMatch: string | null): Promise<SilenceRow> {
        const row = this.get(id);
        requireVersion(row, ifMatch);
        await this.#db.write((em) => em.nativeDelete(SilenceEntity, { id }));
        this.#rows.delete(id);
        return row;
    }

    /** Forgets silences that were over long ago. */
    async prune(): Promise<void> {
        const old = this.list().filter(({ until }) => until < this.#now() - keptMs);
        if (old.length > 0) {
            await this.#db.write((em) =>
                em.nativeDelete(SilenceEntity, { id: { $in: old.map(({ id }) => id) } })
            );
            old.forEach(({ id }) => this.#rows.delete(id));
        }
    }

    /** Silences that are not over, and name no rule, since rules have other numbers elsewhere. */
    exportAll(): readonly NewSilence[] {
        return this.list()
            .filter(({ ruleId, until }) => ruleId == null && until > this.#now())
            .map((row) => ({
                ruleId: null,
                metric: row.metric ?? null,
                instance: row.instance ?? null,
                from: new Date(row.from).toISOString(),
                until: new Date(row.until).toISOString(),
                reason: row.reason
            }));
    }

    /** Takes back exported silences; one that is there already is not made twice. With `replace` all others are removed. */
    async restore(inputs: readonly NewSilence[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const keyOf = (fields: Fields): string =>
            JSON.stringify([
                fields.ruleId ?? null,
                fields.metric ?? null,
                fields.instance ?? null,
                fields.from,
                fields.until
            ]);
        const given = new Map(inputs.map((input) => [keyOf(this.#fieldsOf(input)), input]));
        for (const row of this.list()) {
            const isGiven = given.delete(keyOf(row));
            if (!isGiven && mode === 'replace') {
                await this.remove(row.id, null);
            }
        }
        for (const input of given.values()) {
            await this.create(input, null);
        }
        return [];
    }

    #fieldsOf({ ruleId, metric, instance, from, until, reason }: NewSilence): Fields {
        const begins = from === undefined ? this.#now() : Date.parse(from);
        const ends = Date.parse(until);
        if (!(begins < ends)) {
            throw errors.invalid([{ path: 'until', message: 'until must lie after from' }]);
        }
        return { ruleId, metric, instance, from: begins, until: ends, reason };
    }
}
