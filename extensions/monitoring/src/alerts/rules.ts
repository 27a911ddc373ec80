/** Alert rules, as people create, change and remove them. */
import { isDeepStrictEqual } from 'node:util';

import { type Actor, type AuditDetail, errors, requireVersion } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { RuleEntity, type RuleRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { describeProblem, writeNamed } from '../named.ts';
import { parseSeriesName } from '../sampling/metrics.ts';
import type { Ctx } from '../settings.ts';
import type { RuleEvaluator } from './evaluator.ts';
import { type ChangedRule, type NewRule, type RuleView, toRuleView } from './schema.ts';

/** Largest number of rules. */
export const mostRules = 200;

/** The part of a request that a change needs. */
interface ChangeRequest {
    readonly ifMatch: string | null;
    audit(detail: AuditDetail): void;
}

type Fields = Pick<
    RuleRow,
    | 'name'
    | 'metric'
    | 'operator'
    | 'threshold'
    | 'recoverThreshold'
    | 'forSeconds'
    | 'severity'
    | 'enabled'
    | 'channels'
    | 'repeatSeconds'
    | 'cooldownSeconds'
    | 'action'
>;

/** What of the plugin's context rules work with. */
type RulesContext = Pick<Ctx, 'db' | 'mandates'>;

/** Stores rules and hands every change to the evaluator. */
export class Rules {
    readonly #ctx: RulesContext;
    readonly #evaluator: RuleEvaluator;
    readonly #now: () => number;

    constructor(ctx: RulesContext, evaluator: RuleEvaluator, now: () => number) {
        this.#ctx = ctx;
        this.#evaluator = evaluator;
        this.#now = now;
    }

    /** Lists all rules, oldest first. @param isWhole - false: without what their actions send */
    async list(isWhole = true): Promise<RuleView[]> {
        const rows = await this.#ctx.db.read((em) => em.find(RuleEntity, {}, { orderBy: { id: 'asc' } }));
        return rows.map((row) => this.#view(row, isWhole));
    }

    /** Returns one rule. @param isWhole - false: without what its action sends. @throws NOT_FOUND 40400 */
    async get(id: number, isWhole = true): Promise<RuleView> {
        return this.#view(await this.#ctx.db.read((em) => findRule(em, id)), isWhole);
    }

    /** Creates a rule. @throws CONFLICT 40900 when the name is taken, TOO_MANY_RULES 40950 */
    async create(input: NewRule, { audit }: ChangeRequest): Promise<RuleView> {
        const fields = fieldsOf(input);
        check(fields);
        const now = this.#now();
        const row = await writeNamed(this.#ctx.db, (em) => insertRule(em, fields, now));
        this.#evaluator.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: row.id, after: view });
        return view;
    }

    /** Changes the given fields of a rule. @throws NOT_FOUND 40400, VERSION_STALE 41200, CONFLICT 40900 */
    async update(id: number, change: ChangedRule, { ifMatch, audit }: ChangeRequest): Promise<RuleView> {
        audit({ resourceId: id });
        const now = this.#now();
        const { before, row } = await writeNamed(this.#ctx.db, async (em) => {
            const stored = await findRule(em, id);
            requireVersion(stored, ifMatch, change.version);
            // A body that was validated has no undefined fields.
            const fields = fieldsOf({ ...fieldsOf(stored), ...change } as Fields);
            check(fields);
            return { before: { ...stored }, row: await updateRule(em, stored, fields, now) };
        });
        if (before.mandate != null && row.mandate == null) {
            await this.#ctx.mandates.end(before.mandate);
        }
        const seen = toRuleView(before, this.#evaluator.firing(id));
        this.#evaluator.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: id, before: seen, after: view });
        return view;
    }

    /**
     * Lets a rule call its action in the name of the person who asks.
     *
     * @throws NOT_FOUND 40400; VALIDATION_FAILED 40001 for a rule without one; FORBIDDEN 40300, STEP_UP_REQUIRED 40301; VERSION_STALE 41200
     */
    async authorize(id: number, actor: Actor): Promise<RuleView> {
        const seen = await this.#ctx.db.read((em) => findRule(em, id));
        if (seen.action == null) {
            throw errors.invalid([{ path: 'action', message: 'Only a rule with an action is authorized' }]);
        }
        const mandate = await this.#ctx.mandates.give(actor, {
            title: `The rule ${seen.name}`.slice(0, 100),
            routes: [seen.action.route]
        });
        const row = await writeNamed(this.#ctx.db, async (em) => {
            const now = await findRule(em, id);
            if (now.version !== seen.version) {
                return null;
            }
            const change = { mandate: mandate.id, version: now.version + 1, updatedAt: this.#now() };
            await em.nativeUpdate(RuleEntity, { id }, change);
            return { ...now, ...change };
        });
        const ended = row === null ? mandate.id : (seen.mandate ?? null);
        if (ended !== null) {
            await this.#ctx.mandates.end(ended);
        }
        if (row === null) {
            throw errors.stale(seen.version + 1);
        }
        this.#evaluator.put(row, this.#now());
        return this.#view(row);
    }

    /** All rules as bodies of POST `/rules`. */
    async exportAll(): Promise<readonly NewRule[]> {
        const rows = await this.#ctx.db.read((em) => em.find(RuleEntity, {}, { orderBy: { id: 'asc' } }));
        return rows.map((row) => fieldsOf(row) as NewRule);
    }

    /**
     * Takes back exported rules, in one transaction. A rule takes the place of the one with the same name, so that a second time changes nothing;
     * with `replace` all others are removed. Resolves with what is wrong with each rule that was left out.
     */
    async restore(inputs: readonly NewRule[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const now = this.#now();
        const { rows, removed, problems, ended } = await writeNamed(this.#ctx.db, async (em) => {
            const stored = await em.find(RuleEntity, {}, { orderBy: { id: 'asc' } });
            const others = new Map(stored.map((row) => [row.name.toLowerCase(), row]));
            const matched = inputs.map((input) => {
                const same = others.get(input.name.toLowerCase());
                others.delete(input.name.toLowerCase());
                return { fields: fieldsOf(input), same };
            });
            const removedIds = mode === 'replace' ? [...others.values()].map(({ id }) => id) : [];
            await em.nativeDelete(RuleEntity, { id: { $in: removedIds } });
            const changed: RuleRow[] = [];
            const found: string[] = [];
            for (const { fields, same } of matched) {
                try {
                    check(fields);
                    changed.push(
                        same === undefined
                            ? await insertRule(em, fields, now)
                            : await updateRule(em, same, fields, now)
                    );
                } catch (error) {
                    found.push(`${fields.name}: ${describeProblem(error)}`);
                }
            }
            const left = new Set(changed.map(({ mandate }) => mandate));
            const touched = stored.filter(
                ({ id }) => removedIds.includes(id) || changed.some((row) => row.id === id)
            );
            return {
                rows: changed,
                removed: removedIds,
                problems: found,
                ended: touched.flatMap(({ mandate }) =>
                    mandate == null || left.has(mandate) ? [] : [mandate]
                )
            };
        });
        for (const mandate of ended) {
            await this.#ctx.mandates.end(mandate);
        }
        removed.forEach((id) => this.#evaluator.remove(id, now));
        rows.forEach((row) => this.#evaluator.put(row, now));
        return problems;
    }

    /** Removes a rule; its alerts end. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, { ifMatch, audit }: ChangeRequest): Promise<void> {
        audit({ resourceId: id });
        const before = await writeNamed(this.#ctx.db, async (em) => {
            const stored = await findRule(em, id);
            requireVersion(stored, ifMatch);
            await em.nativeDelete(RuleEntity, { id });
            return { ...stored };
        });
        audit({ resourceId: id, before: this.#view(before) });
        if (before.mandate != null) {
            await this.#ctx.mandates.end(before.mandate);
        }
        this.#evaluator.remove(id, this.#now());
    }

    #view(row: RuleRow, isWhole = true): RuleView {
        return toRuleView(row, this.#evaluator.firing(row.id), isWhole);
    }
}

/** The fields that a caller sets, of a body or of a row. */
function fieldsOf({
    name,
    metric,
    operator,
    threshold = operator === 'absent' ? 0 : Number.NaN,
    recoverThreshold = null,
    forSeconds,
    severity,
    enabled,
    channels = null,
    repeatSeconds = null,
    cooldownSeconds,
    action = null
}: Omit<Fields, 'threshold'> & { readonly threshold?: number | undefined }): Fields {
    return {
        ...{ name, metric, operator, threshold, recoverThreshold, forSeconds, severity, enabled },
        ...{ channels, repeatSeconds, cooldownSeconds, action }
    };
}

/** @throws TOO_MANY_RULES 40950 */
async function insertRule(em: EntityManager, fields: Fields, now: number): Promise<RuleRow> {
    if ((await em.count(RuleEntity, {})) >= mostRules) {
        throw fail.TOO_MANY_RULES({ limit: mostRules });
    }
    const id = await em.insert(RuleEntity, { ...fields, version: 1, createdAt: now, updatedAt: now });
    return findRule(em, Number(id));
}

/** Writes the fields. Equal fields are not a new version. */
async function updateRule(em: EntityManager, stored: RuleRow, fields: Fields, now: number): Promise<RuleRow> {
    if (isDeepStrictEqual(fieldsOf(stored), fields)) {
        return { ...stored };
    }
    // A person authorized that very action, for that very reason.
    const isSame = (['action', 'metric', 'operator', 'threshold', 'forSeconds'] as const).every((key) =>
        isDeepStrictEqual(stored[key] ?? null, fields[key] ?? null)
    );
    const mandate = isSame ? (stored.mandate ?? null) : null;
    const next = { ...stored, ...fields, mandate, version: stored.version + 1, updatedAt: now };
    await em.nativeUpdate(
        RuleEntity,
        { id: stored.id },
        { ...fields, mandate, version: next.version, updatedAt: now }
    );
    return next;
}

async function findRule(em: EntityManager, id: number): Promise<RuleRow> {
    const row = await em.findOne(RuleEntity, { id });
    if (row === null) {
        throw errors.notFound(`There is no rule ${id}`);
    }
    return row;
}

/** Checks what the schema cannot. @throws VALIDATION_FAILED 40001 */
function check({ name, metric, operator, threshold, recoverThreshold }: Fields): void {
    const problems: { path: string; message: string }[] = [];
    if (name.trim() !== name) {
        problems.push({ path: 'name', message: 'name must not begin or end with a space' });
    }
    if (parseSeriesName(metric) === null) {
        problems.push({ path: 'metric', message: 'metric must be one that GET metrics/catalogue lists' });
    }
    if (Number.isNaN(threshold)) {
        problems.push({ path: 'threshold', message: 'threshold is required' });
    }
    const back = recoverThreshold ?? threshold;
    if (operator !== 'absent' && (operator.startsWith('>') ? back > threshold : back < threshold)) {
        problems.push({
            path: 'recoverThreshold',
            message: `recoverThreshold must not be ${operator.startsWith('>') ? 'higher' : 'lower'} than threshold when operator is ${operator}`
        });
    }
    if (problems.length > 0) {
        throw errors.invalid(problems);
    }
}
