/** States and results of checks in the database. Results are written together every few seconds, so that 500 checks cost little. */
import { type Db, Mutex } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import type { Outcome, Phases } from './probes/outcome.ts';
import type { CheckStatus } from './state.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Good results that changed nothing are kept this long. */
const allKeptMs = dayMs;
/** Hours of the uptime are kept for its longest span. */
const monthMs = 30 * dayMs;
/** While nothing can be written, so many results wait; older ones are left out. */
const mostWaiting = 10_000;

/** One try, as it is stored. */
export interface ResultRow {
    readonly at: number;
    readonly state: Outcome['state'];
    readonly latency: number | null;
    readonly code: string | null;
    readonly message: string | null;
    readonly phases: Phases;
}

/** Share of tries at which a check was not down, in percent; null without one. */
export interface Uptime {
    readonly day: number | null;
    readonly week: number | null;
    readonly month: number | null;
}

interface Waiting extends ResultRow {
    readonly check: number;
    /** It changed the state, or is not good: kept as long as the setting says. */
    readonly kept: boolean;
    /** Counts for the uptime. */
    readonly counts: 'up' | 'down' | null;
}

/** Writes and reads results. */
export class ResultLog {
    readonly #db: Db;
    readonly #mutex = new Mutex();
    #waiting: Waiting[] = [];
    readonly #states = new Map<number, CheckStatus>();

    constructor(db: Db) {
        this.#db = db;
    }

    /** The states that were written, by check. */
    async states(): Promise<ReadonlyMap<number, CheckStatus>> {
        const rows = await this.#db.read((em) =>
            em.execute<
                (Omit<CheckStatus, 'latencyMs' | 'certificate'> & {
                    check_id: number;
                    latency: number | null;
                    issuer: string | null;
                    not_after: number | null;
                })[]
            >('select * from check_states')
        );
        return new Map(
            rows.map(({ check_id: id, latency, issuer, not_after: notAfter, ...status }) => [
                id,
                {
                    ...status,
                    latencyMs: latency,
                    certificate: notAfter === null ? null : { issuer: issuer ?? '', notAfter }
                }
            ])
        );
    }

    /** Adds a try and the state after it. It is written with the next {@link ResultLog.flush}. */
    add(check: number, outcome: Outcome, before: CheckStatus, after: CheckStatus, isPending: boolean): void {
        this.#waiting.push({
            check,
            at: after.at,
            state: outcome.state,
            latency: outcome.latencyMs,
            code: outcome.code,
            message: outcome.message,
            phases: { ...outcome.phases },
            kept: outcome.state !== 'up' || before.state !== after.state,
            counts: after.state === 'down' ? 'down' : isPending || after.state === 'unknown' ? null : 'up'
        });
        this.#states.set(check, after);
        if (this.#waiting.length > mostWaiting) {
            this.#waiting.shift();
        }
    }

    /** Writes what waits, in one transaction; what cannot be written goes on to wait. @throws STORAGE_FULL 50700 */
    async flush(): Promise<void> {
        await this.#mutex.run(async () => {
            const rows = this.#waiting;
            const states = new Map(this.#states);
            if (rows.length === 0 && states.size === 0) {
                return;
            }
            this.#waiting = [];
            try {
                await this.#db.write(async (em) => {
                    await writeStates(em, states);
                    await writeResults(em, rows);
                    await writeHours(em, rows);
                });
            } catch (error) {
                this.#waiting = [...rows, ...this.#waiting].slice(-mostWaiting);
                throw error;
            }
            for (const [id, status] of states) {
                if (this.#states.get(id) === status) {
                    this.#states.delete(id);
                }
            }
        });
    }

    /** The results of a check in a span, newest first. */
    async list(
        check: number,
        { from, before, limit }: { readonly from: number; readonly before: number; readonly limit: number }
    ): Promise<readonly ResultRow[]> {
        await this.flush();
        const rows = await this.#db.read((em) =>
            em.execute<(Omit<ResultRow, 'phases'> & { phases: string })[]>(
                'select at, state, latency, code, message, phases from check_results where check_id = ? and at >= ? and at < ? order by at desc limit ?',
                [check, from, before, limit]
            )
        );
        return rows.map((row) => ({ ...row, phases: JSON.parse(row.phases) as Phases }));
    }

    /** The uptimes of checks. */
    async uptimes(checks: readonly number[], now: number): Promise<ReadonlyMap<number, Uptime>> {
        await this.flush();
        const spans = [dayMs, 7 * dayMs, monthMs].map((span) => Math.floor((now - span) / hourMs));
        const rows =
            checks.length === 0
                ? []
                : await this.#db.read((em) =>
                      em.execute<{ check_id: number; hour: number; up: number; down: number }[]>(
                          `select check_id, hour, up, down from check_hours where hour >= ? and check_id in (${checks.map(() => '?').join(',')})`,
                          [spans[2] ?? 0, ...checks]
                      )
                  );
        const byCheck = Map.groupBy(rows, ({ check_id: id }) => id);
        return new Map(
            checks.map((id) => {
                const [day = null, week = null, month = null] = spans.map((from) =>
                    shareOf((byCheck.get(id) ?? []).filter(({ hour }) => hour > from))
                );
                return [id, { day, week, month }];
            })
        );
    }

    /** Forgets the state, and with `all` also the results, of a check. Called in the transaction that changes or removes it. */
    async forget(em: EntityManager, check: number, all: boolean): Promise<void> {
        this.#states.delete(check);
        await em.execute('delete from check_states where check_id = ?', [check], 'run');
        if (all) {
            this.#waiting = this.#waiting.filter((each) => each.check !== check);
            await em.execute('delete from check_results where check_id = ?', [check], 'run');
            await em.execute('delete from check_hours where check_id = ?', [check], 'run');
        }
    }

    /** Deletes results that are older than they are kept. */
    async prune(now: number, days: number): Promise<void> {
        await this.#db.write(async (em) => {
            await em.execute(
                'delete from check_results where at < ? or (kept = 0 and at < ?)',
                [now - days * dayMs, now - allKeptMs],
                'run'
            );
            await em.execute(
                'delete from check_hours where hour < ?',
                [Math.floor((now - monthMs) / hourMs) - 1],
                'run'
            );
        });
    }
}

function shareOf(rows: readonly { readonly up: number; readonly down: number }[]): number | null {
    const up = rows.reduce((sum, row) => sum + row.up, 0);
    const all = rows.reduce((sum, row) => sum + row.down, up);
    return all === 0 ? null : (up / all) * 100;
}

async function writeStates(em: EntityManager, states: ReadonlyMap<number, CheckStatus>): Promise<void> {
    for (const [id, { certificate, ...status }] of states) {
        await em.execute(
            'insert or replace into check_states (check_id, state, since, at, latency, code, message, failures, issuer, not_after) select ?, ?, ?, ?, ?, ?, ?, ?, ?, ? where exists (select 1 from checks where id = ?)',
            [
                id,
                status.state,
                status.since,
                status.at,
                status.latencyMs,
                status.code,
                status.message,
                status.failures,
                certificate?.issuer ?? null,
                certificate?.notAfter ?? null,
                id
            ],
            'run'
        );
    }
}

async function writeResults(em: EntityManager, rows: readonly Waiting[]): Promise<void> {
    for (const row of rows) {
        await em.execute(
            'insert or replace into check_results (check_id, at, state, latency, code, message, phases, kept) select ?, ?, ?, ?, ?, ?, ?, ? where exists (select 1 from checks where id = ?)',
            [
                row.check,
                row.at,
                row.state,
                row.latency,
                row.code,
                row.message,
                JSON.stringify(row.phases),
                row.kept ? 1 : 0,
                row.check
            ],
            'run'
        );
    }
}

async function writeHours(em: EntityManager, rows: readonly Waiting[]): Promise<void> {
    const counted = rows.filter(({ counts }) => counts !== null);
    for (const [key, tries] of Map.groupBy(
        counted,
        ({ check, at }) => `${check} ${Math.floor(at / hourMs)}`
    )) {
        const [check, hour] = key.split(' ').map(Number);
        const down = tries.filter(({ counts }) => counts === 'down').length;
        await em.execute(
            `insert into check_hours (check_id, hour, up, down) select ?, ?, ?, ? where exists (select 1 from checks where id = ?)
            on conflict (check_id, hour) do update set up = up + excluded.up, down = down + excluded.down`,
            [check, hour, tries.length - down, down, check],
            'run'
        );
    }
}
