/** The route of alerts: those that fire, and those that are over. */
import { joi, pages, reply } from '@portico/sdk';

import { alertSchema, toAlertView } from '../alerts/schema.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Declares `/alerts`. */
export function registerAlertRoutes(ctx: Ctx, { monitor }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/alerts',
        id: 'alerts',
        access: 'read',
        summary: 'Alerts that fire, and those that are over',
        ui: { title: 'Alerts', order: 2, empty: 'No alert yet' },
        returns: joi.array().items(alertSchema),
        description: 'Newest first. `Link` leads to older ones.',
        validate: {
            query: joi.object({
                state: joi.valid('firing', 'ended').label('State'),
                severity: joi.valid('info', 'warning', 'critical').label('Severity'),
                ruleId: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Rule')
                    .meta({ ui: { ref: 'monitoring.rules' } }),
                ...pages.query()
            })
        },
        async handler({ query }) {
            const { state, severity, ruleId, limit } = query;
            const found = await monitor.journal.list({
                state,
                severity,
                ruleId,
                before: pages.afterNumber(query) ?? undefined,
                limit: limit + 1
            });
            const { rows, page } = pages.read(found.rows, limit, ({ id }) => id, found.total);
            return reply.list(rows.map(toAlertView), page);
        }
    });
}
