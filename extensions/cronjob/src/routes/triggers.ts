/** Routes of triggers: making them, and what callers send to them. */
import { type Bytes, joi, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './id-params.ts';

const mostBytes = 65_536;

const triggerFields = {
    id: joi.string().required().label('Number'),
    name: joi.string().required().label('Name'),
    lastUsedAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Last used')
        .meta({ ui: { column: 2 } }),
    createdAt: joi.string().isoDate().required().label('Created')
};
const triggerParams = joi.object({
    id: joi
        .string()
        .pattern(/^[0-9a-f]{32}$/)
        .required()
        .label('Number')
});

/** Declares the routes of triggers, by which other programs start a task. */
export function registerTriggerRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerCreation(ctx, services);
    registerRemoval(ctx, services);
    registerTaking(ctx, services);
}

function registerList(ctx: Ctx, { tasks, triggers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}/triggers',
        id: 'triggers',
        access: 'write',
        summary: 'Triggers of a task',
        ui: { title: 'Triggers', label: 'name', empty: 'No trigger yet' },
        returns: joi.array().items(joi.object(triggerFields)),
        validate: { params: idParams },
        async handler({ params }) {
            await tasks.get(params.id);
            return (await triggers.list(params.id)).map(({ id, name, lastUsedAt, createdAt }) => ({
                id,
                name,
                lastUsedAt: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
                createdAt: new Date(createdAt).toISOString()
            }));
        }
    });
}

function registerCreation(ctx: Ctx, { tasks, triggers }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/tasks/{id}/triggers',
        id: 'createTrigger',
        access: 'write',
        summary: 'Make a trigger',
        description:
            'A caller with its secret, such as a build elsewhere, starts the task by it. The secret is shown once.',
        answers: 'made',
        ui: { title: 'New trigger' },
        stepUp: true,
        secret: true,
        returns: joi.object({
            ...triggerFields,
            url: joi.string().required().label('Address').description('Below the address of the panel'),
            secret: joi.string().required().label('Secret')
        }),
        audit: { action: 'create', resource: 'trigger' },
        validate: {
            params: idParams,
            payload: joi.object({
                name: joi
                    .string()
                    .pattern(/^[^\p{C}]*\S[^\p{C}]*$/u, 'name')
                    .max(100)
                    .required()
                    .label('Name')
            })
        },
        async handler({ params, payload, audit }) {
            const { task } = await tasks.get(params.id);
            const { trigger, secret } = await triggers.create(task.id, payload.name);
            const { id, name, createdAt } = trigger;
            audit({ resourceId: id, after: { name, task: task.id } });
            return reply.created(`/api/plugins/${ctx.name}/tasks/${task.id}/triggers`, {
                id,
                name,
                lastUsedAt: null,
                createdAt: new Date(createdAt).toISOString(),
                url: `/api/plugins/${ctx.name}/triggers/${id}`,
                secret
            });
        }
    });
}

function registerRemoval(ctx: Ctx, { triggers }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/triggers/{id}',
        id: 'removeTrigger',
        access: 'write',
        summary: 'Remove a trigger',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Take no more calls of this trigger?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'trigger' },
        validate: { params: triggerParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            const { name, taskId } = await triggers.remove(params.id);
            audit({ before: { name, task: taskId } });
            return null;
        }
    });
}

function registerTaking(ctx: Ctx, { triggers }: Services): void {
    ctx.upload({
        method: 'POST',
        path: '/triggers/{id}',
        id: 'pullTrigger',
        access: { public: "a task's own trigger, proven by its secret" },
        summary: 'Start a task by its trigger',
        description:
            'The secret is proven by `X-Trigger-Token`, `X-Gitlab-Token`, `X-Hub-Signature-256`, or the headers of Standard Webhooks; it is never in the address. The body may be JSON with `parameters`. A disabled task runs, too.',
        answers: 'task',
        ui: { role: 'hidden' },
        accepts: ['*/*'],
        maxBytes: mostBytes,
        timeoutSeconds: 30,
        returns: joi.object({
            runId: joi
                .number()
                .integer()
                .required()
                .label('Run')
                .meta({ ui: { ref: 'cronjob.runs' } })
        }),
        audit: { action: 'run', resource: 'task' },
        // An id of another form is unknown, which the answer does not tell from a wrong proof.
        validate: { params: joi.object({ id: joi.string().max(200).required().label('Number') }) },
        async handler({ params, headers, body, audit }) {
            const runId = await triggers.take(params.id, { headers, body: await read(body) });
            audit({ after: { trigger: params.id, run: runId } });
            return reply.accepted(
                { runId },
                { headers: { location: `/api/plugins/${ctx.name}/runs/${runId}` } }
            );
        }
    });
}

async function read(body: Bytes): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) {
        chunks.push(chunk);
    }
    return Buffer.concat(chunks);
}
