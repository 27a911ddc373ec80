/** Routes of the units of systemd. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { actOnUnit, listUnits, type unitActions, unitName, unitStates } from '../../units/units.ts';

const unitSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Unit')
        .meta({ ui: { column: 1 } }),
    description: joi
        .string()
        .allow('')
        .required()
        .label('What it is')
        .meta({ ui: { column: 3 } }),
    load: joi.string().allow('').required().label('File').description('loaded, masked, bad-setting, …'),
    state: joi
        .valid(...unitStates)
        .required()
        .label('State')
        .meta({
            ui: {
                column: 2,
                tones: {
                    active: 'good',
                    reloading: 'busy',
                    inactive: 'neutral',
                    failed: 'bad',
                    activating: 'busy',
                    deactivating: 'busy',
                    maintenance: 'warning'
                }
            }
        }),
    sub: joi
        .string()
        .allow('')
        .required()
        .label('In detail')
        .description('running, exited, listening, waiting, …')
        .meta({ ui: { column: 4 } })
});
const words: Readonly<Record<(typeof unitActions)[number], string>> = {
    start: 'Start',
    stop: 'Stop',
    restart: 'Restart',
    reload: 'Read the configuration again'
};

/** Declares `/units` and `/units/{name}/{action}`. */
export function registerUnitRoutes(ctx: Ctx, { machine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/units',
        id: 'units',
        access: 'read',
        summary: 'Units of systemd',
        ui: { title: 'Units', order: 9, label: 'name', empty: 'No unit is like that' },
        returns: joi.array().items(unitSchema),
        description:
            'Services, sockets, timers and paths that systemd has loaded. Where systemd is not the first process, the answer is 50302.',
        validate: {
            query: joi.object({
                state: joi.valid(...unitStates).label('State'),
                q: joi.string().min(1).max(100).label('Name or description').description('A part of it')
            })
        },
        async handler({ query: { state, q } }) {
            const part = q?.toLowerCase();
            const found = (await listUnits(ctx)).filter(
                (unit) =>
                    (state === undefined || unit.state === state) &&
                    (part === undefined || `${unit.name} ${unit.description}`.toLowerCase().includes(part))
            );
            return reply.list(found, { total: found.length });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/units/{name}/{action}',
        id: 'unitAction',
        access: 'control',
        effect: 'destructive',
        summary: 'Starts, stops, restarts or reloads a unit',
        ui: { title: 'Act', confirm: 'Act on this unit? What depends on it may fail meanwhile' },
        returns: taskSchema,
        description:
            'A task; its result is the state of the unit afterwards. The units of the panel and of the engine are neither stopped nor restarted here, and no unit is started that ends the machine (40352).',
        validate: {
            params: joi.object({
                name: joi.string().pattern(unitName).required().label('Unit'),
                action: joi.choice(words).required().label('Action')
            })
        },
        async handler({ params: { name, action }, actor, audit }) {
            audit({ resource: 'unit', resourceId: name, after: { action } });
            return reply.accepted(await actOnUnit(ctx, machine, { name, action }, { actor }));
        }
    });
}
