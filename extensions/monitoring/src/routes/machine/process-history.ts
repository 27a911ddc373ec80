/** The route of the processes that used most in a past minute. */
import { joi } from '@portico/sdk';

import type { UsedProcess } from '../../processes/history.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { processFields } from './processes.ts';

const { pid, name, user, startedAt } = processFields;
const minuteMs = 60_000;

const orders: Readonly<Record<'cpu' | 'memory', (a: UsedProcess, b: UsedProcess) => number>> = {
    cpu: (a, b) => (b.cpu ?? -1) - (a.cpu ?? -1) || b.memory - a.memory,
    memory: (a, b) => b.memory - a.memory || a.pid - b.pid
};

/** Declares the routes below `/processes/history`. */
export function registerProcessHistoryRoutes(ctx: Ctx, { machine, processHistory }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/processes/history',
        id: 'processHistory',
        access: 'read',
        summary: 'Processes that used most in a past minute',
        ui: {
            title: 'Who used the machine',
            order: 5,
            label: 'name',
            empty: 'Nothing was recorded in that minute'
        },
        returns: joi.array().items(
            joi.object({
                pid,
                name,
                user,
                cpu: joi
                    .number()
                    .allow(null)
                    .required()
                    .label('Processor')
                    .unit('percent')
                    .description('Of one processor, over the minute')
                    .meta({ ui: { column: 4 } }),
                memory: joi
                    .number()
                    .required()
                    .label('Memory')
                    .unit('byte')
                    .description('The most that was seen')
                    .meta({ ui: { column: 5 } }),
                startedAt
            })
        ),
        description:
            'The 25 that used the processors most, and the 25 with the most memory, for `processHistoryDays`. A process that lived for less than ten seconds may be missing.',
        validate: {
            query: joi.object({
                at: joi
                    .string()
                    .isoDate()
                    .max(40)
                    .label('Time')
                    .description('Of the minute that is meant; without it, the minute before this one'),
                sort: joi.valid('cpu', 'memory').default('cpu').label('Largest first by'),
                limit: joi.number().integer().min(1).max(50).default(20).label('Processes')
            })
        },
        async handler({ query }) {
            const at = query.at === undefined ? machine.now() - minuteMs : Date.parse(query.at);
            const found = await processHistory.find(at);
            return found.toSorted(orders[query.sort]).slice(0, query.limit);
        }
    });
}
