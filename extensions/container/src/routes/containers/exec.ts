/** The route that runs a command in a container. */
import { joi } from '@portico/sdk';

import { execute } from '../../containers/exec.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { containerParams } from '../fields.ts';

/** Registers the route of commands. */
export function registerExecRoutes(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'POST',
        path: '/containers/{id}/exec',
        id: 'execute',
        access: 'exec',
        stepUp: true,
        summary: 'Run a command in a container',
        description:
            'Output has at most 1 MiB of each kind. When the time is over, the answer has no exit code; engines cannot end such a command, so it goes on.',
        answers: 'done',
        timeoutSeconds: 330,
        ui: { title: 'Run a command' },
        returns: joi.object({
            exitCode: joi.number().integer().allow(null).required().label('Exit code'),
            stdout: joi.string().allow('').required().label('Output'),
            stderr: joi.string().allow('').required().label('Errors'),
            truncated: joi.boolean().required().label('Not whole')
        }),
        audit: { action: 'exec', resource: 'container' },
        validate: {
            params: containerParams,
            payload: joi.object({
                command: joi
                    .array()
                    .items(joi.string().allow('').max(32_768).label('Word'))
                    .min(1)
                    .max(200)
                    .required()
                    .label('Command')
                    .meta({ ui: { widget: 'lines' } }),
                user: joi.string().max(100).label('User'),
                workdir: joi.string().max(4_096).label('Working folder'),
                env: joi
                    .record(joi.string().allow('').max(131_072))
                    .default({})
                    .label('Variables')
                    .meta({ ui: { advanced: true } }),
                timeoutSeconds: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(300)
                    .default(30)
                    .label('Time limit')
                    .unit('second')
            })
        },
        async handler({ params, payload, signal, audit }) {
            audit({ resourceId: params.id });
            return { ...(await execute(services, params.id, payload, signal)) };
        }
    });
}
