/** Routes of tasks, and of running one by hand. */
import { type Actor, joi, pages, reply } from '@portico/sdk';

import type { TaskRow } from '../entities.ts';
import { valuesSchema } from '../parameters/schema.ts';
import type { Runs } from '../runs/runs.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { draftOfRow, kindOf } from '../tasks/draft.ts';
import { changedTask, newTask, tag, type TaskInput } from '../tasks/input/input.ts';
import type { Tasks, TaskWithRun } from '../tasks/tasks.ts';
import { idParams } from './id-params.ts';
import { acceptedRun } from './runs.ts';
import { wholeRunSchema } from './views/run-views.ts';
import { canSeeOutput, kindWords, taskSchema, type TaskView, taskView } from './views/views.ts';

/** Registers the routes below `/tasks`, except the runs of a task. */
export function registerTaskRoutes(ctx: Ctx, { tasks, runs }: Services): void {
    registerReads(ctx, tasks);
    registerCreation(ctx, tasks);
    registerChanges(ctx, tasks);
    registerAuthorization(ctx, tasks);
    registerRunNow(ctx, runs);
}

function registerReads(ctx: Ctx, tasks: Tasks): void {
    ctx.route({
        method: 'GET',
        path: '/tasks',
        id: 'tasks',
        access: 'read',
        summary: 'Scheduled tasks',
        ui: { title: 'Tasks', primary: true, order: 1, label: 'name', empty: 'No task yet' },
        returns: joi.array().items(taskSchema),
        description: 'In the order of ids. `q` is a part of the name.',
        validate: {
            query: joi.object({
                ...pages.query(100),
                q: joi.string().max(100).label('Name').description('A part of the name'),
                enabled: joi.boolean().label('Enabled'),
                tag: tag()
                    .label('Tag')
                    .meta({ ui: { ref: 'cronjob.tags' } }),
                kind: joi.choice(kindWords).label('Kind'),
                state: joi
                    .valid('running', 'succeeded', 'failed', 'timeout', 'stopped')
                    .label('State')
                    .description('Of the newest run that began')
            })
        },
        async handler({ query, actor }) {
            const { limit, cursor: _cursor, ...filter } = query;
            const found = await tasks.list(filter, { after: pages.afterNumber(query) ?? 0, limit });
            const { rows, page } = pages.read(found.rows, query.limit, ({ task }) => task.id, found.total);
            return reply.list(
                rows.map((row) => viewOf(row, actor)),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}',
        id: 'task',
        access: 'read',
        summary: 'One task',
        returns: taskSchema,
        validate: { params: idParams },
        handler: async ({ params, actor }) => viewOf(await tasks.get(params.id), actor)
    });
}

function registerCreation(ctx: Ctx, tasks: Tasks): void {
    ctx.route({
        method: 'POST',
        path: '/tasks',
        id: 'createTask',
        access: 'write',
        summary: 'Make a task',
        answers: 'made',
        ui: { title: 'New task', primary: true },
        stepUp: true,
        returns: taskSchema,
        audit: { action: 'create', resource: 'task' },
        validate: { payload: newTask },
        async handler({ payload, actor, audit }) {
            const found = await tasks.create(payload as TaskInput);
            audit({ resourceId: found.task.id, after: auditRecord(found.task) });
            return reply.created(`/api/plugins/${ctx.name}/tasks/${found.task.id}`, viewOf(found, actor));
        }
    });
}

function registerChanges(ctx: Ctx, tasks: Tasks): void {
    ctx.route({
        method: 'PUT',
        path: '/tasks/{id}',
        id: 'updateTask',
        access: 'write',
        summary: 'Change a task',
        answers: 'done',
        ui: { title: 'Change' },
        stepUp: true,
        returns: taskSchema,
        audit: { action: 'update', resource: 'task' },
        validate: { params: idParams, payload: changedTask },
        description:
            'What is not sent stays; null goes back to the default. What runs goes on as it was started.',
        async handler({ params, payload, actor, ifMatch, audit }) {
            audit({ resourceId: params.id });
            const { before, after } = await tasks.update(params.id, payload as TaskInput, ifMatch);
            audit({ before: auditRecord(before.task), after: auditRecord(after.task, before.task) });
            return viewOf(after, actor);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/tasks/{id}',
        id: 'removeTask',
        access: 'write',
        summary: 'Remove a task',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this task and its runs?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'task' },
        validate: { params: idParams },
        description: 'What runs of it is ended, and its runs go with it.',
        async handler({ params, ifMatch, audit }) {
            const { task } = await tasks.remove(params.id, ifMatch);
            audit({ resourceId: params.id, before: auditRecord(task) });
            return null;
        }
    });
}

function registerAuthorization(ctx: Ctx, tasks: Tasks): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/{id}/authorize',
        id: 'authorizeTask',
        access: 'write',
        summary: 'Let a task call its route in your name',
        description:
            'Never more than you may do yourself. You revoke it among your API tokens; it ends with the task, and with a change of its route.',
        answers: 'done',
        ui: { title: 'Authorize', role: 'action', confirm: 'Let this task act in your name?' },
        stepUp: true,
        returns: taskSchema,
        audit: { action: 'authorize', resource: 'task' },
        validate: { params: idParams },
        async handler({ params, actor, audit }) {
            audit({ resourceId: params.id });
            return viewOf(await tasks.authorize(params.id, actor), actor);
        }
    });
}

function registerRunNow(ctx: Ctx, runs: Runs): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/{id}/run',
        id: 'runTask',
        access: 'run',
        summary: 'Run a task now',
        answers: 'task',
        ui: { title: 'Run now', role: 'action', primary: true },
        returns: wholeRunSchema,
        audit: { action: 'run', resource: 'task' },
        validate: {
            params: idParams,
            payload: joi.object({ parameters: valuesSchema.default({}) }).optional()
        },
        description:
            'Answers 202 and the run, whose `state` says what `overlap` made of it. A disabled task runs, too.',
        async handler({ params, payload, actor, audit }) {
            audit({ resourceId: params.id });
            const run = await runs.start(params.id, {
                trigger: 'manual',
                askedBy: actor.username,
                values: payload?.parameters ?? {}
            });
            audit({ after: { run: run.id, state: run.state } });
            return acceptedRun(ctx, runs, run, actor);
        }
    });
}

/** A task for an actor, who may not be allowed to see what it runs. */
export function viewOf({ task, lastRun }: TaskWithRun, actor: Actor): TaskView {
    return taskView(task, lastRun, canSeeOutput(actor));
}

/** A task for the audit log. Some of its readers may not see what tasks run, so the record only says whether that changed. */
export function auditRecord(task: TaskRow, before?: TaskRow): object {
    const {
        command: _command,
        script: _script,
        request: _request,
        route: _route,
        env: _env,
        parameters: _parameters,
        ...shown
    } = draftOfRow(task);
    const changed =
        before === undefined
            ? []
            : (['command', 'script', 'request', 'route', 'env', 'parameters'] as const).filter(
                  (field) => task[field] !== before[field]
              );
    return {
        ...shown,
        runs: kindOf(task),
        ...(changed.length === 0 ? {} : { changed })
    };
}
