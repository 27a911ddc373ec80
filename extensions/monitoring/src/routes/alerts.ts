/** The route of alerts: those that fire, and those that are over. */
import { errors, joi, reply } from '@portico/sdk';

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
                limit: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(500)
                    .default(50)
                    .label('Alerts')
                    .description('Most alerts of one page'),
                cursor: joi.string().max(40).label('Page').description('From the `Link` of the page before')
            })
        },
        async handler({ query }) {
            const { state, severity, ruleId, limit, cursor } = query;
            const text = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString('latin1');
            if (text !== null && !/^\d{1,15}$/.test(text)) {
                throw errors.invalid([
                    { path: 'cursor', message: 'cursor must come from the Link of an earlier answer' }
                ]);
            }
            const before = text === null ? undefined : Number(text);
            const { rows, total } = await monitor.journal.list({
                state,
                severity,
                ruleId,
                before,
                limit: limit + 1
            });
            const page = rows.slice(0, limit);
            const next =
                rows.length > limit ? Buffer.from(String(page.at(-1)?.id)).toString('base64url') : null;
            return reply.list(page.map(toAlertView), { total, next });
        }
    });
}
