/** Routes of crons. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { CronInput } from '../../crons/crons.ts';
import { cronInput, fields } from '../../crons/schema.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { nothing, projectParams, versionOf } from '../params.ts';

const { name, schedule, timezone, command, timeout, enabled } = fields;
const params = joi.object({ id: joi.number().integer().min(1).required().label('Cron') });
const version = () =>
    joi
        .number()
        .integer()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } });
const runSchema = joi.object({
    at: joi.string().isoDate().required().label('Began'),
    seconds: joi.number().required().label('Took').unit('second'),
    exitCode: joi.number().integer().allow(null).required().label('Exit code'),
    output: joi.string().allow('').required().label('Output').description('The end of it')
});
const cronSchema = joi.object({
    id: joi.number().integer().required().label('Id'),
    version: version().required(),
    projectId: joi
        .number()
        .integer()
        .required()
        .label('Project')
        .meta({ ui: { ref: 'deploy.projects', column: false } }),
    name: name().required(),
    schedule: schedule().required(),
    timezone: timezone().required(),
    command: command().required(),
    timeoutSeconds: timeout().required(),
    enabled: enabled().required(),
    lastRun: runSchema.allow(null).required().label('Last run')
});
const changeSchema = joi.object({
    version: version(),
    name: name(),
    schedule: schedule(),
    timezone: timezone(),
    command: command(),
    timeoutSeconds: timeout(),
    enabled: enabled()
});

/** Declares the routes of a project's crons. */
export function registerCronRoutes(ctx: Ctx, services: Services): void {
    registerListing(ctx, services);
    registerChanges(ctx, services);
    registerRun(ctx, services);
}

function registerListing(ctx: Ctx, { store, crons }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/crons',
        id: 'crons',
        access: 'read',
        summary: 'Commands of a project that run at certain times',
        ui: { title: 'Crons', label: 'name', empty: 'No cron yet' },
        validate: { params: projectParams },
        returns: joi.array().items(cronSchema),
        async handler(request) {
            await store.project(request.params.id);
            return (await crons.list(request.params.id)).map((cron) => ({
                ...cron,
                command: [...cron.command],
                // What it printed is for those who may read logs.
                lastRun:
                    cron.lastRun === null || request.actor.can('logs')
                        ? cron.lastRun
                        : { ...cron.lastRun, output: '' }
            }));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/crons',
        id: 'createCron',
        access: 'write',
        summary: 'Run a command at certain times',
        description: 'In the release that serves then, in a sandbox of its own.',
        answers: 'made',
        ui: { title: 'New cron', role: 'action' },
        audit: { action: 'create', resource: 'cron' },
        validate: {
            params: projectParams,
            payload: cronInput
        },
        returns: cronSchema,
        async handler({ payload, audit, ...request }) {
            const project = await store.project(request.params.id);
            const made = await crons.add(project.id, payload);
            audit({ resourceId: made.id, after: payload });
            return reply.created(`/api/plugins/${ctx.name}/projects/${project.id}/crons`, {
                ...made,
                command: [...made.command]
            });
        }
    });
}

function registerChanges(ctx: Ctx, { crons }: Services): void {
    ctx.route({
        method: 'PUT',
        path: '/crons/{id}',
        id: 'updateCron',
        access: 'write',
        summary: 'Change a cron',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'cron' },
        validate: { params, payload: changeSchema },
        returns: cronSchema,
        async handler({ payload, audit, ...request }) {
            const before = await crons.get(request.params.id);
            const { version: said, ...change } = payload;
            versionOf(before, request, said);
            audit({ resourceId: before.id, after: change });
            const changed = await crons.change(before, inputOf({ ...before, ...definedOf(change) }));
            return { ...changed, command: [...changed.command] };
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/crons/{id}',
        id: 'deleteCron',
        access: 'write',
        summary: 'Remove a cron',
        answers: 'done',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this cron?' },
        audit: { action: 'delete', resource: 'cron' },
        validate: { params },
        returns: nothing,
        async handler({ audit, ...request }) {
            const { id, name: called } = await crons.get(request.params.id);
            audit({ resourceId: id, before: { name: called } });
            await crons.remove(id);
            return null;
        }
    });
}

function registerRun(ctx: Ctx, { crons }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/crons/{id}/run',
        id: 'runCron',
        access: 'run',
        summary: 'Run a cron now',
        answers: 'task',
        ui: { title: 'Run now', role: 'action' },
        audit: { action: 'run', resource: 'cron' },
        validate: { params },
        returns: taskSchema,
        async handler({ actor, audit, ...request }) {
            const { id, name: called } = await crons.get(request.params.id);
            audit({ resourceId: id });
            const task = await ctx.task(
                { kind: 'cron', title: `Cron ${called}`, access: 'logs', actor, key: `cron-${id}` },
                ({ signal }) => crons.run(id, signal)
            );
            return reply.accepted(task);
        }
    });
}

function definedOf<T extends object>(change: T): { [K in keyof T]?: NonNullable<T[K]> } {
    return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as {
        [K in keyof T]?: NonNullable<T[K]>;
    };
}

function inputOf({ name: called, schedule: when, timezone: zone, command: argument, ...rest }: CronInput) {
    const { timeoutSeconds, enabled: isOn } = rest;
    return {
        ...{ name: called, schedule: when, timezone: zone, command: argument },
        ...{ timeoutSeconds, enabled: isOn }
    };
}
