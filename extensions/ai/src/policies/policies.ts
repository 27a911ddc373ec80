/** Policies: what happens when a notification comes. They suggest, ask their owner, or act under the owner's mandate. */
import { type Approvals, argumentsOf, type ToolArguments } from '@portico/agents';
import { type Actor, errors, type Hooks, isFailure, requireVersion, type RouteInfo } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import type { Changes } from '../changes/changes.ts';
import { PolicyEntity, type PolicyRow, PolicyRunEntity, type PolicyRunRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { patternOf } from './pattern.ts';

/** The call that a policy is about. */
export interface PolicyAction extends ToolArguments {
    readonly route: string;
}

/** What a policy is made of. */
export type PolicyInput = Pick<
    PolicyRow,
    'name' | 'event' | 'severity' | 'text' | 'cooldownSeconds' | 'perDay' | 'enabled'
> & {
    readonly mode: 'suggest' | 'ask';
    readonly action: PolicyAction;
};

interface PoliciesOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly approvals: Approvals;
    readonly changes: Changes;
}

type Raised = Hooks['notification.raised']['payload'];

const dayMs = 86_400_000;
/** Runs that are kept of each policy. */
const mostRuns = 500;
/** How long a run that asks waits for its owner to look. */
const askMs = 2 * dayMs;

/** Keeps policies, and does what they say. */
export class Policies {
    readonly #options: PoliciesOptions;

    constructor(options: PoliciesOptions) {
        this.#options = options;
    }

    /** All, newest first. */
    async list(): Promise<PolicyRow[]> {
        return this.#options.ctx.db.read((em) => findRows(em, PolicyEntity, {}, { orderBy: { id: 'desc' } }));
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<PolicyRow> {
        const row = await this.#options.ctx.db.read((em) => findRow(em, PolicyEntity, { id }));
        if (row === null) {
            throw errors.notFound('There is no such policy');
        }
        return row;
    }

    /** @throws VALIDATION_FAILED 40001 for a route that the owner cannot call by a tool */
    async create(actor: Actor, { action, ...fields }: PolicyInput): Promise<PolicyRow> {
        await this.#routeOf(actor, action.route);
        const { ctx } = this.#options;
        const sealed = await ctx.secrets.seal(JSON.stringify(action));
        return ctx.db.write(async (em) => {
            const row = em.create(PolicyEntity, {
                ...fields,
                version: 1,
                action: sealed,
                route: action.route,
                mandateId: null,
                userId: actor.id ?? 0,
                username: actor.username ?? ''
            });
            await em.flush();
            return row as PolicyRow;
        });
    }

    /** Any change but of its name and switch takes the right to act back: it was given for the policy as it was. */
    async update(
        actor: Actor,
        id: number,
        { action, ...change }: Partial<PolicyInput>,
        seen: number | string | null
    ): Promise<PolicyRow> {
        const { ctx } = this.#options;
        const before = await this.get(id);
        requireVersion(before, seen);
        if (action !== undefined) {
            await this.#routeOf(actor, action.route);
        }
        const set = Object.entries(change).filter(([, value]) => value !== undefined);
        const isOther = action !== undefined || set.some(([key]) => key !== 'name' && key !== 'enabled');
        if (isOther && before.mandateId !== null) {
            await ctx.mandates.end(before.mandateId);
        }
        const sealed =
            action === undefined
                ? {}
                : { action: await ctx.secrets.seal(JSON.stringify(action)), route: action.route };
        await ctx.db.write((em) =>
            em.nativeUpdate(
                PolicyEntity,
                { id },
                {
                    ...(isOther && before.mode === 'auto' ? { mode: 'ask' as const } : {}),
                    ...Object.fromEntries(set),
                    ...sealed,
                    // Who changes it is asked from then on.
                    ...(isOther
                        ? { mandateId: null, userId: actor.id ?? 0, username: actor.username ?? '' }
                        : {}),
                    version: before.version + 1
                }
            )
        );
        return this.get(id);
    }

    /** Ends its mandate with it. @throws NOT_FOUND 40400 */
    async remove(id: number): Promise<PolicyRow> {
        const row = await this.get(id);
        await this.#options.ctx.db.write((em) => em.nativeDelete(PolicyEntity, { id }));
        if (row.mandateId !== null) {
            await this.#options.ctx.mandates.end(row.mandateId);
        }
        return row;
    }

    /**
     * Lets a policy act by itself, with the rights of the actor.
     *
     * @throws VALIDATION_FAILED 40001 for what removes something or is dangerous; FORBIDDEN 40300 for an API token
     */
    async authorize(actor: Actor, id: number): Promise<PolicyRow> {
        const { ctx } = this.#options;
        const before = await this.get(id);
        const info = await this.#routeOf(actor, before.route);
        if (info.effect === 'destructive' || info.dangerous) {
            throw errors.invalid([
                {
                    path: 'action.route',
                    message: 'What removes something or is dangerous never runs by itself'
                }
            ]);
        }
        const { id: mandateId } = await ctx.mandates.give(actor, {
            title: `Policy ${before.name}`.slice(0, 100),
            routes: [before.route]
        });
        await ctx.db.write((em) =>
            em.nativeUpdate(
                PolicyEntity,
                { id },
                {
                    mode: 'auto',
                    mandateId,
                    userId: actor.id ?? 0,
                    username: actor.username ?? '',
                    version: before.version + 1
                }
            )
        );
        if (before.mandateId !== null) {
            await ctx.mandates.end(before.mandateId);
        }
        return this.get(id);
    }

    /** A page of what a policy did, newest first. */
    async runs(
        id: number,
        { before, limit }: { before: number | null; limit: number }
    ): Promise<PolicyRunRow[]> {
        const where = { policyId: id, ...(before === null ? {} : { id: { $lt: before } }) };
        return this.#options.ctx.db.read((em) =>
            findRows(em, PolicyRunEntity, where, {
                orderBy: { id: 'desc' },
                limit: limit + 1
            })
        );
    }

    /** The action of a policy. */
    async actionOf(row: PolicyRow): Promise<PolicyAction> {
        return JSON.parse(await this.#options.ctx.secrets.open(row.action)) as PolicyAction;
    }

    /** Hears of a notification. */
    async see({ type, data }: Raised): Promise<void> {
        // What the assistant says itself must not set it off again.
        if (type.startsWith(`${this.#options.ctx.name}.`)) {
            return;
        }
        const said = `${data.title} ${data.text ?? ''}`.toLowerCase();
        for (const row of await this.list()) {
            const fits =
                row.enabled &&
                patternOf(row.event).test(type) &&
                (row.severity === null || row.severity === data.severity) &&
                (row.text === null || said.includes(row.text.toLowerCase()));
            if (fits) {
                await this.#run(row, type, data.title);
            }
        }
    }

    /** Makes approvals of what waits for this user: the plan is of now, and with the user's own rights. */
    async present(actor: Actor): Promise<void> {
        if (actor.kind !== 'user') {
            return;
        }
        const { ctx, machine, approvals } = this.#options;
        const waiting = await ctx.db.read((em) =>
            em.execute<{ run: number; policy: number }[]>(
                `select r.id as run, p.id as policy from policy_runs r join policies p on p.id = r.policy_id
                where p.user_id = ? and r.state = 'asked' and r.approval_id is null and r.at > ? order by r.id limit 20`,
                [actor.id ?? 0, machine.now() - askMs]
            )
        );
        for (const { run, policy } of waiting) {
            const { route, ...given } = await this.actionOf(await this.get(policy));
            const [info] = (await ctx.api.routes({ for: actor })).filter(({ id }) => id === route);
            if (info === undefined) {
                await this.#finish(run, { state: 'failed', code: 40_300 });
                continue;
            }
            const plan = await ctx.api.plan(actor, { id: route, ...given });
            if (plan.validated !== null && plan.validated.code !== 0) {
                await this.#finish(run, { state: 'failed', code: plan.validated.code });
                continue;
            }
            const row = await approvals.request(actor, {
                info,
                given,
                plan,
                scope: `policy:${policy}`,
                facts: { runId: run }
            });
            await this.#finish(run, { approvalId: row.id });
        }
    }

    /** An approval was decided: the run that asked for it says how it ended. */
    async decided(approvalId: number, code: number): Promise<void> {
        await this.#options.ctx.db.write((em) =>
            em.nativeUpdate(PolicyRunEntity, { approvalId }, { state: code === 0 ? 'done' : 'failed', code })
        );
    }

    async #run(row: PolicyRow, event: string, title: string): Promise<void> {
        const state = { suggest: 'suggested', ask: 'asked', auto: 'asked' } as const;
        const run = await this.#begin(row, { event, title, state: state[row.mode] });
        if (run.state === 'limited') {
            return;
        }
        if (row.mode === 'auto') {
            await this.#act(row, run);
        } else {
            await this.#tell(row, run);
        }
    }

    /** Writes the run down before anything is done, and in the same write whether it is within the limits. */
    async #begin(
        row: PolicyRow,
        run: Pick<PolicyRunRow, 'event' | 'title' | 'state'>
    ): Promise<PolicyRunRow> {
        const now = this.#options.machine.now();
        return this.#options.ctx.db.write(async (em) => {
            const since = async (ms: number): Promise<number> =>
                em.count(PolicyRunEntity, {
                    policyId: row.id,
                    state: { $ne: 'limited' },
                    at: { $gt: now - ms }
                });
            const isLimited =
                (await since(row.cooldownSeconds * 1_000)) > 0 || (await since(dayMs)) >= row.perDay;
            const made = em.create(PolicyRunEntity, {
                policyId: row.id,
                at: now,
                ...run,
                state: isLimited ? 'limited' : run.state,
                code: null,
                approvalId: null
            }) as PolicyRunRow;
            await em.flush();
            await em.execute(
                'delete from policy_runs where policy_id = ? and id not in (select id from policy_runs where policy_id = ? order by id desc limit ?)',
                [row.id, row.id, mostRuns]
            );
            return made;
        });
    }

    async #act(row: PolicyRow, run: PolicyRunRow): Promise<void> {
        const { ctx, changes } = this.#options;
        const { route, ...given } = await this.actionOf(row);
        let code = 50_300;
        try {
            if (row.mandateId !== null) {
                code = await ctx.mandates.use(row.mandateId, async (actor) => {
                    const [info] = (await ctx.api.routes({ for: actor })).filter(({ id }) => id === route);
                    if (info === undefined) {
                        return 40_300;
                    }
                    const plan = await ctx.api.plan(actor, { id: route, ...given });
                    return plan.validated !== null && plan.validated.code !== 0
                        ? plan.validated.code
                        : (
                              await changes.make(actor, {
                                  info,
                                  given,
                                  plan,
                                  conversationId: null,
                                  approvalId: null
                              })
                          ).code;
                });
            }
        } catch (error) {
            code = isFailure(error) ? error.code : 50_000;
            if (!isFailure(error)) {
                ctx.log.error('A policy failed', { policy: row.id, error: String(error) });
            }
        }
        await this.#finish(run.id, { state: code === 0 ? 'done' : 'failed', code });
        if (code === 40_103) {
            // The mandate is gone: from now on the owner is asked.
            await ctx.db.write((em) =>
                em.nativeUpdate(PolicyEntity, { id: row.id }, { mode: 'ask', mandateId: null })
            );
        }
        await ctx.notify({
            event: code === 0 ? 'policy-done' : 'policy-failed',
            severity: code === 0 ? 'info' : 'warning',
            title: `Policy ${row.name}: ${code === 0 ? 'done' : `failed with ${code}`}`.slice(0, 200),
            text: `${run.event}: ${run.title}. It called ${route}.`,
            data: { policyId: row.id, runId: run.id, code }
        });
    }

    async #tell(row: PolicyRow, run: PolicyRunRow): Promise<void> {
        const { route } = await this.actionOf(row);
        await this.#options.ctx.notify({
            event: run.state === 'asked' ? 'policy-asks' : 'policy-suggests',
            severity: 'info',
            title: `Policy ${row.name} ${run.state === 'asked' ? 'asks' : 'suggests'}: ${route}`.slice(
                0,
                200
            ),
            text: `${run.event}: ${run.title}`,
            data: { policyId: row.id, runId: run.id, username: row.username }
        });
    }

    async #finish(id: number, change: Partial<PolicyRunRow>): Promise<void> {
        await this.#options.ctx.db.write((em) => em.nativeUpdate(PolicyRunEntity, { id }, change));
    }

    /** The route of an action. @throws VALIDATION_FAILED 40001 */
    async #routeOf(actor: Actor, id: string): Promise<RouteInfo> {
        const routes = await this.#options.ctx.api.routes({ for: actor, tool: true });
        const info = routes.find((each) => each.id === id);
        if (info === undefined || info.kind !== 'json') {
            throw errors.invalid([
                { path: 'action.route', message: 'There is no such route that you may call by a policy' }
            ]);
        }
        return info;
    }
}

/** Reads the action of a request: parts without members count as absent. */
export function actionIn({ route, ...given }: { readonly route: string }): PolicyAction {
    return { route, ...argumentsOf(given) };
}
