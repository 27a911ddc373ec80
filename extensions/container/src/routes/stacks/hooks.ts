/** Routes of hooks: made by people, called by machines. */
import { joi, reply } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { stackParams } from '../fields.ts';

/** Registers the routes of hooks. */
export function registerHookRoutes(ctx: Ctx, services: Services): void {
    registerMaking(ctx, services);
    registerCall(ctx, services);
}

function registerMaking(ctx: Ctx, { hooks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/stacks/{name}/hook',
        id: 'createHook',
        access: 'write',
        stepUp: true,
        secret: true,
        summary: 'Make the hook of a stack',
        description:
            'Shown this once. A call of it with the header `X-Webhook-Token` pulls the images of the stack and deploys them. One that is there is replaced.',
        answers: 'made',
        ui: { title: 'Make a hook' },
        returns: joi.object({
            url: joi.string().required().label('Address').description('Path of this panel'),
            token: joi.string().required().label('Token')
        }),
        audit: { action: 'create', resource: 'hook' },
        validate: { params: stackParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.name });
            const hook = await hooks.create(params.name);
            return reply.created(`/api/plugins/${ctx.name}/stacks/${params.name}`, { ...hook });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/stacks/{name}/hook',
        id: 'removeHook',
        access: 'write',
        stepUp: true,
        summary: 'Remove the hook of a stack',
        answers: 'done',
        ui: { title: 'Remove the hook', confirm: 'Remove the hook? Calls of it are refused from now on.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'hook' },
        validate: { params: stackParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.name });
            await hooks.remove(params.name);
            return null;
        }
    });
}

function registerCall(ctx: Ctx, { hooks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/hooks/{key}',
        id: 'callHook',
        access: { public: 'redeploys one stack, with a token of its own' },
        summary: 'Pull and deploy a stack',
        description:
            'The token goes in the header `X-Webhook-Token`. An unknown hook and a wrong token are 40150, alike. While the stack is being changed, one call waits for the end of that.',
        answers: 'task',
        ui: { title: 'Call', role: 'hidden' },
        returns: joi.object({
            stack: joi.string().required().label('Stack'),
            waits: joi.boolean().required().label('Waits for another change')
        }),
        audit: { action: 'call', resource: 'hook' },
        validate: { params: joi.object({ key: joi.string().max(100).required().label('Hook') }) },
        async handler({ params, headers, audit }) {
            const answer = await hooks.call(params.key, headers['x-webhook-token'] ?? '');
            audit({ resourceId: answer.stack });
            return reply.accepted({ ...answer });
        }
    });
}
