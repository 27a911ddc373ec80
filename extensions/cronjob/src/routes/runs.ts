/** Routes of runs: their history, their output, and stopping one. */
import {
    type Actor,
    errors,
    type EventOf,
    joi,
    type PageQuery,
    pages,
    type Reply,
    reply
} from '@portico/sdk';

import { OutputEntity, RunEntity, type RunRow } from '../entities.ts';
import { findRuns } from '../queries.ts';
import { type KeptOutput, type OutputPart, partAt, textOf } from '../runs/output/output.ts';
import type { Runs } from '../runs/runs.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { idParams } from './id-params.ts';
import {
    runSchema,
    type RunView,
    runView,
    triggerWords,
    wholeRunSchema,
    type WholeRunView
} from './views/run-views.ts';
import { canSeeOutput } from './views/views.ts';

const filters = {
    ...pages.query(),
    state: joi
        .valid('queued', 'running', 'succeeded', 'failed', 'timeout', 'stopped', 'skipped')
        .label('State'),
    trigger: joi.choice(triggerWords).label('Started by'),
    from: joi.string().isoDate().label('Created from'),
    to: joi.string().isoDate().label('Created until')
};
interface Filters extends PageQuery {
    readonly state?: string | undefined;
    readonly trigger?: string | undefined;
    readonly from?: string | undefined;
    readonly to?: string | undefined;
}

const outputEvents = {
    output: joi.object({
        text: joi.string().allow('').required().label('Output'),
        leftOut: joi.number().integer().label('Left out').unit('byte')
    }),
    end: runSchema
};

/** Registers the routes below `/runs`, and the runs of one task. */
export function registerRunRoutes(ctx: Ctx, { runs, tasks }: Services): void {
    registerHistory(ctx, tasks);
    registerRun(ctx, runs);
    registerOutputStream(ctx, runs);
}

function registerHistory(ctx: Ctx, tasks: Tasks): void {
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}/runs',
        id: 'taskRuns',
        access: 'read',
        summary: 'Runs of a task',
        ui: { title: 'Runs', empty: 'Nothing ran yet' },
        returns: joi.array().items(runSchema),
        validate: { params: idParams, query: joi.object(filters) },
        description: 'Newest first; `from` and `to` bound when they were created.',
        async handler({ params, query, actor }) {
            await tasks.get(params.id);
            return list(ctx, query, params.id, actor);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/runs',
        id: 'runs',
        access: 'read',
        summary: 'Runs of all tasks',
        ui: { title: 'Runs', order: 2, empty: 'Nothing ran yet' },
        returns: joi.array().items(runSchema),
        description: 'Newest first; `from` and `to` bound when they were created.',
        validate: {
            query: joi.object({
                ...filters,
                taskId: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Task')
                    .meta({ ui: { ref: 'cronjob.tasks' } })
            })
        },
        handler: ({ query, actor }) => list(ctx, query, query.taskId ?? null, actor)
    });
}

function registerRun(ctx: Ctx, runs: Runs): void {
    ctx.route({
        method: 'GET',
        path: '/runs/{id}',
        id: 'run',
        access: 'read',
        summary: 'One run',
        returns: wholeRunSchema,
        validate: { params: idParams },
        handler: async ({ params, actor }) => wholeView(ctx, runs, await getRun(ctx, params.id), actor)
    });
    ctx.route({
        method: 'DELETE',
        path: '/runs/{id}',
        id: 'stopRun',
        access: 'run',
        summary: 'Stop a run',
        answers: 'done',
        ui: { title: 'Stop', role: 'action', confirm: 'Stop this run?' },
        returns: wholeRunSchema,
        audit: { action: 'stop', resource: 'run' },
        validate: { params: idParams },
        description:
            'Its processes are asked to end, and killed after 2 seconds; the answer is the run after that. A finished run stays as it is.',
        async handler({ params, actor, audit }) {
            audit({ resourceId: params.id });
            await runs.stop(params.id);
            return wholeView(ctx, runs, await getRun(ctx, params.id), actor);
        }
    });
}

function registerOutputStream(ctx: Ctx, runs: Runs): void {
    ctx.stream({
        path: '/runs/{id}/output',
        id: 'output',
        access: 'output',
        summary: 'What a run prints, as it comes',
        validate: { params: idParams },
        ui: { title: 'Output', role: 'log' },
        events: outputEvents,
        description:
            'Events `output` with `{ text }`, whose id is how many bytes came so far; `{ leftOut }` says how many bytes were not kept before it. At the end `end` with the run. `Last-Event-ID` continues.',
        async handler({ params, lastEventId, signal, actor }) {
            await getRun(ctx, params.id);
            const offset = lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : 0;
            return watch(ctx, runs, params.id, offset, signal, actor);
        }
    });
}

/** Answers 202 with a run that was just created. */
export async function acceptedRun(
    ctx: Ctx,
    runs: Runs,
    run: RunRow,
    actor: Actor
): Promise<Reply<WholeRunView>> {
    return reply.accepted(await wholeView(ctx, runs, run, actor), {
        headers: { location: `/api/plugins/${ctx.name}/runs/${run.id}` },
        version: run.version
    });
}

async function list(
    ctx: Ctx,
    { state, trigger, from, to, ...query }: Filters,
    taskId: number | null,
    actor: Actor
): Promise<Reply<RunView[]>> {
    const before = pages.afterNumber(query);
    const created = {
        ...(from === undefined ? {} : { $gte: Date.parse(from) }),
        ...(to === undefined ? {} : { $lte: Date.parse(to) })
    };
    const where = {
        ...(taskId === null ? {} : { taskId }),
        ...(state === undefined ? {} : { state }),
        ...(trigger === undefined ? {} : { trigger }),
        ...(Object.keys(created).length === 0 ? {} : { createdAt: created })
    };
    const found = await ctx.db.read(async (em) => ({
        rows: await findRuns(
            em,
            { ...where, ...(before === null ? {} : { id: { $lt: before } }) },
            { newestFirst: true, limit: query.limit + 1 }
        ),
        total: await em.count(RunEntity, where as object)
    }));
    const { rows, page } = pages.read(found.rows, query.limit, ({ id }) => id, found.total);
    return reply.list(
        rows.map((run) => runView(run, canSeeOutput(actor))),
        page
    );
}

/** @throws NOT_FOUND 40400 */
async function getRun(ctx: Ctx, id: number): Promise<RunRow> {
    const [run] = await ctx.db.read((em) => findRuns(em, { id }));
    if (run === undefined) {
        throw errors.notFound('There is no run of that id');
    }
    return run;
}

/** A run with its output, for an actor who may see that. */
async function wholeView(ctx: Ctx, runs: Runs, run: RunRow, actor: Actor): Promise<WholeRunView> {
    if (!canSeeOutput(actor)) {
        return runView(run, false);
    }
    const { text, truncated } = textOf(runs.outputOf(run.id)?.kept() ?? (await storedOutput(ctx, run.id)));
    return { ...runView(run, true), output: text, truncated };
}

/** The output in the database; empty for a run that printed nothing. */
async function storedOutput(ctx: Ctx, runId: number): Promise<KeptOutput> {
    return (
        (await ctx.db.read((em) => em.findOne(OutputEntity, { runId }))) ?? { head: '', tail: '', total: 0 }
    );
}

/** Yields the events of a run's output from `offset` on, until the run has ended or `signal` aborts. */
async function* watch(
    ctx: Ctx,
    runs: Runs,
    id: number,
    offset: number,
    signal: AbortSignal,
    actor: Actor
): AsyncGenerator<EventOf<typeof outputEvents>> {
    let at = offset;
    const aborted = new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => resolve(), { once: true })
    );
    for (;;) {
        // Taken before the run is read, so that no change in between is missed.
        const { change } = runs;
        const run = await getRun(ctx, id);
        const output = runs.outputOf(id);
        if (output !== null) {
            for await (const part of output.from(at, signal)) {
                at = part.end;
                yield outputEvent(part);
            }
        } else if (run.finishedAt === null) {
            await Promise.race([change, aborted]);
        } else {
            const stored = await storedOutput(ctx, id);
            for (let part = partAt(stored, at); part !== null; part = partAt(stored, at)) {
                at = part.end;
                yield outputEvent(part);
            }
            yield {
                event: 'end',
                id: String(Math.max(at, stored.total)),
                data: runView(run, canSeeOutput(actor))
            };
            return;
        }
        if (signal.aborted) {
            return;
        }
    }
}

function outputEvent({ text, end, leftOut }: OutputPart): EventOf<typeof outputEvents> {
    return { event: 'output', id: String(end), data: leftOut > 0 ? { text, leftOut } : { text } };
}
