/** The route of sensors, drives, arrays of disks and graphics processors. */
import { joi } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const text = (label: string) => joi.string().required().label(label);
const number = (label: string) => joi.number().allow(null).required().label(label);
const temperature = number('Temperature').unit('°C');
const tones = {
    ok: 'good',
    warning: 'warning',
    rebuilding: 'warning',
    degraded: 'bad',
    failed: 'bad',
    critical: 'bad',
    standby: 'neutral',
    inactive: 'neutral',
    unknown: 'neutral'
} as const;
const state = (...states: readonly (keyof typeof tones)[]) =>
    joi
        .valid(...states)
        .required()
        .label('State')
        .meta({
            ui: { tones: Object.fromEntries(states.map((each) => [each, tones[each]])) }
        });

const hardwareSchema = joi.object({
    sensors: joi
        .array()
        .items(
            joi.object({
                name: text('Sensor'),
                kind: joi.choice({ temperature: 'Temperature', fan: 'Fan' }).required().label('Kind'),
                state: state('ok', 'warning', 'critical', 'unknown'),
                value: number('Value').description('In °C, or turns a minute'),
                warnAt: number('Too warm from').unit('°C'),
                criticalAt: number('In danger from').unit('°C')
            })
        )
        .required()
        .label('Sensors'),
    gpus: joi
        .array()
        .items(
            joi.object({
                name: text('Number'),
                model: joi.string().allow('').required().label('Model'),
                state: state('ok', 'unknown'),
                usage: number('In use').unit('percent'),
                memoryUsed: number('Memory used').unit('byte'),
                memoryTotal: number('Memory').unit('byte'),
                temperature,
                power: number('Power').unit('W')
            })
        )
        .required()
        .label('Graphics processors'),
    drives: joi
        .array()
        .items(
            joi.object({
                name: text('Drive'),
                kind: joi.choice({ ssd: 'SSD', hdd: 'HDD', unknown: 'Unknown' }).required().label('Kind'),
                state: state('ok', 'warning', 'failed', 'standby', 'unknown'),
                message: joi.string().allow(null).required().label('What is wrong'),
                model: joi.string().allow(null).required().label('Model'),
                serial: joi.string().allow(null).required().label('Serial number'),
                size: number('Size').unit('byte'),
                temperature,
                wear: number('Used up')
                    .unit('percent')
                    .description('Share of its life; drives of flash memory say so'),
                poweredHours: number('Powered for').unit('hour'),
                reallocatedSectors: number('Replaced sectors'),
                pendingSectors: number('Unreadable sectors')
            })
        )
        .required()
        .label('Drives'),
    raids: joi
        .array()
        .items(
            joi.object({
                name: text('Array'),
                level: joi.string().allow(null).required().label('Level'),
                state: state('ok', 'rebuilding', 'degraded', 'failed', 'inactive'),
                members: joi.array().items(joi.string()).required().label('Members'),
                failedMembers: joi.array().items(joi.string()).required().label('Failed members'),
                wanted: number('Wanted disks'),
                working: number('Working disks'),
                size: number('Size').unit('byte'),
                action: joi.string().allow(null).required().label('Under way'),
                progress: number('Progress').unit('percent')
            })
        )
        .required()
        .label('Arrays of disks'),
    missing: joi
        .array()
        .items(
            joi.object({
                part: joi.choice({ drives: 'Drives', gpus: 'Graphics processors' }).required().label('Part'),
                tool: text('Program'),
                install: text('Command that installs it')
            })
        )
        .required()
        .label('Missing programs')
        .description('Without them, these parts cannot be looked at')
});

/** Declares the routes below `/hardware`. */
export function registerHardwareRoutes(ctx: Ctx, { monitor, hardware }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/hardware',
        id: 'hardware',
        access: 'read',
        summary: 'How the hardware is',
        ui: { title: 'Hardware', order: 7 },
        returns: hardwareSchema,
        description:
            'Sensors and arrays of disks as of the newest sample; drives and graphics processors as of the last look, every `slowSeconds`. A drive that sleeps is not woken up.',
        handler() {
            const { sensors, raids } = monitor.taken.reading;
            const { gpus, drives, missing } = hardware;
            return {
                sensors: [...sensors],
                gpus: [...gpus],
                drives: [...drives],
                raids: raids.map(({ members, failedMembers, ...raid }) => ({
                    ...raid,
                    members: [...members],
                    failedMembers: [...failedMembers]
                })),
                missing: [...missing]
            };
        }
    });
}
