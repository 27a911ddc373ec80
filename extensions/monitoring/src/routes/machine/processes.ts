/** The route of processes and of what they use. */
import { joi, reply } from '@portico/sdk';

import type { ProcessView } from '../../sampling/sources/processes.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

/** The fields of a process in an answer. */
export const processFields = {
    pid: joi
        .number()
        .integer()
        .required()
        .label('Process')
        .meta({ ui: { column: 2 } }),
    parent: joi.number().integer().required().label('Parent'),
    name: joi
        .string()
        .allow('')
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    state: joi
        .string()
        .required()
        .label('State')
        .description('As `ps` has it: R, S, D, Z, …')
        .meta({ ui: { column: 6 } }),
    user: joi
        .string()
        .allow(null)
        .required()
        .label('Account')
        .meta({ ui: { column: 3 } }),
    cpu: joi
        .number()
        .allow(null)
        .required()
        .label('Processor')
        .unit('percent')
        .description('Of one processor, since the list before; null without one')
        .meta({ ui: { column: 4 } }),
    memory: joi
        .number()
        .required()
        .label('Memory')
        .unit('byte')
        .meta({ ui: { column: 5 } }),
    memoryPercent: joi.number().allow(null).required().label('Share of memory').unit('percent'),
    threads: joi.number().integer().required().label('Threads'),
    startedAt: joi.string().isoDate().allow(null).required().label('Started'),
    command: joi
        .string()
        .allow(null)
        .required()
        .label('Command')
        .description('The command line; null without the permission `commands`, and for what has none')
};

/** Larger values come first, and unknown ones last. */
const orders: Readonly<Record<'cpu' | 'memory' | 'pid', (a: ProcessView, b: ProcessView) => number>> = {
    cpu: (a, b) => (b.cpu ?? -1) - (a.cpu ?? -1) || b.memory - a.memory,
    memory: (a, b) => b.memory - a.memory || a.pid - b.pid,
    pid: (a, b) => a.pid - b.pid
};

/** Declares the routes below `/processes`. */
export function registerProcessRoutes(ctx: Ctx, { processes }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/processes',
        id: 'processes',
        access: 'read',
        summary: 'Processes by what they use',
        ui: { title: 'Processes', order: 4, label: 'name' },
        returns: joi.array().items(joi.object(processFields)),
        description:
            'Command lines can hold secrets: they are shown to holders of the permission `commands` only. How much processor time a process uses is measured from one list to the next, if that is not more than two minutes.',
        validate: {
            query: joi.object({
                sort: joi.valid('cpu', 'memory', 'pid').default('cpu').label('Largest first by'),
                limit: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1_000)
                    .default(50)
                    .label('Processes')
                    .description('Most processes listed'),
                q: joi
                    .string()
                    .min(1)
                    .max(100)
                    .label('Name or account')
                    .description('A part of the name, or the whole name of the account')
            })
        },
        async handler({ query, actor }) {
            const { q } = query;
            const all = (await processes.list())
                .filter(
                    ({ name, user }) =>
                        q === undefined || name.toLowerCase().includes(q.toLowerCase()) || user === q
                )
                .sort(orders[query.sort]);
            const shown = all.slice(0, query.limit);
            const seesCommands = actor.can('commands');
            return reply.list(
                await Promise.all(
                    shown.map(async (process) => ({
                        ...process,
                        command: seesCommands ? await processes.command(process.pid) : null
                    }))
                ),
                { total: all.length }
            );
        }
    });
}
