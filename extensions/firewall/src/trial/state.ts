/** What is applied and what is on trial, as it is stored: the record by which a panel that was killed goes on. */
import { readState } from '../draft/draft.ts';
import type { Model } from '../draft/model.ts';
import { HistoryEntity } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** How a trial ended. */
export type Outcome = 'confirmed' | 'reverted' | 'expired';

/** A ruleset that is in the kernel until it is confirmed, or its time is up. */
export interface Trial {
    readonly id: string;
    /** Milliseconds since 1970. */
    readonly until: number;
    readonly by: string | null;
    /** The version of the draft; null: the table was taken away. */
    readonly version: number | null;
    readonly model: Model | null;
}

/** What the kernel should have. */
export interface Applied {
    readonly version: number;
    readonly model: Model;
}

/** The state of the firewall that is stored, and survives a restart. */
export interface FirewallState {
    readonly applied: Applied | null;
    readonly trial: Trial | null;
    readonly lastOutcome: Outcome | null;
    readonly isOff: boolean;
    readonly isPersistent: boolean;
    readonly fingerprint: string | null;
}

/** A model that was applied. */
export interface HistoryEntry {
    readonly version: number;
    readonly at: number;
    readonly by: string | null;
    readonly outcome: Outcome;
}

const mostHistory = 100;

/** Reads and writes the stored state. */
export class StateStore {
    readonly #ctx: Ctx;
    #state: FirewallState | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The state as it is now. */
    async read(): Promise<FirewallState> {
        this.#state ??= await this.#ctx.db.read(async (em) => {
            const row = await readState(em);
            return {
                applied:
                    row.applied === null
                        ? null
                        : { version: row.appliedVersion ?? 0, model: JSON.parse(row.applied) as Model },
                trial: row.trial === null ? null : (JSON.parse(row.trial) as Trial),
                lastOutcome: row.lastOutcome as Outcome | null,
                isOff: row.isOff,
                isPersistent: row.isPersistent,
                fingerprint: row.fingerprint
            };
        });
        return this.#state;
    }

    /** Changes parts of the state. */
    async write(
        change: Partial<FirewallState>,
        ended?: { readonly trial: Trial; readonly at: number }
    ): Promise<void> {
        const before = await this.read();
        await this.#ctx.db.write(async (em) => {
            const row = await readState(em);
            const { applied, trial, ...plain } = change;
            Object.assign(row, plain);
            if (applied !== undefined) {
                row.applied = applied === null ? null : JSON.stringify(applied.model);
                row.appliedVersion = applied?.version ?? null;
            }
            if (trial !== undefined) {
                row.trial = trial === null ? null : JSON.stringify(trial);
            }
            if (ended?.trial.version != null) {
                const { version, by, model } = ended.trial;
                const entry = {
                    version,
                    at: ended.at,
                    by,
                    outcome: change.lastOutcome ?? 'expired',
                    model: JSON.stringify(model)
                };
                await em.upsert(HistoryEntity, entry);
                await em.execute(
                    'delete from history where version not in (select version from history order by at desc, version desc limit ?)',
                    [mostHistory]
                );
            }
        });
        this.#state = { ...before, ...change };
    }

    /** Models that were applied, newest first. */
    async history(): Promise<readonly HistoryEntry[]> {
        const rows = await this.#ctx.db.read((em) =>
            em.find(
                HistoryEntity,
                {},
                { orderBy: { at: 'desc', version: 'desc' }, fields: ['version', 'at', 'by', 'outcome'] }
            )
        );
        return rows.map(({ version, at, by, outcome }) => ({ version, at, by: by ?? null, outcome }));
    }

    /** A model that was applied; null when it is not kept. */
    async historic(version: number): Promise<Model | null> {
        const row = await this.#ctx.db.read((em) => em.findOne(HistoryEntity, { version }));
        return row === null ? null : (JSON.parse(row.model) as Model);
    }
}
