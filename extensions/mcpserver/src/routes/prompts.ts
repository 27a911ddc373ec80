/** Routes of prompts. */
import { joi, reply } from '@portico/sdk';

import type { Prompt } from '../prompts/prompt.ts';
import { longestText, mostArguments, promptName } from '../prompts/prompts.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const name = joi.string().pattern(promptName).label('Name').example('weekly_review');
const writable = {
    title: joi
        .string()
        .min(1)
        .max(200)
        .label('Title')
        .meta({ ui: { column: 2 } }),
    description: joi.string().allow('').max(2_000).label('Description'),
    arguments: joi
        .array()
        .items(
            joi.object({
                name: joi.string().pattern(promptName).required().label('Name'),
                required: joi.boolean().default(false).label('Required')
            })
        )
        .max(mostArguments)
        .label('Arguments'),
    text: joi
        .string()
        .min(1)
        .max(longestText)
        .label('Text')
        .description('{{name}} stands for the argument of that name')
        .meta({ media: 'text/markdown' })
};
const promptSchema = joi.object({
    name: name.required().meta({ ui: { column: 1 } }),
    title: writable.title.required(),
    description: writable.description.required(),
    arguments: writable.arguments.required(),
    text: writable.text.required(),
    source: joi
        .string()
        .required()
        .label('Comes from')
        .meta({ ui: { column: 3 } }),
    readOnly: joi.boolean().required().label('Cannot be changed')
});
const params = joi.object({ name: joi.string().max(200).required().label('Name') });

/** Registers the routes below `/prompts`. */
export function registerPromptRoutes(ctx: Ctx, { prompts, endpoint }: Services): void {
    const changed = (): void => void endpoint.announce('prompts');
    ctx.route({
        method: 'GET',
        path: '/prompts',
        id: 'prompts',
        access: 'read',
        summary: 'Prompts that agents offer their users',
        returns: joi.array().items(promptSchema),
        ui: { title: 'Prompts', label: 'name', order: 7 },
        handler: async () => (await prompts.all()).map(viewOf)
    });
    ctx.route({
        method: 'POST',
        path: '/prompts',
        id: 'createPrompt',
        access: 'write',
        summary: 'Add a prompt',
        answers: 'made',
        returns: promptSchema,
        audit: { action: 'create', resource: 'prompts' },
        validate: {
            payload: joi.object({
                name: name.required(),
                title: writable.title.required(),
                description: writable.description.default(''),
                arguments: writable.arguments.default([]),
                text: writable.text.required()
            })
        },
        async handler({ payload, audit }) {
            const made = viewOf(await prompts.create(payload));
            audit({ resourceId: made.name, after: made });
            changed();
            return reply.created(`/api/plugins/${ctx.name}/prompts/${made.name}`, made);
        }
    });
    registerChanges(ctx, prompts, changed);
}

function registerChanges(ctx: Ctx, prompts: Services['prompts'], changed: () => void): void {
    ctx.route({
        method: 'PUT',
        path: '/prompts/{name}',
        id: 'updatePrompt',
        access: 'write',
        summary: 'Change a prompt',
        answers: 'done',
        returns: promptSchema,
        audit: { action: 'update', resource: 'prompts' },
        validate: { params, payload: joi.object(writable) },
        async handler({ params: { name: which }, payload, audit }) {
            const given = Object.fromEntries(
                Object.entries(payload).filter(([, value]) => value !== undefined)
            );
            const { before, after } = await prompts.update(which, given);
            audit({ resourceId: which, before, after });
            changed();
            return viewOf(after);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/prompts/{name}',
        id: 'removePrompt',
        access: 'write',
        summary: 'Remove a prompt',
        answers: 'done',
        returns: promptSchema,
        audit: { action: 'delete', resource: 'prompts' },
        validate: { params },
        async handler({ params: { name: which }, audit }) {
            const before = await prompts.remove(which);
            audit({ resourceId: which, before });
            changed();
            return viewOf(before);
        }
    });
}

function viewOf({ arguments: given, ...prompt }: Prompt) {
    return { ...prompt, arguments: given.map((argument) => ({ ...argument })) };
}
