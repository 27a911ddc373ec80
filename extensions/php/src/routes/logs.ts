/** The route of a site's logs. */
import { joi } from '@portico/sdk';

import { logName } from '../config/render.ts';
import { logsOf, readLog } from '../logs/files.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { siteParams } from './params.ts';

/** Registers the stream of logs. */
export function registerLogRoutes(ctx: Ctx, { store }: Services): void {
    ctx.stream({
        path: '/sites/{id}/logs',
        id: 'logs',
        access: 'logs',
        summary: 'What a site logs',
        ui: { title: 'Logs', role: 'log' },
        validate: {
            params: siteParams,
            query: joi.object({
                log: joi
                    .choice({ error: 'Errors', slow: 'Slow requests', access: 'Requests' })
                    .default('error')
                    .label('Log'),
                lines: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(10_000)
                    .default(200)
                    .label('Lines')
                    .description('The last ones'),
                follow: joi
                    .boolean()
                    .default(false)
                    .label('Follow')
                    .description('Goes on with each further line')
            })
        },
        events: { line: joi.object({ line: joi.string().allow('').required().label('Line') }) },
        async *handler({ params, query, signal }) {
            const site = await store.get(params.id);
            const { lines, follow } = query;
            for await (const line of readLog(logsOf(ctx, site), logName(query.log), {
                lines,
                follow,
                signal
            })) {
                yield { event: 'line' as const, data: { line } };
            }
        }
    });
}
