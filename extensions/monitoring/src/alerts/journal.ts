/** Alerts that fire, and alerts that are over. They are kept in memory first, so that they work also when the disk is full. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { AlertEntity, type AlertRow } from '../entities.ts';
import type { Ending } from './schema.ts';

/** Which alerts a list has. */
export interface AlertFilter {
    readonly state?: 'firing' | 'ended' | undefined;
    readonly severity?: string | undefined;
    readonly ruleId?: number | undefined;
    /** Only alerts with a smaller id. */
    readonly before?: number | undefined;
    readonly limit: number;
}

/** What happens to an alert after it began. */
type Handling = 'toldAt' | 'acknowledgedBy' | 'acknowledgedAt' | 'note' | 'silencedBy';

/** Begins, ends and lists alerts. */
export class AlertJournal {
    readonly #db: Db;
    readonly #firing = new Map<number, AlertRow>();
    /** Alerts that have changed since they were written. */
    readonly #unsaved = new Map<number, AlertRow>();
    /** Alerts with a notification still to be sent. */
    readonly #unnotified = new Map<number, AlertRow>();
    /** When a notification of a rule and an instance was sent last. */
    readonly #toldAt = new Map<string, number>();
    #next = 1;

    constructor(db: Db) {
        this.#db = db;
    }

    /** Loads alerts that fire, and those with a notification still to be sent. */
    async load(): Promise<void> {
        await this.#db.read(async (em) => {
            const [last] = await em.find(AlertEntity, {}, { orderBy: { id: 'desc' }, limit: 1 });
            this.#next = (last?.id ?? 0) + 1;
            (await em.find(AlertEntity, { endedAt: null })).forEach((row) =>
                this.#firing.set(row.id, copy(row))
            );
            (
                await em.find(AlertEntity, {
                    $or: [{ notified: 0 }, { notified: 1, endedBy: { $in: ['recovered', 'gone'] } }]
                })
            ).forEach((row) => this.#unnotified.set(row.id, this.#firing.get(row.id) ?? copy(row)));
            (
                await em.execute<{ rule: number; instance: string; at: number }[]>(
                    'select rule, instance, max(told_at) as at from alerts where told_at is not null group by rule, instance'
                )
            ).forEach(({ rule, instance, at }) => this.#toldAt.set(`${rule} ${instance}`, at));
        });
    }

    /** Alerts that fire now, newest first. */
    firing(): readonly AlertRow[] {
        return [...this.#firing.values()].sort((a, b) => b.id - a.id);
    }

    /** Adds an alert that fires. */
    begin(
        alert: Omit<AlertRow, 'id' | 'worst' | 'last' | 'endedAt' | 'endedBy' | 'notified' | Handling>
    ): AlertRow {
        const row = {
            ...alert,
            id: this.#next,
            worst: alert.value,
            last: alert.value,
            endedAt: null,
            endedBy: null,
            notified: 0,
            toldAt: null,
            acknowledgedBy: null,
            acknowledgedAt: null,
            note: null,
            silencedBy: null
        } as AlertRow;
        this.#next += 1;
        this.#firing.set(row.id, row);
        this.#changed(row);
        this.#unnotified.set(row.id, row);
        return row;
    }

    /** Notes a value of an alert that fires. Only a new worst value is written at once; the last value is written with the next change. */
    note(id: number, value: number, isWorse: (value: number, than: number) => boolean): void {
        const row = this.#firing.get(id);
        if (row !== undefined) {
            row.last = value;
            if (isWorse(value, row.worst)) {
                row.worst = value;
                this.#changed(row);
            }
        }
    }

    /** Ends an alert; null when it does not fire. */
    end(id: number, at: number, by: Ending): AlertRow | null {
        const row = this.#firing.get(id);
        if (row === undefined) {
            return null;
        }
        row.endedAt = at;
        row.endedBy = by;
        this.#firing.delete(id);
        this.#changed(row);
        if (by === 'recovered' || by === 'gone') {
            this.#unnotified.set(id, row);
        } else {
            // The person who changed the rule knows, and needs no notification.
            this.#unnotified.delete(id);
            row.notified = 2;
        }
        return row;
    }

    /** Alerts with a notification still to be sent, oldest first. */
    unnotified(): readonly AlertRow[] {
        return [...this.#unnotified.values()].sort((a, b) => a.id - b.id);
    }

    /**
     * Notes that a notification was sent: 1, that the alert fires; 2, that it is over.
     *
     * @param at - null: none was sent, and none shall be
     */
    markNotified(row: AlertRow, stage: number, at: number | null): void {
        row.notified = Math.max(row.notified, stage);
        this.#unnotified.delete(row.id);
        if (at !== null) {
            row.toldAt = at;
            this.#toldAt.set(`${row.rule} ${row.instance}`, at);
        }
        this.#changed(row);
    }

    /** When a notification of the rule and instance of an alert was sent last; null: never. */
    toldAt({ rule, instance }: AlertRow): number | null {
        return this.#toldAt.get(`${rule} ${instance}`) ?? null;
    }

    /** Notes which silence covers an alert that fires. */
    markSilenced(row: AlertRow, silence: number | null): void {
        if ((row.silencedBy ?? null) !== silence) {
            row.silencedBy = silence;
            this.#changed(row);
        }
    }

    /** Notes that the action of an alert was called, or shall not be. */
    clearAction(row: AlertRow): void {
        row.actionDue = false;
        this.#changed(row);
    }

    /** Notes who cares for an alert that fires; null takes it back. Returns null when no such alert fires. */
    acknowledge(
        id: number,
        by: { readonly name: string; readonly at: number; readonly note: string | null } | null
    ): AlertRow | null {
        const row = this.#firing.get(id);
        if (row === undefined) {
            return null;
        }
        row.acknowledgedBy = by?.name ?? null;
        row.acknowledgedAt = by?.at ?? null;
        row.note = by?.note ?? null;
        this.#changed(row);
        return row;
    }

    /** Whether alerts have changed since the last write. */
    get dirty(): boolean {
        return this.#unsaved.size > 0;
    }

    /** Writes what has changed. The caller calls the function that it returns when the transaction is durable. */
    async write(em: EntityManager): Promise<() => void> {
        const rows = [...this.#unsaved].map(([id, row]) => [id, { ...row }] as const);
        for (const [, row] of rows) {
            await em.upsert(AlertEntity, row);
        }
        return () =>
            rows.forEach(([id, row]) => {
                const now = this.#unsaved.get(id);
                if (
                    now !== undefined &&
                    now.notified === row.notified &&
                    now.endedAt === row.endedAt &&
                    now.worst === row.worst &&
                    now.toldAt === row.toldAt &&
                    now.acknowledgedAt === row.acknowledgedAt &&
                    now.silencedBy === row.silencedBy &&
                    now.actionDue === row.actionDue
                ) {
                    this.#unsaved.delete(id);
                }
            });
    }

    /** Lists alerts, newest first, with the number of all that match. Changes in memory go before the database. */
    async list({
        state,
        severity,
        ruleId,
        before,
        limit
    }: AlertFilter): Promise<{ readonly rows: readonly AlertRow[]; readonly total: number }> {
        const wanted = (row: AlertRow): boolean =>
            (state === undefined || (row.endedAt === null) === (state === 'firing')) &&
            (severity === undefined || row.severity === severity) &&
            (ruleId === undefined || row.rule === ruleId);
        const memory = new Map([...this.#unsaved, ...this.#firing].filter(([, row]) => wanted(row)));
        const where = {
            ...(state === undefined
                ? {}
                : state === 'firing'
                  ? { endedAt: null }
                  : { endedAt: { $ne: null } }),
            ...(severity === undefined ? {} : { severity }),
            ...(ruleId === undefined ? {} : { rule: ruleId })
        };
        const { stored, total } = await this.#db.read(async (em) => ({
            stored: (
                await em.find(
                    AlertEntity,
                    { ...where, ...(before === undefined ? {} : { id: { $lt: before } }) },
                    { orderBy: { id: 'desc' }, limit: limit + this.#unsaved.size }
                )
            ).map(copy),
            total: await em.count(AlertEntity, where)
        }));
        const fromDisk = stored.filter(({ id }) => !this.#unsaved.has(id) && !this.#firing.has(id));
        const rows = [...memory.values()]
            .filter(({ id }) => before === undefined || id < before)
            .concat(fromDisk)
            .sort((a, b) => b.id - a.id);
        return { rows: rows.slice(0, limit), total: Math.max(total, rows.length) };
    }

    /** Deletes the oldest ended alerts, so that `keep` are left. */
    async prune(em: EntityManager, keep: number): Promise<void> {
        await em.execute(
            'delete from alerts where ended_at is not null and id <= (select id from alerts where ended_at is not null order by id desc limit 1 offset ?)',
            [keep],
            'run'
        );
    }

    #changed(row: AlertRow): void {
        this.#unsaved.set(row.id, row);
    }
}

/** Copies an alert out of its entity manager. */
function copy(row: AlertRow): AlertRow {
    return { ...row, endedAt: row.endedAt ?? null, endedBy: row.endedBy ?? null };
}
