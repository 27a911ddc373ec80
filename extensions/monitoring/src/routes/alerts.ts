/** What fires, what fired, and everything else that is not as it should be. */
import { errors, joi, reply } from '@portico/sdk';

import { alertSchema, alertView } from '../alerts/schema.ts';
import type { Parts } from '../parts.ts';
import { unhealthy, unhealthySchema } from '../findings/unhealthy.ts';

export function alertRoutes({ ctx, monitor }: Parts): void {
    ctx.route({
        method: 'GET',
        path: '/alerts',
        id: 'alerts',
        access: 'read',
        summary: 'Alerts that fire, and those that are over',
        returns: joi.array().items(alertSchema),
        description: 'Newest first. `Link` leads to older ones.',
        validate: {
            query: joi.object({
                state: joi.valid('firing', 'ended'),
                severity: joi.valid('info', 'warning', 'critical'),
                ruleId: joi.number().integer().min(1),
                limit: joi.number().integer().min(1).max(500).default(50),
                cursor: joi.string().max(40)
            })
        },
        async handler({ query }) {
            const { state, severity, ruleId, limit, cursor } = query;
            const text = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString('latin1');
            if (text !== null && !/^\d{1,15}$/.test(text)) {
                throw errors.invalid([{ path: 'cursor', message: 'cursor is none that a list gave' }]);
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
            return reply.list(page.map(alertView), { total, next });
        }
    });
    ctx.route({
        method: 'GET',
        path: '/unhealthy',
        id: 'unhealthy',
        access: 'read',
        summary: 'What is not as it should be',
        returns: unhealthySchema,
        description:
            'Alerts that fire, disks that are nearly full, gaps of the monitoring itself, and plugins and the proxy engine as far as you may see them.',
        handler: ({ actor, signal }) => unhealthy(ctx, monitor, actor, signal)
    });
}
