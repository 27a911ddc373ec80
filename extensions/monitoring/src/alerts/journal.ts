/** Alerts, those that fire and those that are over. Memory comes first: a disk that is full must not keep the panel from saying so. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { AlertEntity, type AlertRow } from '../entities.ts';
import type { Ending } from './schema.ts';

export interface AlertFilter {
    readonly state?: 'firing' | 'ended' | undefined;
    readonly severity?: string | undefined;
    readonly ruleId?: number | undefined;
    /** Only older ones than this id. */
    readonly before?: number | undefined;
    readonly limit: number;
}

export class AlertJournal {
    readonly #db: Db;
    readonly #open = new Map<number, AlertRow>();
    /** Rows that the disk does not have yet. */
    readonly #unsaved = new Map<number, AlertRow>();
    /** Alerts of which somebody has to be told. */
    readonly #untold = new Map<number, AlertRow>();
    #next = 1;

    constructor(db: Db) {
        this.#db = db;
    }

    async load(): Promise<void> {
        await this.#db.read(async (em) => {
            const [last] = await em.find(AlertEntity, {}, { orderBy: { id: 'desc' }, limit: 1 });
            this.#next = (last?.id ?? 0) + 1;
            (await em.find(AlertEntity, { endedAt: null })).forEach((row) =>
                this.#open.set(row.id, plain(row))
            );
            (
                await em.find(AlertEntity, {
                    $or: [{ told: 0 }, { told: 1, endedBy: { $in: ['recovered', 'gone'] } }]
                })
            ).forEach((row) => this.#untold.set(row.id, this.#open.get(row.id) ?? plain(row)));
        });
    }

    /** Those that fire now, newest first. */
    firing(): readonly AlertRow[] {
        return [...this.#open.values()].sort((a, b) => b.id - a.id);
    }

    begin(alert: Omit<AlertRow, 'id' | 'worst' | 'last' | 'endedAt' | 'endedBy' | 'told'>): AlertRow {
        const row = {
            ...alert,
            id: this.#next,
            worst: alert.value,
            last: alert.value,
            endedAt: null,
            endedBy: null,
            told: 0
        } as AlertRow;
        this.#next += 1;
        this.#open.set(row.id, row);
        this.#changed(row);
        this.#untold.set(row.id, row);
        return row;
    }

    /** Notes a value of an alert that fires. The last one is written with the next thing that happens to the alert. */
    note(id: number, value: number, isWorse: (value: number, than: number) => boolean): void {
        const row = this.#open.get(id);
        if (row !== undefined) {
            row.last = value;
            if (isWorse(value, row.worst)) {
                row.worst = value;
                this.#changed(row);
            }
        }
    }

    /** Null when it does not fire. */
    end(id: number, at: number, by: Ending): AlertRow | null {
        const row = this.#open.get(id);
        if (row === undefined) {
            return null;
        }
        row.endedAt = at;
        row.endedBy = by;
        this.#open.delete(id);
        this.#changed(row);
        if (by === 'recovered' || by === 'gone') {
            this.#untold.set(id, row);
        } else {
            // Whoever changed the rule knows.
            this.#untold.delete(id);
            row.told = 2;
        }
        return row;
    }

    /** Alerts of which somebody has to be told, oldest first. */
    untold(): readonly AlertRow[] {
        return [...this.#untold.values()].sort((a, b) => a.id - b.id);
    }

    /** Somebody was told of the alert as it is. */
    told(row: AlertRow, how: number): void {
        row.told = Math.max(row.told, how);
        this.#untold.delete(row.id);
        this.#changed(row);
    }

    get dirty(): boolean {
        return this.#unsaved.size > 0;
    }

    /** Writes what has changed; returns what to call once it is durable. */
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
                    now.told === row.told &&
                    now.endedAt === row.endedAt &&
                    now.worst === row.worst
                ) {
                    this.#unsaved.delete(id);
                }
            });
    }

    /** Newest first, with how many there are in all. */
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
        const memory = new Map([...this.#unsaved, ...this.#open].filter(([, row]) => wanted(row)));
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
            ).map(plain),
            total: await em.count(AlertEntity, where)
        }));
        const fromDisk = stored.filter(({ id }) => !this.#unsaved.has(id) && !this.#open.has(id));
        const rows = [...memory.values()]
            .filter(({ id }) => before === undefined || id < before)
            .concat(fromDisk)
            .sort((a, b) => b.id - a.id);
        return { rows: rows.slice(0, limit), total: Math.max(total, rows.length) };
    }

    /** Forgets the oldest of those that are over. */
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

/** A row that lives on when its entity manager is gone. */
function plain(row: AlertRow): AlertRow {
    const {
        id,
        rule,
        name,
        metric,
        instance,
        operator,
        threshold,
        severity,
        value,
        worst,
        last,
        firedAt,
        endedAt,
        endedBy,
        told
    } = row;
    return {
        id,
        rule,
        name,
        metric,
        instance,
        operator,
        threshold,
        severity,
        value,
        worst,
        last,
        firedAt,
        endedAt: endedAt ?? null,
        endedBy: endedBy ?? null,
        told
    } as AlertRow;
}
