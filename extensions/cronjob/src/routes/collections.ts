/** Routes of many tasks at once: tags, batches, copies, and the look at a task before it is made. */
import { joi, reply } from '@portico/sdk';

import { timetableOf } from '../schedule/timetable.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { Draft } from '../tasks/draft.ts';
import { newTask, tag, type TaskInput, taskName } from '../tasks/input/input.ts';
import { warningsOf } from '../tasks/input/warnings.ts';
import { idParams } from './id-params.ts';
import { auditRecord, viewOf } from './tasks.ts';
import { taskSchema } from './views/views.ts';

const batch = joi.object({
    ids: joi
        .array()
        .items(joi.number().integer().min(1))
        .unique()
        .min(1)
        .max(500)
        .required()
        .label('Tasks')
        .meta({ ui: { ref: 'cronjob.tasks' } }),
    action: joi
        .choice({
            enable: 'Enable them',
            disable: 'Disable them',
            delete: 'Remove them with their runs',
            run: 'Run them now',
            tag: 'Add tags',
            untag: 'Take tags away'
        })
        .required()
        .label('Action'),
    tags: joi.array().items(tag()).unique().max(20).default([]).label('Tags')
});

/** Declares the routes of tags, batches, clones and validation. */
export function registerCollectionRoutes(ctx: Ctx, services: Services): void {
    registerTags(ctx);
    registerBatch(ctx, services);
    registerClone(ctx, services);
    registerValidation(ctx, services);
}

function registerTags(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/tags',
        id: 'tags',
        access: 'read',
        summary: 'Tags of tasks, and how many tasks have each',
        ui: { title: 'Tags', order: 5, label: 'tag', empty: 'No tag yet' },
        returns: joi.array().items(
            joi.object({
                tag: tag().required().label('Tag'),
                tasks: joi.number().integer().required().label('Tasks')
            })
        ),
        handler: () =>
            ctx.db.read((em) =>
                em.execute<{ tag: string; tasks: number }[]>(
                    'select value as tag, count(*) as tasks from tasks, json_each(tasks.tags) group by value order by value'
                )
            )
    });
}

function registerBatch(ctx: Ctx, { batches }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/batch',
        id: 'batch',
        access: 'write',
        summary: 'Do one thing to many tasks',
        description: 'To all of them, or to none.',
        answers: 'done',
        ui: { title: 'Many at once' },
        stepUp: true,
        returns: joi.object({ tasks: joi.number().integer().required().label('Tasks') }),
        audit: { action: 'batch', resource: 'task' },
        validate: { payload: batch },
        async handler({ payload, actor, audit }) {
            const { ids, action, tags } = payload;
            audit({ after: { ids, action, ...(tags.length === 0 ? {} : { tags }) } });
            await batches.apply(ids, action, { tags, askedBy: actor.username });
            return { tasks: ids.length };
        }
    });
}

function registerClone(ctx: Ctx, { tasks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/{id}/clone',
        id: 'cloneTask',
        access: 'write',
        summary: 'Copy a task',
        description: 'The copy is disabled; the values of its environment come along.',
        answers: 'made',
        ui: { title: 'Copy', role: 'action' },
        stepUp: true,
        returns: taskSchema,
        audit: { action: 'create', resource: 'task' },
        validate: {
            params: idParams,
            payload: joi.object({ name: taskName }).optional()
        },
        async handler({ params, payload, actor, audit }) {
            const found = await tasks.clone(params.id, payload?.name);
            audit({ resourceId: found.task.id, after: auditRecord(found.task) });
            return reply.created(`/api/plugins/${ctx.name}/tasks/${found.task.id}`, viewOf(found, actor));
        }
    });
}

/** Without the values of its headers. */
function maskedRequest({ request }: Draft): object | null {
    return request === null
        ? null
        : {
              ...request,
              headers: Object.fromEntries(Object.keys(request.headers).map((name) => [name, { set: true }]))
          };
}

/** Without the defaults of secret ones. */
function maskedParameters({ parameters }: Draft): object[] {
    return parameters.map((each) =>
        each.secret && each.default !== null ? { ...each, default: { set: true } } : each
    );
}

function registerValidation(ctx: Ctx, { tasks, now }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/validate',
        id: 'validateTask',
        access: 'write',
        summary: 'Look at a task before it is made',
        description: 'As POST `/tasks`, with the same failures; nothing is stored.',
        effect: 'read',
        ui: { title: 'Check', role: 'hidden' },
        returns: joi.object({
            task: joi.object({}).unknown().required().label('Task'),
            nextRunAt: joi.string().isoDate().allow(null).required().label('Next run'),
            warnings: joi
                .array()
                .items(
                    joi.object({
                        path: joi.string().required().label('Field'),
                        message: joi.string().required().label('Message')
                    })
                )
                .required()
                .label('Warnings')
        }),
        validate: { payload: newTask },
        async handler({ payload }) {
            const draft = await tasks.check(payload as TaskInput);
            const env = Object.fromEntries(Object.keys(draft.env).map((name) => [name, { set: true }]));
            const blackouts = [...draft.blackouts, ...ctx.settings.blackouts];
            const at = timetableOf({ ...draft, blackouts }).next(now());
            return {
                task: { ...draft, env, request: maskedRequest(draft), parameters: maskedParameters(draft) },
                nextRunAt: at === null || !draft.enabled ? null : new Date(at).toISOString(),
                warnings: [
                    ...warningsOf({ ...draft, blackouts }, now()),
                    ...((await hasRoute(ctx, draft.route?.id))
                        ? []
                        : [
                              {
                                  path: 'route.id',
                                  message: 'There is no such route that a plugin may call now'
                              }
                          ])
                ]
            };
        }
    });
}

/** Whether a route is there. A task may name one whose plugin comes later. */
async function hasRoute(ctx: Ctx, id: string | undefined): Promise<boolean> {
    return id === undefined || (await ctx.api.routes()).some((route) => route.id === id);
}
