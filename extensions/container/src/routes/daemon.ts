/** Routes of the settings of Docker's daemon. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const mirror = joi
    .string()
    .uri({ scheme: ['http', 'https'] })
    .max(300)
    .label('Mirror');
const registry = joi
    .string()
    .pattern(/^[A-Za-z0-9.:/[\]-]{1,300}$/, 'host:port, or a range of addresses')
    .label('Registry');
const fields = {
    registryMirrors: joi
        .array()
        .items(mirror)
        .max(20)
        .label('Mirrors of Docker Hub')
        .meta({ ui: { widget: 'lines' } }),
    insecureRegistries: joi
        .array()
        .items(registry)
        .max(50)
        .label('Registries without TLS')
        .description('Passwords and images travel in the clear')
        .meta({ ui: { widget: 'lines' } }),
    logDriver: joi
        .choice({
            '': 'What the engine takes by itself',
            'json-file': 'JSON files',
            local: 'Files of the engine',
            journald: 'Journal',
            none: 'No log'
        })
        .label('Log driver')
        .description('Of containers that say nothing about their log; a change starts the engine anew'),
    logOptions: joi.record(joi.string().max(200)).label('Log options'),
    liveRestore: joi
        .boolean()
        .label('Containers outlive the engine')
        .description('They go on while the engine is started anew')
};
const shown = joi.object({
    registryMirrors: fields.registryMirrors.required(),
    insecureRegistries: fields.insecureRegistries.required(),
    logDriver: joi.string().allow('').required().label('Log driver'),
    logOptions: fields.logOptions.required(),
    liveRestore: fields.liveRestore.required()
});

/** Registers the routes of the daemon's settings. */
export function registerDaemonRoutes(ctx: Ctx, { daemon }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/daemon',
        id: 'daemon',
        access: 'unsafe',
        stepUp: true,
        summary: 'Settings of the engine',
        ui: { title: 'Settings of the engine', order: 9 },
        returns: shown,
        async handler() {
            const { registryMirrors, insecureRegistries, logOptions, ...rest } = await daemon.read();
            return {
                ...rest,
                registryMirrors: [...registryMirrors],
                insecureRegistries: [...insecureRegistries],
                logOptions: { ...logOptions }
            };
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/daemon',
        id: 'setDaemon',
        access: 'unsafe',
        stepUp: true,
        summary: 'Change the settings of the engine',
        description:
            'What is not sent stays. An engine that is not back with the new settings in 30 seconds gets the old ones.',
        answers: 'task',
        ui: { title: 'Change', confirm: 'The engine may start anew. Change its settings?' },
        returns: taskSchema,
        audit: { action: 'update', resource: 'daemon' },
        validate: { payload: joi.object(fields) },
        async handler({ payload, actor, audit }) {
            const change = Object.fromEntries(
                Object.entries(payload).filter(([, value]) => value !== undefined)
            );
            audit({ after: change });
            return reply.accepted(await daemon.begin(change, actor));
        }
    });
}
