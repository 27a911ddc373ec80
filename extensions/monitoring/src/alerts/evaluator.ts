/** Evaluates the rules with each sample, and turns what they find into alerts. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { type AlertRow, RuleEntity, type RuleRow, StateEntity } from '../entities.ts';
import { parseSeriesName } from '../sampling/metrics.ts';
import type { AlertJournal } from './journal.ts';
import {
    advance,
    type Condition,
    initialState,
    isBeyond,
    type Operator,
    type RuleState
} from './rule-state.ts';
import type { Ending } from './schema.ts';

/** The values of one sample. */
export interface Measurement {
    /** Milliseconds since 1970. */
    readonly at: number;
    /** Milliseconds since the sample before, by a clock that does not jump; null for the first. */
    readonly elapsed: number | null;
    /** Usual milliseconds between two samples. */
    readonly interval: number;
    /** By metric and instance. */
    readonly values: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

interface SeriesState {
    readonly rule: number;
    readonly instance: string;
    state: RuleState;
    seenAt: number;
    alert: number | null;
}

/** Keeps the rules and their states in memory, and the states in the database. */
export class RuleEvaluator {
    readonly #db: Db;
    readonly #journal: AlertJournal;
    readonly #rules = new Map<number, RuleRow>();
    readonly #states = new Map<string, SeriesState>();
    readonly #dirty = new Set<string>();

    constructor(db: Db, journal: AlertJournal) {
        this.#db = db;
        this.#journal = journal;
    }

    /** Loads rules and states. Repairs what a crash may have left: an alert without its rule ends, a state without its alert is forgotten. */
    async load(now: number): Promise<void> {
        await this.#journal.load();
        await this.#db.read(async (em) => {
            (await em.find(RuleEntity, {})).forEach((row) => this.#rules.set(row.id, { ...row }));
            (await em.find(StateEntity, {})).forEach(
                ({ rule, instance, phase, heldMs, missingMs, seenAt, alert }) => {
                    this.#states.set(keyOf(rule, instance), {
                        rule,
                        instance,
                        state: { phase: phase as RuleState['phase'], heldMs, missingMs },
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
            if (
                rule === undefined ||
                !rule.enabled ||
                parseSeriesName(rule.metric)?.metric.name !== alert.metric
            ) {
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

    /** Evaluates all enabled rules. Returns the alerts that began and ended. */
    evaluate(measurement: Measurement): {
        readonly fired: readonly AlertRow[];
        readonly ended: readonly AlertRow[];
    } {
        const fired: AlertRow[] = [];
        const ended: AlertRow[] = [];
        for (const rule of this.#rules.values()) {
            const reference = parseSeriesName(rule.metric);
            if (!rule.enabled || reference === null) {
                continue;
            }
            const { name, scope } = reference.metric;
            const values = measurement.values.get(name) ?? new Map<string, number>();
            if (rule.operator === 'absent' && scope !== null && reference.instance === null) {
                // Of all instances together, since one that is gone may be gone for good.
                this.#move(rule, name, '', values.values().next().value ?? null, measurement, {
                    fired,
                    ended
                });
                continue;
            }
            for (const instance of this.#instances(
                rule.id,
                reference.instance ?? (scope === null ? '' : null),
                values
            )) {
                this.#move(rule, name, instance, values.get(instance) ?? null, measurement, {
                    fired,
                    ended
                });
            }
        }
        return { fired, ended };
    }

    /** Takes up a new or changed rule. Alerts of a rule that is disabled, or that watches something else now, end. */
    put(row: RuleRow, now: number): void {
        const before = this.#rules.get(row.id);
        this.#rules.set(row.id, { ...row });
        if (!row.enabled) {
            this.#endAlerts(row.id, now, 'rule-disabled');
        } else if (
            before !== undefined &&
            (before.metric !== row.metric || before.operator !== row.operator)
        ) {
            this.#endAlerts(row.id, now, 'rule-changed');
        }
    }

    /** A rule as it is watched now. */
    rule(id: number): RuleRow | undefined {
        return this.#rules.get(id);
    }

    /** Forgets a rule; its alerts end. */
    remove(id: number, now: number): void {
        this.#rules.delete(id);
        this.#endAlerts(id, now, 'rule-deleted');
    }

    /** Number of alerts of a rule that fire. */
    firing(rule: number): number {
        return [...this.#states.values()].filter((kept) => kept.rule === rule && kept.alert !== null).length;
    }

    /** Whether alerts or states have changed since the last write. */
    get dirty(): boolean {
        return this.#dirty.size > 0 || this.#journal.dirty;
    }

    /** Writes what has changed. The caller calls the function that it returns when the transaction is durable. */
    async write(em: EntityManager): Promise<() => void> {
        const confirmAlerts = await this.#journal.write(em);
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
            confirmAlerts();
            written.forEach((state, key) => {
                if (this.#states.get(key)?.state === state) {
                    this.#dirty.delete(key);
                }
            });
        };
    }

    /** Makes the next write save every state with its time, as before a stop. */
    markAllDirty(): void {
        this.#states.forEach((_kept, key) => this.#dirty.add(key));
    }

    #move(
        rule: RuleRow,
        metric: string,
        instance: string,
        value: number | null,
        { at, elapsed, interval }: Measurement,
        changed: { readonly fired: AlertRow[]; readonly ended: AlertRow[] }
    ): void {
        const key = keyOf(rule.id, instance);
        const kept = this.#states.get(key);
        const since = elapsed ?? (kept === undefined ? 0 : Math.max(0, at - kept.seenAt));
        const { state, transition } = advance(kept?.state ?? initialState, conditionOf(rule), value, {
            elapsed: since,
            interval
        });
        let alert = kept?.alert ?? null;
        if (alert !== null && value !== null) {
            this.#journal.note(alert, value, (one, other) => isBeyond(rule.operator as Operator, one, other));
        }
        if (transition === 'fired') {
            const row = this.#journal.begin({
                rule: rule.id,
                name: rule.name,
                metric,
                instance,
                operator: rule.operator,
                threshold: rule.threshold,
                severity: rule.severity,
                channels: rule.channels ?? null,
                // Of an absent value there is none; answers leave it out.
                value: value ?? 0,
                actionDue: rule.action != null,
                firedAt: at
            });
            alert = row.id;
            changed.fired.push(row);
        } else if (transition === 'recovered' || transition === 'gone') {
            const row = alert === null ? null : this.#journal.end(alert, at, transition);
            alert = null;
            if (row !== null) {
                changed.ended.push(row);
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

    /** Instances that have a value now or a state of the rule. */
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

    #endAlerts(rule: number, now: number, by: Ending): void {
        for (const [key, kept] of [...this.#states].filter(([, each]) => each.rule === rule)) {
            if (kept.alert !== null) {
                this.#journal.end(kept.alert, now, by);
            }
            this.#forget(key);
        }
    }

    #keep(key: string, kept: SeriesState): void {
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
