/** Rules as they are kept: made, changed and removed by people. */
import { type AuditDetail, type Db, errors } from '@portico/sdk';
import { type EntityManager, UniqueConstraintViolationException } from '@portico/sdk/db';

import { parseName } from '../metrics.ts';
import { failures } from '../errors.ts';
import { RuleEntity, type RuleRow } from '../entities.ts';
import { type ChangedRule, type NewRule, type RuleView, ruleView } from './schema.ts';
import type { Watch } from './evaluator.ts';

export const mostRules = 200;

/** What of a request a change needs. */
interface Changing {
    readonly ifMatch: string | null;
    audit(detail: AuditDetail): void;
}

type Fields = Pick<
    RuleRow,
    'name' | 'metric' | 'operator' | 'threshold' | 'recoverThreshold' | 'forSeconds' | 'severity' | 'enabled'
>;

export class Rules {
    readonly #db: Db;
    readonly #watch: Watch;
    readonly #now: () => number;

    constructor(db: Db, watch: Watch, now: () => number) {
        this.#db = db;
        this.#watch = watch;
        this.#now = now;
    }

    async list(): Promise<RuleView[]> {
        const rows = await this.#db.read((em) => em.find(RuleEntity, {}, { orderBy: { id: 'asc' } }));
        return rows.map((row) => this.#view(row));
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RuleView> {
        return this.#view(await this.#db.read((em) => rowOf(em, id)));
    }

    /** @throws CONFLICT 40900 when the name is taken, TOO_MANY_RULES 40950 */
    async create(
        { name, metric, operator, threshold, recoverThreshold, forSeconds, severity, enabled }: NewRule,
        { audit }: Changing
    ): Promise<RuleView> {
        const fields: Fields = {
            name,
            metric,
            operator,
            threshold,
            recoverThreshold,
            forSeconds,
            severity,
            enabled
        };
        check(fields);
        const now = this.#now();
        const row = await this.#write(async (em) => {
            if ((await em.count(RuleEntity, {})) >= mostRules) {
                throw failures.TOO_MANY_RULES({ limit: mostRules });
            }
            const id = await em.insert(RuleEntity, { ...fields, version: 1, createdAt: now, updatedAt: now });
            return rowOf(em, Number(id));
        });
        this.#watch.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: row.id, after: view });
        return view;
    }

    /** Fields that are not there stay as they are. @throws NOT_FOUND 40400, VERSION_STALE 41200, CONFLICT 40900 */
    async update(id: number, change: ChangedRule, { ifMatch, audit }: Changing): Promise<RuleView> {
        audit({ resourceId: id });
        const now = this.#now();
        const { before, row } = await this.#write(async (em) => {
            const stored = await rowOf(em, id);
            checkVersion(stored, ifMatch);
            checkVersion(stored, change.version === undefined ? null : String(change.version));
            const {
                name = stored.name,
                metric = stored.metric,
                operator = stored.operator,
                threshold = stored.threshold,
                recoverThreshold = stored.recoverThreshold ?? null,
                forSeconds = stored.forSeconds,
                severity = stored.severity,
                enabled = stored.enabled
            } = change;
            const fields: Fields = {
                name,
                metric,
                operator,
                threshold,
                recoverThreshold,
                forSeconds,
                severity,
                enabled
            };
            check(fields);
            const same = (Object.keys(fields) as (keyof Fields)[]).every(
                (key) => fields[key] === (stored[key] ?? null)
            );
            const next = same
                ? { ...stored }
                : { ...stored, ...fields, version: stored.version + 1, updatedAt: now };
            await em.nativeUpdate(
                RuleEntity,
                { id },
                { ...fields, version: next.version, updatedAt: next.updatedAt }
            );
            return { before: { ...stored }, row: next };
        });
        const seen = ruleView(before, this.#watch.firing(id));
        this.#watch.put(row, now);
        const view = this.#view(row);
        audit({ resourceId: id, before: seen, after: view });
        return view;
    }

    /** What it made known is over. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, { ifMatch, audit }: Changing): Promise<void> {
        audit({ resourceId: id });
        const before = await this.#write(async (em) => {
            const stored = await rowOf(em, id);
            checkVersion(stored, ifMatch);
            await em.nativeDelete(RuleEntity, { id });
            return { ...stored };
        });
        audit({ resourceId: id, before: this.#view(before) });
        this.#watch.remove(id, this.#now());
    }

    #view(row: RuleRow): RuleView {
        return ruleView(row, this.#watch.firing(row.id));
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

async function rowOf(em: EntityManager, id: number): Promise<RuleRow> {
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

/** What a schema cannot say. */
function check({ name, metric, operator, threshold, recoverThreshold }: Fields): void {
    const faults: { path: string; message: string }[] = [];
    if (name.trim() !== name) {
        faults.push({ path: 'name', message: 'name begins and ends with something that can be seen' });
    }
    if (parseName(metric) === null) {
        faults.push({ path: 'metric', message: 'metric is none of those that GET metrics/catalogue lists' });
    }
    const back = recoverThreshold ?? threshold;
    if (operator.startsWith('>') ? back > threshold : back < threshold) {
        faults.push({
            path: 'recoverThreshold',
            message: `recoverThreshold lies on the good side of the threshold: with ${operator} it is ${operator.startsWith('>') ? 'not higher' : 'not lower'}`
        });
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}
