/** The route of processes and of what they use. */
import { joi, reply } from '@portico/sdk';

import type { ProcessView } from '../sampling/sources/processes.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const processSchema = joi.object({
    pid: joi.number().integer().required(),
    parent: joi.number().integer().required(),
    name: joi.string().allow('').required(),
    state: joi.string().required().description('As `ps` has it: R, S, D, Z, …'),
    user: joi.string().allow(null).required(),
    cpu: joi
        .number()
        .allow(null)
        .required()
        .description('Percent of one processor since the list before; null without one'),
    memory: joi.number().required().description('Bytes held in memory'),
    memoryPercent: joi.number().allow(null).required(),
    threads: joi.number().integer().required(),
    startedAt: joi.string().isoDate().allow(null).required(),
    command: joi
        .string()
        .allow(null)
        .required()
        .description('The command line; null without the permission `commands`, and for what has none')
});

/** Larger values come first, and unknown ones last. */
const orders: Readonly<Record<'cpu' | 'memory' | 'pid', (a: ProcessView, b: ProcessView) => number>> = {
    cpu: (a, b) => (b.cpu ?? -1) - (a.cpu ?? -1) || b.memory - a.memory,
    memory: (a, b) => b.memory - a.memory || a.pid - b.pid,
    pid: (a, b) => a.pid - b.pid
};

/** Declares `/processes`. */
export function registerProcessRoutes(ctx: Ctx, { processes }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/processes',
        id: 'processes',
        access: 'read',
        summary: 'Processes by what they use',
        ui: { title: 'Processes', order: 4, label: 'name' },
        returns: joi.array().items(processSchema),
        description:
            'Command lines can hold secrets: they are shown to holders of the permission `commands` only. How much processor time a process uses is measured from one list to the next, if that is not more than two minutes.',
        validate: {
            query: joi.object({
                sort: joi.valid('cpu', 'memory', 'pid').default('cpu'),
                limit: joi.number().integer().min(1).max(1_000).default(50),
                q: joi.string().min(1).max(100).description('A part of the name, or the user')
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
