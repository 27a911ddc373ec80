/** The routes that say what leaves the panel, and what that costs. */
import { joi, pages, reply } from '@portico/sdk';

import { Redactor } from '../redaction/redaction.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const dayMs = 86_400_000;
/** Days of a report that names no beginning. */
const usualDays = 31;

/** Declares `/redact` and `/usage`. */
export function registerUsageRoutes(ctx: Ctx, services: Services): void {
    registerRedact(ctx);
    registerUsage(ctx, services);
}

function registerRedact(ctx: Ctx): void {
    ctx.route({
        method: 'POST',
        path: '/redact',
        id: 'redact',
        access: 'chat',
        effect: 'read',
        summary: 'Show what a model would get to see of a text',
        answers: 'done',
        ui: { title: 'What leaves', role: 'action' },
        validate: {
            payload: joi.object({
                text: joi.string().allow('').max(1_000_000).required().label('Text')
            })
        },
        returns: joi.object({
            text: joi.string().allow('').required().label('What a model would see'),
            found: joi
                .array()
                .items(
                    joi.object({
                        kind: joi.string().required().label('Kind'),
                        count: joi.number().integer().required().label('Times')
                    })
                )
                .required()
                .label('Found')
        }),
        handler({ payload }) {
            const redactor = new Redactor(ctx.settings);
            return { text: redactor.text(payload.text), found: redactor.found };
        }
    });
}

function registerUsage(ctx: Ctx, { machine, usage }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/usage',
        id: 'usage',
        access: 'chat',
        summary: 'Tokens and cost',
        description: 'Of the caller; with the permission `manage` of all users.',
        ui: { title: 'Usage', order: 7, label: 'key', empty: 'Nothing was used' },
        validate: {
            query: joi.object({
                ...pages.query(100),
                from: joi.typed<string | undefined>(joi.string().isoDate().optional().label('From')),
                to: joi.typed<string | undefined>(joi.string().isoDate().optional().label('To')),
                by: joi
                    .choice({ user: 'Users', provider: 'Providers', day: 'Days' })
                    .default('day')
                    .label('By')
            })
        },
        returns: joi.array().items(
            joi.object({
                key: joi
                    .string()
                    .allow('')
                    .required()
                    .label('Of')
                    .meta({ ui: { column: 1 } }),
                input: joi
                    .number()
                    .integer()
                    .required()
                    .label('Input')
                    .unit('token')
                    .meta({ ui: { column: 2 } }),
                output: joi
                    .number()
                    .integer()
                    .required()
                    .label('Output')
                    .unit('token')
                    .meta({ ui: { column: 3 } }),
                requests: joi
                    .number()
                    .integer()
                    .required()
                    .label('Requests')
                    .meta({ ui: { column: 4 } }),
                cost: joi
                    .number()
                    .required()
                    .label('Cost')
                    .meta({ ui: { column: 5 } })
            })
        ),
        async handler({ actor, query: { from, to, by, ...page } }) {
            const end = to === undefined ? machine.now() + 1 : Date.parse(to);
            const all = await usage.report({
                from: from === undefined ? end - usualDays * dayMs : Date.parse(from),
                to: end,
                by,
                userId: actor.can('manage') ? null : (actor.id ?? 0)
            });
            const { rows, page: shown } = pages.ordered(all, page);
            return reply.list([...rows], shown);
        }
    });
}
