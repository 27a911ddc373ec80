/** Routes of hooks: making one, and what git servers send. */
import { type Bytes, joi, reply } from '@portico/sdk';

import { deploymentSchema, deploymentView } from '../projects/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { nothing, projectParams } from './params.ts';
import { previewSchema, previewView } from './previews.ts';

const mostBytes = 5 * 2 ** 20;

/** Declares the routes that make web hooks, and the one that takes them. */
export function registerHookRoutes(ctx: Ctx, services: Services): void {
    registerMaking(ctx, services);
    registerTaking(ctx, services);
}

function registerMaking(ctx: Ctx, { store, hooks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/hook',
        id: 'makeHook',
        access: 'write',
        stepUp: true,
        secret: true,
        summary: 'Make the hook of a project',
        description: 'Address and secret for the git server, shown once. A second call replaces it.',
        answers: 'made',
        ui: { title: 'Make a hook', role: 'action' },
        audit: { action: 'create', resource: 'hook' },
        validate: { params: projectParams },
        returns: joi.object({
            url: joi.string().required().label('Address').description('Below the address of the panel'),
            secret: joi.string().required().label('Secret')
        }),
        async handler({ params, audit }) {
            const project = await store.project(params.id);
            audit({ resourceId: project.id });
            return reply.created(
                `/api/plugins/${ctx.name}/projects/${project.id}`,
                await hooks.make(project.id)
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/projects/{id}/hook',
        id: 'deleteHook',
        access: 'write',
        stepUp: true,
        summary: 'Remove the hook of a project',
        answers: 'done',
        ui: { title: 'Remove the hook', role: 'action', confirm: 'Take no more pushes?' },
        audit: { action: 'delete', resource: 'hook' },
        validate: { params: projectParams },
        returns: nothing,
        async handler({ params, audit }) {
            const project = await store.project(params.id);
            audit({ resourceId: project.id });
            await hooks.remove(project.id);
            return null;
        }
    });
}

function registerTaking(ctx: Ctx, { hooks, previews }: Services): void {
    ctx.upload({
        method: 'POST',
        path: '/hooks/{key}',
        id: 'takePush',
        access: { public: 'pushes, signed by the git server' },
        summary: 'Take a push of a git server',
        description:
            'Signed by the secret of the hook: `X-Hub-Signature-256`, `X-Gitea-Signature` or `webhook-signature`.',
        answers: ['done', 'task'],
        ui: { role: 'hidden' },
        accepts: ['application/json', 'application/x-www-form-urlencoded'],
        maxBytes: mostBytes,
        timeoutSeconds: 30,
        validate: {
            params: joi.object({
                key: joi
                    .secret()
                    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
                    .required()
                    .label('Key')
            })
        },
        returns: joi.object({
            deployment: deploymentSchema.label('Deployment'),
            preview: previewSchema.label('Preview'),
            ignored: joi
                .valid('event', 'branch', 'path', 'duplicate', 'disabled', 'skip')
                .label('Why nothing is deployed')
        }),
        async handler({ params, headers, body, type }) {
            const taken = await hooks.take({ key: params.key, headers, type, body: await read(body) });
            if ('ignored' in taken) {
                return taken;
            }
            return reply.accepted(
                'preview' in taken
                    ? { preview: previewView(await previews.view(taken.preview)) }
                    : { deployment: deploymentView(taken.deployment) }
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
