/** Plans: what is backed up to where, when, and for how long it is kept. */
import { errors, requireVersion, type Scheduled } from '@portico/sdk';

import { DrillEntity, PlanEntity, type PlanRow, RunEntity, type Trigger } from '../entities.ts';
import { findPlans } from '../queries.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { connectionIn } from '../repositories/stored.ts';
import type { Ctx } from '../settings.ts';
import {
    checkPlan,
    type CheckRule,
    type DrillRule,
    type Keep,
    type PlanInput,
    type Schedule,
    type Source
} from './input.ts';

/** A plan with its lists and objects read. */
export interface Plan extends Omit<
    PlanRow,
    'sources' | 'excludes' | 'tags' | 'schedule' | 'keep' | 'copyTo' | 'check' | 'drill'
> {
    readonly copyTo: number[];
    readonly check: CheckRule | null;
    readonly drill: DrillRule | null;
    readonly sources: Source[];
    readonly excludes: string[];
    readonly tags: string[];
    readonly schedule: Schedule | null;
    readonly keep: Keep;
}

/** What the clock starts. */
export interface PlanWork {
    run(plan: Plan, trigger: Trigger): Promise<unknown>;
    check(plan: Plan): Promise<unknown>;
    drill(plan: Plan): Promise<unknown>;
}

const mostPlans = 200;
const hourMs = 60 * 60_000;
const noKeep: Keep = { last: 0, hourly: 0, daily: 0, weekly: 0, monthly: 0, yearly: 0 };

/** Reads and changes the plans, and schedules their runs, checks and drills. */
export class Plans {
    readonly #ctx: Ctx;
    readonly #repositories: Repositories;
    readonly #work: PlanWork;
    /** By `plan-1`, `check-1`, `drill-1`. */
    readonly #scheduled = new Map<string, { readonly rule: string; readonly scheduled: Scheduled }>();

    /** @param work - what the clock starts */
    constructor(ctx: Ctx, repositories: Repositories, work: PlanWork) {
        this.#ctx = ctx;
        this.#repositories = repositories;
        this.#work = work;
    }

    async list(): Promise<readonly Plan[]> {
        return (await this.#ctx.db.read((em) => findPlans(em, {}))).map(planOf);
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Plan> {
        const [row] = await this.#ctx.db.read((em) => findPlans(em, { id }));
        if (row === undefined) {
            throw errors.notFound('There is no plan of that id');
        }
        return planOf(row);
    }

    /** @throws VALIDATION_FAILED 40001; NOT_FOUND 40400 for the repository */
    async create(input: PlanInput): Promise<Plan> {
        await this.#check(input, input);
        if ((await this.list()).length >= mostPlans) {
            throw errors.inUse(`${mostPlans} plans: remove one first`);
        }
        return this.#planned(await this.insert(input));
    }

    /** Stores a plan without asking what it names. Returns its id. */
    insert(input: PlanInput): Promise<number> {
        const now = Date.now();
        return this.#ctx.db.write((em) =>
            em.insert(PlanEntity, {
                schedule: null,
                check: null,
                drill: null,
                hooks: null,
                notifyOn: 'failure',
                enabled: true,
                retries: 2,
                backoffSeconds: 300,
                excludes: '[]',
                tags: '[]',
                copyTo: '[]',
                name: input.name ?? '',
                repositoryId: input.repositoryId ?? 0,
                sources: '[]',
                keep: JSON.stringify({ ...noKeep, ...input.keep }),
                ...(({ keep: _keep, ...columns }) => columns)(columnsOf(input)),
                version: 1,
                lastSuccessAt: null,
                overdueAt: null,
                createdAt: now,
                updatedAt: now
            })
        );
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(
        id: number,
        { version, ...input }: PlanInput & { readonly version?: number | undefined },
        ifMatch: string | null
    ): Promise<Plan> {
        await this.#check(input, { ...(await this.get(id)), ...input });
        await this.#ctx.db.write(async (em) => {
            const [row] = await findPlans(em, { id });
            if (row === undefined) {
                throw errors.notFound('There is no plan of that id');
            }
            requireVersion(row, ifMatch, version);
            Object.assign(row, columnsOf(input), { version: row.version + 1, updatedAt: Date.now() });
        });
        return this.#planned(id);
    }

    /** Removes it with the history of its runs; its snapshots stay. @throws NOT_FOUND 40400 */
    async remove(id: number): Promise<void> {
        await this.get(id);
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(RunEntity, { planId: id });
            await em.nativeDelete(DrillEntity, { planId: id });
            await em.nativeDelete(PlanEntity, { id });
        });
        await Promise.all(['plan', 'check', 'drill'].map((kind) => this.#unschedule(`${kind}-${id}`)));
    }

    /** Sets the commands around its runs; null: none. @throws NOT_FOUND 40400 */
    async setHooks(id: number, hooks: unknown): Promise<void> {
        await this.get(id);
        const sealed = hooks === null ? null : await this.#ctx.secrets.seal(JSON.stringify(hooks));
        await this.#ctx.db.write((em) => em.nativeUpdate(PlanEntity, { id }, { hooks: sealed }));
    }

    /** Schedules every enabled plan. */
    async start(): Promise<void> {
        for (const plan of await this.list()) {
            await this.#schedule(plan).catch((error: unknown) =>
                this.#ctx.log.warn('A plan could not be scheduled', { plan: plan.id, error: String(error) })
            );
        }
    }

    /** Enabled plans without a success for longer than the setting `staleHours`. */
    async stale(): Promise<readonly Plan[]> {
        const limit = Date.now() - this.#ctx.settings.staleHours * hourMs;
        return (await this.list()).filter(
            ({ enabled, lastSuccessAt, createdAt }) => enabled && (lastSuccessAt ?? createdAt) < limit
        );
    }

    /** When it runs next by itself; null when never. */
    async nextRunAt(id: number): Promise<Date | null> {
        return (await this.#scheduled.get(`plan-${id}`)?.scheduled.next()) ?? null;
    }

    /** @param whole - the plan as it would be */
    async #check(input: PlanInput, whole: PlanInput): Promise<void> {
        checkPlan(input);
        await this.#checkTimes(input);
        const { repositoryId = 0, copyTo = [], sources = [] } = whole;
        if (copyTo.includes(repositoryId)) {
            throw errors.invalid([
                { path: 'copyTo', message: 'copyTo names other repositories than repositoryId' }
            ]);
        }
        for (const id of [repositoryId, ...copyTo]) {
            const { type, path: place = '' } = connectionIn(await this.#repositories.get(id));
            const around = sources.findIndex(
                ({ path }) =>
                    type === 'local' &&
                    path !== undefined &&
                    (`${place}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${place}/`))
            );
            if (around >= 0) {
                const path = `sources.${around}.path`;
                throw errors.invalid([
                    { path, message: `${path} holds the repository ${id}, or lies in it` }
                ]);
            }
        }
    }

    /** A schedule that the panel takes for a moment is one that it takes for good. @throws VALIDATION_FAILED 40001 */
    async #checkTimes({ schedule, check, drill }: PlanInput): Promise<void> {
        for (const [field, rule] of Object.entries({ schedule, check, drill })) {
            if (rule == null) {
                continue;
            }
            try {
                const trial = await this.#ctx.schedule('trial', { cron: rule.cron }, () => undefined);
                await trial[Symbol.asyncDispose]();
            } catch (error) {
                const path = `${field}.cron`;
                throw errors.invalid([
                    { path, message: `${path} cannot be understood: ${(error as Error).message}` }
                ]);
            }
        }
    }

    async #planned(id: number): Promise<Plan> {
        const plan = await this.get(id);
        await this.#schedule(plan);
        return plan;
    }

    async #schedule(plan: Plan): Promise<void> {
        const { id, schedule, check, drill } = plan;
        const missed = schedule?.missed;
        await this.#clock(plan, `plan-${id}`, schedule, { missed: missed ?? 'skip' }, (found, isMissed) =>
            this.#work.run(found, isMissed ? 'missed' : 'schedule')
        );
        await this.#clock(plan, `check-${id}`, check, {}, (found) => this.#work.check(found));
        await this.#clock(plan, `drill-${id}`, drill, {}, (found) => this.#work.drill(found));
    }

    async #clock(
        { id, enabled, schedule }: Plan,
        name: string,
        rule: { readonly cron: string } | null,
        more: { readonly missed?: 'skip' | 'run-once' },
        work: (plan: Plan, isMissed: boolean) => Promise<unknown>
    ): Promise<void> {
        const timezone = schedule?.timezone ?? this.#ctx.settings.timezone;
        const key = JSON.stringify([rule, timezone]);
        if (!enabled || rule === null) {
            await this.#unschedule(name);
            return;
        }
        if (this.#scheduled.get(name)?.rule === key) {
            return;
        }
        const scheduled = await this.#ctx.schedule(
            name,
            { cron: rule.cron, overlap: 'skip', ...more, ...(timezone === undefined ? {} : { timezone }) },
            async ({ missed }) => void (await work(await this.get(id), missed))
        );
        this.#scheduled.set(name, { rule: key, scheduled });
    }

    async #unschedule(name: string): Promise<void> {
        await this.#scheduled.get(name)?.scheduled[Symbol.asyncDispose]();
        this.#scheduled.delete(name);
    }
}

function columnsOf(input: PlanInput): Partial<PlanRow> {
    const { name, repositoryId, notifyOn, enabled, retries, backoffSeconds } = input;
    const json = (value: unknown): string | undefined =>
        value === undefined ? undefined : JSON.stringify(value);
    const rule = (value: unknown): string | null | undefined => (value === null ? null : json(value));
    const given = {
        ...{ name, repositoryId, notifyOn, enabled, retries, backoffSeconds },
        sources: json(input.sources),
        excludes: json(input.excludes),
        tags: json(input.tags),
        copyTo: json(input.copyTo),
        keep: json(input.keep),
        schedule: rule(input.schedule),
        check: rule(input.check),
        drill: rule(input.drill)
    };
    return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function planOf(row: PlanRow): Plan {
    return {
        ...row,
        enabled: Boolean(row.enabled),
        sources: JSON.parse(row.sources) as Source[],
        excludes: JSON.parse(row.excludes) as string[],
        tags: JSON.parse(row.tags) as string[],
        copyTo: JSON.parse(row.copyTo) as number[],
        schedule: row.schedule === null ? null : (JSON.parse(row.schedule) as Schedule),
        check: row.check === null ? null : (JSON.parse(row.check) as CheckRule),
        drill: row.drill === null ? null : (JSON.parse(row.drill) as DrillRule),
        keep: JSON.parse(row.keep) as Keep
    };
}
