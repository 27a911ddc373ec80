/** Runs: how they ended, what they print, and stopping one. */
import { type Actor, errors, joi, type Reply, reply, type StreamEvent } from '@portico/sdk';

import { type KeptOutput, type OutputPart, partAt, textOf } from '../runs/output.ts';
import type { Runs } from '../runs/runs.ts';
import type { Ctx } from '../settings.ts';
import { findRuns, OutputEntity, RunEntity, type RunRow } from '../entities.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { runSchema, type RunView, runView, seesAll, wholeRunSchema, type WholeRunView } from './views.ts';
import { idOf, idParams, pageOf, paging } from './paging.ts';

const filters = {
    ...paging(50),
    state: joi.valid('queued', 'running', 'succeeded', 'failed', 'timeout', 'stopped', 'skipped'),
    trigger: joi.valid('schedule', 'manual', 'retry', 'missed'),
    from: joi.string().isoDate(),
    to: joi.string().isoDate()
};
type Filters = {
    readonly limit: number;
    readonly cursor?: string | undefined;
    readonly state?: string | undefined;
    readonly trigger?: string | undefined;
    readonly from?: string | undefined;
    readonly to?: string | undefined;
};

export function runRoutes(ctx: Ctx, tasks: Tasks, runs: Runs): void {
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}/runs',
        id: 'taskRuns',
        access: 'read',
        summary: 'Runs of a task',
        returns: joi.array().items(runSchema),
        validate: { params: idParams, query: joi.object(filters) },
        description: 'Newest first; `from` and `to` bound when they were made.',
        async handler({ params, query, actor }) {
            await tasks.get(params.id);
            return list(ctx, query as Filters, params.id, actor);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/runs',
        id: 'runs',
        access: 'read',
        summary: 'Runs of all tasks',
        returns: joi.array().items(runSchema),
        description: 'Newest first; `from` and `to` bound when they were made.',
        validate: { query: joi.object({ ...filters, taskId: joi.number().integer().min(1) }) },
        handler: ({ query, actor }) =>
            list(ctx, query as Filters, (query as { taskId?: number }).taskId ?? null, actor)
    });
    ctx.route({
        method: 'GET',
        path: '/runs/{id}',
        id: 'run',
        access: 'read',
        summary: 'One run',
        returns: wholeRunSchema,
        validate: { params: idParams },
        handler: async ({ params, actor }) => whole(ctx, runs, await findRun(ctx, params.id), actor)
    });
    ctx.route({
        method: 'DELETE',
        path: '/runs/{id}',
        id: 'stopRun',
        access: 'run',
        summary: 'Stop a run',
        returns: wholeRunSchema,
        audit: { action: 'stop', resource: 'run' },
        validate: { params: idParams },
        description:
            'Its processes are asked to end, and made to after 2 seconds; the answer is the run after that. One that is over stays as it is.',
        async handler({ params, actor, audit }) {
            audit({ resourceId: params.id });
            await runs.stop(params.id);
            return whole(ctx, runs, await findRun(ctx, params.id), actor);
        }
    });
    ctx.stream({
        path: '/runs/{id}/output',
        id: 'output',
        access: 'output',
        summary: 'What a run prints, as it comes',
        validate: { params: idParams },
        description:
            'Events `output` with `{ text }`, whose id is how many bytes came so far; `{ leftOut }` says how many bytes were not kept before it. At the end `end` with the run. `Last-Event-ID` continues.',
        async handler({ params, lastEventId, signal, actor }) {
            await findRun(ctx, params.id);
            return watch(
                ctx,
                runs,
                params.id,
                lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : 0,
                signal,
                actor
            );
        }
    });
}

/** 202 with a run that was just made. */
export async function startedRun(
    ctx: Ctx,
    runs: Runs,
    run: RunRow,
    actor: Actor
): Promise<Reply<WholeRunView>> {
    return reply.accepted(await whole(ctx, runs, run, actor), {
        headers: { location: `/api/plugins/${ctx.name}/runs/${run.id}` },
        version: run.version
    });
}

async function list(
    ctx: Ctx,
    { limit, cursor, state, trigger, from, to }: Filters,
    taskId: number | null,
    actor: Actor
): Promise<Reply<RunView[]>> {
    const before = idOf(cursor);
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
    const { rows, total } = await ctx.db.read(async (em) => ({
        rows: await findRuns(
            em,
            { ...where, ...(before === null ? {} : { id: { $lt: before } }) },
            { newestFirst: true, limit: limit + 1 }
        ),
        total: await em.count(RunEntity, where as object)
    }));
    const page = pageOf(rows, limit, ({ id }) => id);
    return reply.list(
        page.rows.map((run) => runView(run, seesAll(actor))),
        { total, next: page.next }
    );
}

async function findRun(ctx: Ctx, id: number): Promise<RunRow> {
    const [run] = await ctx.db.read((em) => findRuns(em, { id }));
    if (run === undefined) {
        throw errors.notFound('There is no run of that id');
    }
    return run;
}

async function whole(ctx: Ctx, runs: Runs, run: RunRow, actor: Actor): Promise<WholeRunView> {
    if (!seesAll(actor)) {
        return runView(run, false);
    }
    const { text, truncated } = textOf(runs.outputOf(run.id)?.kept() ?? (await kept(ctx, run.id)));
    return { ...runView(run, true), output: text, truncated };
}

async function kept(ctx: Ctx, runId: number): Promise<KeptOutput> {
    return (
        (await ctx.db.read((em) => em.findOne(OutputEntity, { runId }))) ?? { head: '', tail: '', total: 0 }
    );
}

async function* watch(
    ctx: Ctx,
    runs: Runs,
    id: number,
    offset: number,
    signal: AbortSignal,
    actor: Actor
): AsyncGenerator<StreamEvent> {
    let at = offset;
    const left = new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => resolve(), { once: true })
    );
    for (;;) {
        // Asked for before the look: what happens in between is not missed. A run that waits has no output yet, and that of one which is over is in the database.
        const { moved } = runs;
        const run = await findRun(ctx, id);
        const output = runs.outputOf(id);
        if (output !== null) {
            for await (const part of output.from(at, signal)) {
                at = part.end;
                yield event(part);
            }
        } else if (run.finishedAt === null) {
            await Promise.race([moved, left]);
        } else {
            const rest = await kept(ctx, id);
            for (let part = partAt(rest, at); part !== null; part = partAt(rest, at)) {
                at = part.end;
                yield event(part);
            }
            yield { event: 'end', id: String(Math.max(at, rest.total)), data: runView(run, seesAll(actor)) };
            return;
        }
        if (signal.aborted) {
            return;
        }
    }
}

function event({ text, end, leftOut }: OutputPart): StreamEvent {
    return { event: 'output', id: String(end), data: leftOut > 0 ? { text, leftOut } : { text } };
}
