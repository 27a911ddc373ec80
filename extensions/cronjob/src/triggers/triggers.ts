/** Triggers: addresses by which a caller without an account, such as a build elsewhere, starts a task with the trigger's secret. */
import { randomBytes } from 'node:crypto';

import { errors, isWebhookProven, MinuteLimit, newWebhookSecret, type WebhookHeaders } from '@portico/sdk';

import { TriggerEntity, type TriggerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Runs } from '../runs/runs.ts';
import type { Ctx } from '../settings.ts';

/** What the triggers need. */
export interface TriggersOptions {
    readonly ctx: Ctx;
    readonly runs: Runs;
    now(): number;
}

/** A call of a trigger as it came. */
export interface TriggerCall {
    readonly headers: WebhookHeaders;
    readonly body: Buffer;
}

const idBytes = 16;
const mostOfTask = 50;
/** Headers that may bring the secret itself. */
const tokens = ['x-trigger-token', 'x-gitlab-token'];
/** What one delivery is known by, so that a copy of it starts nothing. */
const remembered = 10_000;

/** Makes triggers, and takes their calls. */
export class Triggers {
    readonly #options: TriggersOptions;
    /** The proven calls, by trigger. */
    readonly #calls = new MinuteLimit();
    /** Ids of signed deliveries that were taken, with their runs; the oldest first. */
    readonly #deliveries = new Map<string, number>();
    /** Compared with where there is no trigger of that id, so that both take the same work. */
    readonly #decoy: Promise<string>;

    constructor(options: TriggersOptions) {
        this.#options = options;
        this.#decoy = options.ctx.secrets.seal(newWebhookSecret());
        this.#decoy.catch(() => undefined);
    }

    /** The triggers of a task, oldest first. */
    list(taskId: number): Promise<readonly TriggerRow[]> {
        return this.#options.ctx.db.read(async (em) => {
            const found = await em.find(
                TriggerEntity,
                { taskId },
                { orderBy: { createdAt: 'asc', id: 'asc' } }
            );
            return found.map((each) => ({ ...each, lastUsedAt: each.lastUsedAt ?? null }));
        });
    }

    /** Makes one; its secret is never read again. @throws VALIDATION_FAILED 40001 where the task has 50 */
    async create(
        taskId: number,
        name: string
    ): Promise<{ readonly trigger: TriggerRow; readonly secret: string }> {
        const { ctx, now } = this.#options;
        const secret = newWebhookSecret();
        const trigger: TriggerRow = {
            id: randomBytes(idBytes).toString('hex'),
            taskId,
            name,
            secret: await ctx.secrets.seal(secret),
            createdAt: now(),
            lastUsedAt: null
        };
        await ctx.db.write(async (em) => {
            if ((await em.count(TriggerEntity, { taskId })) >= mostOfTask) {
                throw errors.invalid([
                    { path: 'name', message: `A task has at most ${mostOfTask} triggers` }
                ]);
            }
            await em.insert(TriggerEntity, trigger);
        });
        return { trigger, secret };
    }

    /** Removes one. @throws NOT_FOUND 40400 */
    async remove(id: string): Promise<Pick<TriggerRow, 'taskId' | 'name'>> {
        return this.#options.ctx.db.write(async (em) => {
            const trigger = await em.findOne(TriggerEntity, { id });
            if (trigger === null) {
                throw errors.notFound('There is no trigger of that id');
            }
            await em.nativeDelete(TriggerEntity, { id });
            return trigger;
        });
    }

    /**
     * Starts the task of a trigger; a delivery that comes again gets the run of the first.
     * @throws TRIGGER_REFUSED 40150, alike for an unknown id and for a wrong proof; TOO_MANY_TRIGGERS 42950; VALIDATION_FAILED 40001
     */
    async take(id: string, { headers, body }: TriggerCall): Promise<number> {
        const { ctx, runs, now } = this.#options;
        const trigger = await ctx.db.read((em) => em.findOne(TriggerEntity, { id }));
        const secret = await ctx.secrets.open(trigger?.secret ?? (await this.#decoy));
        if (!isWebhookProven(headers, body, secret, { now: now(), tokens }) || trigger === null) {
            throw fail.TRIGGER_REFUSED();
        }
        const delivery = deliveryOf(id, headers);
        const earlier = delivery === null ? undefined : this.#deliveries.get(delivery);
        if (earlier !== undefined) {
            return earlier;
        }
        this.#count(id);
        const values = parametersIn(body);
        await ctx.db.write((em) => em.nativeUpdate(TriggerEntity, { id }, { lastUsedAt: now() }));
        const run = await runs.start(trigger.taskId, { trigger: 'token', askedBy: trigger.name, values });
        if (delivery !== null) {
            this.#remember(delivery, run.id);
        }
        return run.id;
    }

    /** @throws TOO_MANY_TRIGGERS 42950 */
    #count(id: string): void {
        const { ctx, now } = this.#options;
        const retryAfter = this.#calls.take(id, ctx.settings.triggersPerMinute, now());
        if (retryAfter > 0) {
            throw fail.TOO_MANY_TRIGGERS({ retryAfter, retryAfterSeconds: retryAfter });
        }
    }

    #remember(delivery: string, runId: number): void {
        this.#deliveries.set(delivery, runId);
        for (const oldest of this.#deliveries.keys()) {
            if (this.#deliveries.size <= remembered) {
                break;
            }
            this.#deliveries.delete(oldest);
        }
    }
}

/** The signed id of a delivery of Standard Webhooks; null of other proofs, which sign none. */
function deliveryOf(trigger: string, headers: WebhookHeaders): string | null {
    const isPlain = ['x-trigger-token', 'x-gitlab-token', 'x-hub-signature-256'].some(
        (name) => headers[name] !== undefined
    );
    const id = headers['webhook-id'];
    return isPlain || id === undefined ? null : `${trigger} ${id}`;
}

/** @throws VALIDATION_FAILED 40001 */
function parametersIn(body: Buffer): Readonly<Record<string, unknown>> {
    if (body.length === 0) {
        return {};
    }
    try {
        const { parameters = {} } = JSON.parse(body.toString()) as { readonly parameters?: unknown };
        if (typeof parameters === 'object' && parameters !== null && !Array.isArray(parameters)) {
            return parameters as Readonly<Record<string, unknown>>;
        }
    } catch {
        // Answered as any other body that cannot be read.
    }
    throw errors.invalid([
        {
            path: 'parameters',
            message: 'The body is JSON, and parameters in it an object of names and values'
        }
    ]);
}
