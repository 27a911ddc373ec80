/** Plans: what is backed up to where, when, and for how long it is kept. */
import { errors } from '@portico/sdk';

import { DrillEntity, PlanEntity, type PlanRow, RunEntity, type Trigger } from '../entities.ts';
import { checkVersion, findPlans } from '../queries.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { Ctx } from '../settings.ts';
import { checkPlan, type Keep, type PlanInput, type Schedule, type Source } from './input.ts';

/** A plan with its lists and objects read. */
export interface Plan extends Omit<PlanRow, 'sources' | 'excludes' | 'tags' | 'schedule' | 'keep'> {
    readonly sources: Source[];
    readonly excludes: string[];
    readonly tags: string[];
    readonly schedule: Schedule | null;
    readonly keep: Keep;
}

const noKeep: Keep = { last: 0, hourly: 0, daily: 0, weekly: 0, monthly: 0, yearly: 0 };

/** All plans. */
export class Plans {
    readonly #ctx: Ctx;
    readonly #repositories: Repositories;
    readonly #run: (plan: Plan, trigger: Trigger) => Promise<unknown>;
    readonly #scheduled = new Map<
        number,
        { readonly rule: string; readonly end: AsyncDisposable; next(): Promise<Date | null> }
    >();

    /** @param run - starts a run of a plan */
    constructor(
        ctx: Ctx,
        repositories: Repositories,
        run: (plan: Plan, trigger: Trigger) => Promise<unknown>
    ) {
        this.#ctx = ctx;
        this.#repositories = repositories;
        this.#run = run;
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
        checkPlan(input);
        await this.#repositories.get(input.repositoryId ?? 0);
        await this.#checkTimes(input);
        const now = Date.now();
        const id = await this.#ctx.db.write((em) =>
            em.insert(PlanEntity, {
                ...columnsOf(input),
                name: input.name ?? '',
                repositoryId: input.repositoryId ?? 0,
                sources: JSON.stringify(input.sources),
                excludes: JSON.stringify(input.excludes ?? []),
                tags: JSON.stringify(input.tags ?? []),
                keep: JSON.stringify({ ...noKeep, ...input.keep }),
                schedule: input.schedule == null ? null : JSON.stringify(input.schedule),
                notifyOn: input.notifyOn ?? 'failure',
                enabled: input.enabled ?? true,
                version: 1,
                lastSuccessAt: null,
                createdAt: now,
                updatedAt: now
            })
        );
        return this.#planned(id);
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(id: number, input: PlanInput, version: string | null): Promise<Plan> {
        checkPlan(input);
        await this.#checkTimes(input);
        if (input.repositoryId !== undefined) {
            await this.#repositories.get(input.repositoryId);
        }
        await this.#ctx.db.write(async (em) => {
            const [row] = await findPlans(em, { id });
            if (row === undefined) {
                throw errors.notFound('There is no plan of that id');
            }
            checkVersion(row, version);
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
        await this.#unschedule(id);
    }

    /** Schedules every enabled plan. */
    async start(): Promise<void> {
        for (const plan of await this.list()) {
            await this.#schedule(plan).catch((error: unknown) =>
                this.#ctx.log.warn('A plan could not be scheduled', { plan: plan.id, error: String(error) })
            );
        }
    }

    /** When it runs next by itself; null when never. */
    async nextRunAt(id: number): Promise<Date | null> {
        return (await this.#scheduled.get(id)?.next()) ?? null;
    }

    /** A schedule that the panel takes for a moment is one that it takes for good. @throws VALIDATION_FAILED 40001 */
    async #checkTimes({ schedule }: PlanInput): Promise<void> {
        if (schedule == null) {
            return;
        }
        try {
            const trial = await this.#ctx.schedule('trial', { cron: schedule.cron }, () => undefined);
            await trial[Symbol.asyncDispose]();
        } catch (error) {
            throw errors.invalid([
                {
                    path: 'schedule.cron',
                    message: `schedule.cron cannot be understood: ${(error as Error).message}`
                }
            ]);
        }
    }

    async #planned(id: number): Promise<Plan> {
        const plan = await this.get(id);
        await this.#schedule(plan);
        return plan;
    }

    async #schedule(plan: Plan): Promise<void> {
        const { id, enabled, schedule } = plan;
        const rule = JSON.stringify(schedule);
        if (!enabled || schedule === null) {
            await this.#unschedule(id);
            return;
        }
        if (this.#scheduled.get(id)?.rule === rule) {
            return;
        }
        const timezone = schedule.timezone ?? this.#ctx.settings.timezone;
        const scheduled = await this.#ctx.schedule(
            `plan-${id}`,
            {
                cron: schedule.cron,
                missed: schedule.missed,
                overlap: 'skip',
                ...(timezone === undefined ? {} : { timezone })
            },
            async ({ missed }) => void (await this.#run(await this.get(id), missed ? 'missed' : 'schedule'))
        );
        this.#scheduled.set(id, { rule, end: scheduled, next: () => scheduled.next() });
    }

    async #unschedule(id: number): Promise<void> {
        await this.#scheduled.get(id)?.end[Symbol.asyncDispose]();
        this.#scheduled.delete(id);
    }
}

function columnsOf(input: PlanInput): Partial<PlanRow> {
    const { name, repositoryId, notifyOn, enabled, sources, excludes, tags, keep, schedule } = input;
    const given = {
        name,
        repositoryId,
        notifyOn,
        enabled,
        sources: sources === undefined ? undefined : JSON.stringify(sources),
        excludes: excludes === undefined ? undefined : JSON.stringify(excludes),
        tags: tags === undefined ? undefined : JSON.stringify(tags),
        keep: keep === undefined ? undefined : JSON.stringify(keep),
        schedule: schedule === undefined ? undefined : schedule === null ? null : JSON.stringify(schedule)
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
        schedule: row.schedule === null ? null : (JSON.parse(row.schedule) as Schedule),
        keep: JSON.parse(row.keep) as Keep
    };
}
