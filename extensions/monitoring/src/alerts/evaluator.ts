/** Rules at work: every sample moves them, and what they find becomes alerts. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { parseName } from '../metrics.ts';
import { type AlertRow, RuleEntity, type RuleRow, StateEntity } from '../entities.ts';
import type { AlertJournal } from './journal.ts';
import { advance, calm, type Condition, isBeyond, type Operator, type State } from './rule-state.ts';
import type { Ending } from './schema.ts';

/** The values of one moment. */
export interface Moment {
    /** Milliseconds since 1970. */
    readonly at: number;
    /** Since the moment before, by a clock that does not jump; null at a start. */
    readonly elapsed: number | null;
    /** Milliseconds between two moments, usually. */
    readonly interval: number;
    /** By metric and instance. */
    readonly values: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

interface Kept {
    readonly rule: number;
    readonly instance: string;
    state: State;
    seenAt: number;
    alert: number | null;
}

export class Watch {
    readonly #db: Db;
    readonly #journal: AlertJournal;
    readonly #rules = new Map<number, RuleRow>();
    readonly #states = new Map<string, Kept>();
    readonly #dirty = new Set<string>();

    constructor(db: Db, journal: AlertJournal) {
        this.#db = db;
        this.#journal = journal;
    }

    /** Takes up what an earlier generation left. What a crash left half is put right: no alert without its rule, no state without its alert. */
    async load(now: number): Promise<void> {
        await this.#journal.load();
        await this.#db.read(async (em) => {
            (await em.find(RuleEntity, {})).forEach((row) => this.#rules.set(row.id, { ...row }));
            (await em.find(StateEntity, {})).forEach(
                ({ rule, instance, phase, heldMs, missingMs, seenAt, alert }) => {
                    this.#states.set(keyOf(rule, instance), {
                        rule,
                        instance,
                        state: { phase: phase as State['phase'], heldMs, missingMs },
                        seenAt,
                        alert: alert ?? null
                    });
                }
            );
        });
        const firing = new Map(this.#journal.firing().map((alert) => [alert.id, alert]));
        for (const [key, { rule, alert }] of this.#states) {
            if (this.#rules.get(rule)?.enabled !== true || (alert !== null && !firing.has(alert))) {
                this.#forget(key);
            }
        }
        for (const alert of firing.values()) {
            const rule = this.#rules.get(alert.rule);
            const key = keyOf(alert.rule, alert.instance);
            if (rule === undefined || !rule.enabled || parseName(rule.metric)?.metric.name !== alert.metric) {
                this.#journal.end(
                    alert.id,
                    now,
                    rule === undefined ? 'rule-deleted' : rule.enabled ? 'rule-changed' : 'rule-disabled'
                );
                this.#forget(key);
            } else if (this.#states.get(key)?.alert !== alert.id) {
                this.#keep(key, {
                    rule: alert.rule,
                    instance: alert.instance,
                    state: { phase: 'firing', heldMs: 0, missingMs: 0 },
                    seenAt: now,
                    alert: alert.id
                });
            }
        }
    }

    /** Moves every rule that is on. */
    evaluate(moment: Moment): { readonly fired: readonly AlertRow[]; readonly ended: readonly AlertRow[] } {
        const fired: AlertRow[] = [];
        const ended: AlertRow[] = [];
        for (const rule of this.#rules.values()) {
            const named = parseName(rule.metric);
            if (!rule.enabled || named === null) {
                continue;
            }
            const values = moment.values.get(named.metric.name) ?? new Map<string, number>();
            for (const instance of this.#instances(
                rule.id,
                named.instance ?? (named.metric.scope === null ? '' : null),
                values
            )) {
                this.#move(rule, named.metric.name, instance, values.get(instance) ?? null, moment, {
                    fired,
                    ended
                });
            }
        }
        return { fired, ended };
    }

    /** A rule was made or changed. What it said before it watched something else is over. */
    put(row: RuleRow, now: number): void {
        const before = this.#rules.get(row.id);
        this.#rules.set(row.id, { ...row });
        if (!row.enabled) {
            this.#clear(row.id, now, 'rule-disabled');
        } else if (
            before !== undefined &&
            (before.metric !== row.metric || before.operator !== row.operator)
        ) {
            this.#clear(row.id, now, 'rule-changed');
        }
    }

    remove(id: number, now: number): void {
        this.#rules.delete(id);
        this.#clear(id, now, 'rule-deleted');
    }

    /** How many alerts of a rule fire. */
    firing(rule: number): number {
        return [...this.#states.values()].filter((kept) => kept.rule === rule && kept.alert !== null).length;
    }

    get dirty(): boolean {
        return this.#dirty.size > 0 || this.#journal.dirty;
    }

    /** Writes what has changed; returns what to call once it is durable. */
    async write(em: EntityManager): Promise<() => void> {
        const alerts = await this.#journal.write(em);
        const keys = [...this.#dirty];
        for (const key of keys) {
            const kept = this.#states.get(key);
            const [rule = '', instance = ''] = splitKey(key);
            if (kept === undefined) {
                await em.nativeDelete(StateEntity, { rule: Number(rule), instance });
            } else {
                await em.upsert(StateEntity, {
                    rule: kept.rule,
                    instance,
                    phase: kept.state.phase,
                    heldMs: kept.state.heldMs,
                    missingMs: kept.state.missingMs,
                    seenAt: kept.seenAt,
                    alert: kept.alert
                });
            }
        }
        const written = new Map(keys.map((key) => [key, this.#states.get(key)?.state]));
        return () => {
            alerts();
            written.forEach((state, key) => {
                if (this.#states.get(key)?.state === state) {
                    this.#dirty.delete(key);
                }
            });
        };
    }

    /** Writes all of it, an end before. */
    settle(): void {
        this.#states.forEach((_kept, key) => this.#dirty.add(key));
    }

    #move(
        rule: RuleRow,
        metric: string,
        instance: string,
        value: number | null,
        { at, elapsed, interval }: Moment,
        came: { readonly fired: AlertRow[]; readonly ended: AlertRow[] }
    ): void {
        const key = keyOf(rule.id, instance);
        const kept = this.#states.get(key);
        const since = elapsed ?? (kept === undefined ? 0 : Math.max(0, at - kept.seenAt));
        const { state, turn } = advance(kept?.state ?? calm, conditionOf(rule), value, {
            elapsed: since,
            interval
        });
        let alert = kept?.alert ?? null;
        if (alert !== null && value !== null) {
            this.#journal.note(alert, value, (one, other) => isBeyond(rule.operator as Operator, one, other));
        }
        if (turn === 'fired' && value !== null) {
            const row = this.#journal.begin({
                rule: rule.id,
                name: rule.name,
                metric,
                instance,
                operator: rule.operator,
                threshold: rule.threshold,
                severity: rule.severity,
                value,
                firedAt: at
            });
            alert = row.id;
            came.fired.push(row);
        } else if (turn === 'recovered' || turn === 'gone') {
            const row = alert === null ? null : this.#journal.end(alert, at, turn);
            alert = null;
            if (row !== null) {
                came.ended.push(row);
            }
        }
        if (state.phase === 'ok') {
            this.#forget(key);
        } else if (
            kept?.state.phase === 'firing' &&
            state.phase === 'firing' &&
            state.missingMs === kept.state.missingMs
        ) {
            kept.seenAt = at;
        } else {
            this.#keep(key, { rule: rule.id, instance, state, seenAt: at, alert });
        }
    }

    /** Those with a value, and those about which something is known. */
    #instances(rule: number, only: string | null, values: ReadonlyMap<string, number>): Iterable<string> {
        return only !== null
            ? [only]
            : new Set([
                  ...values.keys(),
                  ...[...this.#states.values()]
                      .filter((kept) => kept.rule === rule)
                      .map(({ instance }) => instance)
              ]);
    }

    #clear(rule: number, now: number, by: Ending): void {
        for (const [key, kept] of [...this.#states].filter(([, each]) => each.rule === rule)) {
            if (kept.alert !== null) {
                this.#journal.end(kept.alert, now, by);
            }
            this.#forget(key);
        }
    }

    #keep(key: string, kept: Kept): void {
        this.#states.set(key, kept);
        this.#dirty.add(key);
    }

    #forget(key: string): void {
        if (this.#states.delete(key)) {
            this.#dirty.add(key);
        }
    }
}

function conditionOf({ operator, threshold, recoverThreshold, forSeconds }: RuleRow): Condition {
    return {
        operator: operator as Operator,
        threshold,
        recoverThreshold: recoverThreshold ?? threshold,
        forSeconds
    };
}

function keyOf(rule: number, instance: string): string {
    return `${rule} ${instance}`;
}

function splitKey(key: string): readonly [rule: string, instance: string] {
    const space = key.indexOf(' ');
    return [key.slice(0, space), key.slice(space + 1)];
}
