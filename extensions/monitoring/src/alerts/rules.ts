/** Alert rules, as people create, change and remove them. */
import { isDeepStrictEqual } from 'node:util';

import { type AuditDetail, type Db, errors, isFailure } from '@portico/sdk';
import { type EntityManager, UniqueConstraintViolationException } from '@portico/sdk/db';

import { RuleEntity, type RuleRow } from '../entities.ts';
import { monitoringErrors } from '../errors.ts';
import { parseSeriesName } from '../metrics.ts';
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
>;

/** Stores rules and hands every change to the evaluator. */
export class Rules {
    readonly #db: Db;
    readonly #evaluator: RuleEvaluator;
    readonly #now: () => number;

    constructor(db: Db, evaluator: RuleEvaluator, now: () => number) {
        this.#db = db;
        this.#evaluator = evaluator;
        this.#now = now;
    }

    /** Lists all rules, oldest first. */
    async list(): Promise<RuleView[]> {
        const rows = await this.#db.read((em) => em.find(RuleEntity, {}, { orderBy: { id: 'asc' } }));
        return rows.map((row) => this.#view(row));
    }

    /** Returns one rule. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RuleView> {
        return this.#view(await this.#db.read((em) => findRule(em, id)));
    }

    /** Creates a rule. @throws CONFLICT 40900 when the name is taken, TOO_MANY_RULES 40950 */
    async create(input: NewRule, { audit }: ChangeRequest): Promise<RuleView> {
        const fields = fieldsOf(input);
        check(fields);
        const now = this.#now();
        const row = await this.#write((em) => insertRule(em, fields, now));
        this.#evaluator.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: row.id, after: view });
        return view;
    }

    /** Changes the given fields of a rule. @throws NOT_FOUND 40400, VERSION_STALE 41200, CONFLICT 40900 */
    async update(id: number, change: ChangedRule, { ifMatch, audit }: ChangeRequest): Promise<RuleView> {
        audit({ resourceId: id });
        const now = this.#now();
        const { before, row } = await this.#write(async (em) => {
            const stored = await findRule(em, id);
            checkVersion(stored, ifMatch);
            checkVersion(stored, change.version === undefined ? null : String(change.version));
            // A body that was validated has no undefined fields.
            const fields = fieldsOf({ ...fieldsOf(stored), ...change } as Fields);
            check(fields);
            return { before: { ...stored }, row: await updateRule(em, stored, fields, now) };
        });
        const seen = toRuleView(before, this.#evaluator.firing(id));
        this.#evaluator.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: id, before: seen, after: view });
        return view;
    }

    /** All rules as bodies of POST `/rules`. */
    async exportAll(): Promise<readonly NewRule[]> {
        const rows = await this.#db.read((em) => em.find(RuleEntity, {}, { orderBy: { id: 'asc' } }));
        return rows.map((row) => fieldsOf(row) as NewRule);
    }

    /**
     * Takes back exported rules, in one transaction. A rule takes the place of the one with the same name, so that a second time changes nothing;
     * with `replace` all others are removed. Resolves with what is wrong with each rule that was left out.
     */
    async restore(inputs: readonly NewRule[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const now = this.#now();
        const { rows, removed, problems } = await this.#write(async (em) => {
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
            return { rows: changed, removed: removedIds, problems: found };
        });
        removed.forEach((id) => this.#evaluator.remove(id, now));
        rows.forEach((row) => this.#evaluator.put(row, now));
        return problems;
    }

    /** Removes a rule; its alerts end. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, { ifMatch, audit }: ChangeRequest): Promise<void> {
        audit({ resourceId: id });
        const before = await this.#write(async (em) => {
            const stored = await findRule(em, id);
            checkVersion(stored, ifMatch);
            await em.nativeDelete(RuleEntity, { id });
            return { ...stored };
        });
        audit({ resourceId: id, before: this.#view(before) });
        this.#evaluator.remove(id, this.#now());
    }

    #view(row: RuleRow): RuleView {
        return toRuleView(row, this.#evaluator.firing(row.id));
    }

    async #write<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        try {
            return await this.#db.write(work);
        } catch (error) {
            if (error instanceof UniqueConstraintViolationException) {
                throw errors.conflict('name');
            }
            throw error;
        }
    }
}

/** The fields that a caller sets, of a body or of a row. */
function fieldsOf({
    name,
    metric,
    operator,
    threshold,
    recoverThreshold = null,
    forSeconds,
    severity,
    enabled,
    channels = null
}: Fields): Fields {
    return { name, metric, operator, threshold, recoverThreshold, forSeconds, severity, enabled, channels };
}

/** @throws TOO_MANY_RULES 40950 */
async function insertRule(em: EntityManager, fields: Fields, now: number): Promise<RuleRow> {
    if ((await em.count(RuleEntity, {})) >= mostRules) {
        throw monitoringErrors.TOO_MANY_RULES({ limit: mostRules });
    }
    const id = await em.insert(RuleEntity, { ...fields, version: 1, createdAt: now, updatedAt: now });
    return findRule(em, Number(id));
}

/** Writes the fields. Equal fields are not a new version. */
async function updateRule(em: EntityManager, stored: RuleRow, fields: Fields, now: number): Promise<RuleRow> {
    if (isDeepStrictEqual(fieldsOf(stored), fields)) {
        return { ...stored };
    }
    const next = { ...stored, ...fields, version: stored.version + 1, updatedAt: now };
    await em.nativeUpdate(
        RuleEntity,
        { id: stored.id },
        { ...fields, version: next.version, updatedAt: now }
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

function checkVersion({ version }: RuleRow, asked: string | null): void {
    if (asked !== null && asked !== '*' && asked !== String(version)) {
        throw errors.stale(version);
    }
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
    const back = recoverThreshold ?? threshold;
    if (operator.startsWith('>') ? back > threshold : back < threshold) {
        problems.push({
            path: 'recoverThreshold',
            message: `recoverThreshold must not be ${operator.startsWith('>') ? 'higher' : 'lower'} than threshold when operator is ${operator}`
        });
    }
    if (problems.length > 0) {
        throw errors.invalid(problems);
    }
}

/** What is wrong with a rule, from the error that refuses it. */
function describeProblem(error: unknown): string {
    if (!isFailure(error)) {
        throw error;
    }
    const { errors: problems } = (error.data ?? {}) as { errors?: readonly { message: string }[] };
    return problems?.map(({ message }) => message).join(', ') ?? error.message;
}
