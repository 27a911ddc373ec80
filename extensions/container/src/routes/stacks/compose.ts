/** Routes of compose files alone: planned, and written. */
import { joi } from '@portico/sdk';

import { composeFromRun } from '../../compose/run/convert.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { viewOf } from '../../stacks/planner.ts';
import { stackNameForm, stackNameWords } from '../../stacks/source.ts';
import { findingSchema } from '../schemas.ts';

/** The name of a stack. */
export const stackName = joi.string().pattern(stackNameForm, stackNameWords).required().label('Name');
/** Bytes of a request with a compose file and variables. */
export const mostBytes = 2_300_000;
/** The text of a compose file. */
export const compose = joi.string().max(1_048_576).label('Compose file').meta({ media: 'application/yaml' });
/** The variables of a stack. */
export const env = joi
    .string()
    .allow('')
    .max(1_048_576)
    .label('Variables')
    .description('Lines of NAME=value. No other variable is known to the file.')
    .meta({ media: 'text/plain' });
const planSchema = joi.object({
    valid: joi.boolean().required().label('It is valid'),
    errors: joi
        .array()
        .items(
            joi.object({
                path: joi.string().allow('').required().label('Place'),
                line: joi.number().allow(null).required().label('Line'),
                message: joi.string().required().label('Fault')
            })
        )
        .required()
        .label('Faults'),
    warnings: joi.array().items(joi.string()).required().label('Warnings'),
    services: joi.array().items(joi.string()).required().label('Services'),
    images: joi
        .array()
        .items(
            joi.object({
                service: joi.string().required().label('Service'),
                image: joi.string().required().label('Image'),
                digest: joi.string().allow(null).required().label('Digest')
            })
        )
        .required()
        .label('Images'),
    ports: joi.array().items(joi.any()).required().label('Ports'),
    mounts: joi.array().items(joi.any()).required().label('Mounts'),
    findings: joi.array().items(findingSchema).required().label('Policy'),
    changes: joi
        .array()
        .items(
            joi.object({
                service: joi.string().allow('').required().label('Service'),
                action: joi.valid('create', 'recreate', 'remove', 'keep').required().label('Action'),
                because: joi.array().items(joi.string()).required().label('Because')
            })
        )
        .required()
        .label('Changes'),
    exposure: joi
        .object({
            added: joi.array().items(findingSchema).required().label('New'),
            removed: joi.array().items(findingSchema).required().label('Gone')
        })
        .required()
        .label('Exposure'),
    consent: joi.string().allow(null).required().label('Consent')
});

/** Registers the routes of compose files. */
export function registerComposeRoutes(ctx: Ctx, { stacks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/compose/plan',
        id: 'planStack',
        access: 'write',
        summary: 'Say what a compose file would come to',
        description: 'It changes nothing.',
        answers: 'done',
        effect: 'read',
        maxBytes: mostBytes,
        ui: { title: 'Plan' },
        returns: planSchema,
        validate: {
            payload: joi.object({ name: stackName, compose: compose.required(), env: env.default('') })
        },
        handler: async ({ payload }) => viewOf(await stacks.plan(payload))
    });
    ctx.route({
        method: 'POST',
        path: '/compose/from-run',
        id: 'composeFromRun',
        access: 'write',
        summary: 'Write a compose file for a `docker run` line',
        description: 'The line is read, and never run. What it says and the file does not is in `warnings`.',
        answers: 'done',
        effect: 'read',
        ui: { title: 'From a command' },
        returns: joi.object({
            compose: compose.required(),
            warnings: joi.array().items(joi.string()).required().label('Warnings')
        }),
        validate: {
            payload: joi.object({
                command: joi
                    .string()
                    .max(32_768)
                    .required()
                    .label('Command')
                    .description('Such as `docker run -p 8080:80 nginx`')
                    .meta({ media: 'text/plain' })
            })
        },
        async handler({ payload: { command } }) {
            const { compose: text, warnings } = composeFromRun(command);
            return { compose: text, warnings: [...warnings] };
        }
    });
}
