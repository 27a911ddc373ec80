/** What is in a backup, and what is in none. */
import type { Drills, Proof } from '../drills/drills.ts';
import type { RunState } from '../entities.ts';
import type { Plan, Plans } from '../plans/plans.ts';
import { findRuns } from '../queries.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { connectionIn } from '../repositories/stored.ts';
import { type Offer, panelName, type Sources } from '../runs/sources.ts';
import type { Ctx } from '../settings.ts';

/** Why something is not covered. */
export type GapReason =
    'no-plan' | 'never-run' | 'failed' | 'stale' | 'not-offered' | 'same-machine' | 'no-drill';

/** What is asked about. */
export interface Subject {
    readonly kind: 'panel' | 'plugin' | 'item' | 'folder' | 'plan' | 'repository';
    readonly name: string;
}

/** Which subjects of this machine a plan covers, and which it does not and why. */
export interface CoverageReport {
    /** Age of the oldest newest success of what is covered; null when nothing is. */
    readonly worstAgeSeconds: number | null;
    readonly covered: readonly (Subject & { readonly planId: number; readonly lastSuccessAt: string })[];
    readonly uncovered: readonly (Subject & { readonly reason: GapReason })[];
}

type Judgement = CoverageReport['covered'][number] | CoverageReport['uncovered'][number];

interface State {
    readonly plan: Plan;
    readonly lastRun: RunState | null;
    readonly proof: Proof | undefined;
}

const hourMs = 60 * 60_000;
/** A drill that is older proves little. */
const drillMs = 90 * 24 * hourMs;

/** Makes the report on what is covered. */
export class Coverage {
    readonly #ctx: Ctx;
    readonly #repositories: Repositories;
    readonly #plans: Plans;
    readonly #sources: Sources;
    readonly #drills: Drills;

    constructor(ctx: Ctx, repositories: Repositories, plans: Plans, sources: Sources, drills: Drills) {
        this.#ctx = ctx;
        this.#repositories = repositories;
        this.#plans = plans;
        this.#sources = sources;
        this.#drills = drills;
    }

    async report(): Promise<CoverageReport> {
        const [states, offers, folders] = [
            await this.#states(),
            await this.#sources.list(),
            await this.#folders()
        ];
        const found = [
            this.#judge({ kind: 'panel', name: panelName }, states, ({ type }) => type === 'panel'),
            ...offers
                .filter(({ plugin }) => plugin !== panelName)
                .flatMap((offer) => this.#offer(offer, states)),
            ...folders.map((name) =>
                this.#judge(
                    { kind: 'folder', name },
                    states,
                    ({ type, path }) => type === 'folder' && `${name}/`.startsWith(`${path}/`)
                )
            )
        ];
        const covered = found.filter((each) => 'planId' in each);
        const ages = covered.map(({ lastSuccessAt }) => Date.now() - Date.parse(lastSuccessAt));
        return {
            worstAgeSeconds: ages.length === 0 ? null : Math.max(0, Math.round(Math.max(...ages) / 1_000)),
            covered,
            uncovered: [
                ...found.filter((each) => 'reason' in each),
                ...states.flatMap((state) => this.#planGaps(state)),
                ...notOffered(states, offers),
                ...(await this.#nearRepositories(states))
            ]
        };
    }

    async #states(): Promise<readonly State[]> {
        const proofs = await this.#drills.lastProofs();
        return Promise.all(
            (await this.#plans.list())
                .filter(({ enabled }) => enabled)
                .map(async (plan) => {
                    const [last] = await this.#ctx.db.read((em) =>
                        findRuns(em, { planId: plan.id, dryRun: false, finishedAt: { $ne: null } }, 1)
                    );
                    return { plan, lastRun: last?.state ?? null, proof: proofs.get(plan.id) };
                })
        );
    }

    #offer({ plugin, ok, items }: Offer, states: readonly State[]): Judgement[] {
        if (!ok) {
            return [{ kind: 'plugin', name: plugin, reason: 'failed' }];
        }
        return items.map(({ name }) =>
            this.#judge(
                { kind: 'item', name: `${plugin}: ${name}` },
                states,
                (source) =>
                    source.type === 'plugin' &&
                    source.plugin === plugin &&
                    (source.items?.includes(name) ?? true)
            )
        );
    }

    /** The best that any plan says of a subject. */
    #judge(
        subject: Subject,
        states: readonly State[],
        holds: (source: Plan['sources'][number]) => boolean
    ): Judgement {
        const plans = states.filter(({ plan }) => plan.sources.some(holds));
        const good = plans
            .filter((state) => this.#gapOf(state) === null)
            .toSorted((one, two) => (two.plan.lastSuccessAt ?? 0) - (one.plan.lastSuccessAt ?? 0));
        const [best] = good;
        if (best !== undefined) {
            const lastSuccessAt = new Date(best.plan.lastSuccessAt ?? 0).toISOString();
            return { ...subject, planId: best.plan.id, lastSuccessAt };
        }
        const [first] = plans;
        return { ...subject, reason: first === undefined ? 'no-plan' : (this.#gapOf(first) ?? 'failed') };
    }

    #gapOf({ plan, lastRun }: State): 'never-run' | 'failed' | 'stale' | null {
        if (plan.lastSuccessAt === null) {
            return lastRun === null ? 'never-run' : 'failed';
        }
        if (plan.lastSuccessAt < Date.now() - this.#ctx.settings.staleHours * hourMs) {
            return 'stale';
        }
        return lastRun === 'failed' || lastRun === 'incomplete' ? 'failed' : null;
    }

    #planGaps(state: State): CoverageReport['uncovered'] {
        const { plan, proof } = state;
        const gap = this.#gapOf(state);
        const isProven = proof?.ok === true && Date.parse(proof.at) > Date.now() - drillMs;
        const subject = { kind: 'plan' as const, name: plan.name };
        return [
            ...(gap === null ? [] : [{ ...subject, reason: gap }]),
            ...(isProven ? [] : [{ ...subject, reason: 'no-drill' as const }])
        ];
    }

    /** Folders of this machine that hold the only copy of a plan. */
    async #nearRepositories(states: readonly State[]): Promise<CoverageReport['uncovered']> {
        const rows = await this.#repositories.list();
        const isNear = (id: number): boolean =>
            rows.some((row) => row.id === id && connectionIn(row).type === 'local');
        return rows
            .filter(({ id }) =>
                states.some(
                    ({ plan }) =>
                        [plan.repositoryId, ...plan.copyTo].includes(id) &&
                        [plan.repositoryId, ...plan.copyTo].every(isNear)
                )
            )
            .map(({ name }) => ({ kind: 'repository', name, reason: 'same-machine' }));
    }

    /** Folders that hosts serve. */
    async #folders(): Promise<readonly string[]> {
        const hosts = await this.#ctx.hosts.list();
        const roots = hosts.flatMap((host) => rootsIn(host));
        return [...new Set(roots.map((root) => root.replace(/(.)\/+$/, '$1')))].toSorted();
    }
}

/** Items and plugins that plans name and that nothing offers. */
function notOffered(states: readonly State[], offers: readonly Offer[]): CoverageReport['uncovered'] {
    return states.flatMap(({ plan }) =>
        plan.sources.flatMap(({ type, plugin, items = [] }): CoverageReport['uncovered'] => {
            const offer = offers.find((each) => each.plugin === plugin);
            if (type !== 'plugin' || offer?.ok === false) {
                return [];
            }
            return offer === undefined
                ? [{ kind: 'plugin', name: plugin ?? '', reason: 'not-offered' }]
                : items
                      .filter((name) => !offer.items.some((each) => each.name === name))
                      .map((name) => ({ kind: 'item', name: `${plugin}: ${name}`, reason: 'not-offered' }));
        })
    );
}

/** Every absolute folder that a host names as a root, also in its locations. */
function rootsIn(value: unknown): readonly string[] {
    if (typeof value !== 'object' || value === null) {
        return [];
    }
    return Object.entries(value).flatMap(([key, each]) =>
        key === 'root' && typeof each === 'string' && each.startsWith('/') ? [each] : rootsIn(each)
    );
}
