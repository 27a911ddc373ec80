/** The route that adopts stacks. */
import { joi } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { stackParams } from '../fields.ts';
import { stackSchema } from '../schemas.ts';
import { compose, env, mostBytes } from './compose.ts';

/** Registers the route of adoption. */
export function registerAdoptionRoutes(ctx: Ctx, { adoption, stacks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/stacks/{name}/adopt',
        id: 'adoptStack',
        access: 'write',
        summary: 'Manage a stack or a single container that was made elsewhere',
        description:
            'Nothing restarts. Default of `compose`: the file that the labels name, whose relative binds become absolute, else one that is written from the containers. A single container of that name becomes a stack of one service. The next deploy makes the stack what the file says, under the policy.',
        answers: 'done',
        maxBytes: mostBytes,
        ui: { title: 'Adopt' },
        returns: stackSchema,
        audit: { action: 'adopt', resource: 'stack' },
        validate: { params: stackParams, payload: joi.object({ compose, env }).default({}) },
        async handler({ params: { name }, payload, actor, audit }) {
            audit({ resourceId: name });
            const { compose: text, env: variables } = payload;
            await adoption.adopt(
                name,
                {
                    ...(text === undefined ? {} : { compose: text }),
                    ...(variables === undefined ? {} : { env: variables })
                },
                actor
            );
            return stacks.get(name);
        }
    });
}
