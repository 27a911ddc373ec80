/** Routes of one process: its details, and signals to it. */
import { errors, joi } from '@portico/sdk';

import { readDetail } from '../../processes/detail.ts';
import { sendSignal, signalNames } from '../../processes/signals.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { portSchema } from './ports.ts';
import { processFields } from './processes.ts';

const params = joi.object({
    pid: joi.number().integer().min(1).max(4_194_304).required().label('Process')
});
const bytes = (label: string) => joi.number().integer().required().label(label).unit('byte');
const relatives = (label: string) =>
    joi
        .array()
        .items(
            joi.object({
                pid: joi.number().integer().required().label('Process'),
                name: joi.string().allow('').required().label('Name')
            })
        )
        .required()
        .label(label);

const detailSchema = joi.object({
    ...processFields,
    parents: relatives('Started by').description('From its parent up to the first process'),
    children: relatives('Started'),
    openFiles: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Open files')
        .description('Null: they may not be seen'),
    io: joi
        .object({ readBytes: bytes('Read from disks'), writeBytes: bytes('Written to disks') })
        .allow(null)
        .required()
        .label('Disks')
        .description('Since it started; null: it may not be seen'),
    ports: joi.array().items(portSchema).required().label('Open ports'),
    unit: joi.string().allow(null).required().label('Unit').description('The systemd unit that it runs in')
});

const words: Readonly<Record<(typeof signalNames)[number], string>> = {
    TERM: 'End (TERM)',
    KILL: 'End at once (KILL)',
    INT: 'Interrupt (INT)',
    HUP: 'Hang up, often: read the configuration again (HUP)',
    STOP: 'Pause (STOP)',
    CONT: 'Go on (CONT)',
    USR1: 'Its own meaning (USR1)',
    USR2: 'Its own meaning (USR2)'
};
const signalSchema = joi.object({
    signal: joi.choice(words).required().label('Signal'),
    startedAt: joi
        .string()
        .isoDate()
        .max(40)
        .required()
        .label('Started')
        .description('As the list has it: when the number belongs to a later process by now, nothing is sent')
});

/** Declares `/processes/{pid}` and `/processes/{pid}/signal`. */
export function registerOneProcessRoutes(ctx: Ctx, { machine, processes }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/processes/{pid}',
        id: 'process',
        access: 'read',
        summary: 'One process',
        ui: { title: 'Process', label: 'name' },
        returns: detailSchema,
        description:
            'As in the list, and its relatives, open files and ports, what it read and wrote, and its unit. The command line is shown to holders of the permission `commands` only.',
        validate: { params },
        async handler({ params: { pid }, actor }) {
            const all = await processes.list();
            const found = all.find((each) => each.pid === pid);
            if (found === undefined) {
                throw errors.notFound(`There is no process ${pid}`);
            }
            return {
                ...found,
                command: actor.can('commands') ? await processes.command(pid) : null,
                ...(await readDetail(machine, pid, all))
            };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/processes/{pid}/signal',
        id: 'signal',
        access: 'control',
        effect: 'destructive',
        summary: 'Sends a signal to one process',
        ui: {
            title: 'Signal',
            confirm: 'Send this signal? A process that ends may lose what it has not saved'
        },
        returns: joi.object({
            pid: joi.number().integer().required().label('Process'),
            name: joi.string().allow('').required().label('Name'),
            signal: joi
                .valid(...signalNames)
                .required()
                .label('Signal')
        }),
        description:
            "To this process only, not to its children. The first process, the kernel's own, the panel with what it was started by, and the engine are protected (40351).",
        validate: { params, payload: signalSchema },
        async handler({ params: { pid }, payload: { signal, startedAt }, audit }) {
            audit({ resource: 'process', resourceId: pid });
            const name = await sendSignal(ctx, machine, { pid, signal, startedAt });
            audit({ after: { name, signal } });
            return { pid, name, signal };
        }
    });
}
