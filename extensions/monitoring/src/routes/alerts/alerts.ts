/** The routes of alerts: those that fire, and those that are over. */
import { errors, joi, pages, reply } from '@portico/sdk';

import { alertSchema, toAlertView } from '../../alerts/schema.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Alert')
        .meta({ ui: { ref: 'monitoring.alerts' } })
});

/** Declares the routes below `/alerts/{id}/acknowledgement`. */
export function registerAcknowledgementRoutes(ctx: Ctx, { monitor }: Services): void {
    const acknowledge = (id: number, by: Parameters<typeof monitor.journal.acknowledge>[1]) => {
        const row = monitor.journal.acknowledge(id, by);
        if (row === null) {
            throw errors.notFound(`There is no alert ${id} that fires`);
        }
        const view = toAlertView(row);
        monitor.feed.publish('alert', view);
        return view;
    };
    ctx.route({
        method: 'POST',
        path: '/alerts/{id}/acknowledgement',
        id: 'acknowledgeAlert',
        access: 'write',
        summary: 'Say that you care for an alert',
        answers: 'done',
        ui: { title: 'Acknowledge', role: 'action' },
        returns: alertSchema,
        audit: { action: 'acknowledge', resource: 'alert' },
        description: 'It is told no more, but when it is over.',
        validate: {
            params,
            payload: joi.object({
                note: joi.string().max(500).allow('', null).default(null).label('Note')
            })
        },
        async handler({ params: { id }, payload: { note }, actor, audit }) {
            audit({ resourceId: id });
            const view = acknowledge(id, {
                name: actor.username ?? 'unknown',
                at: monitor.now(),
                note: note === '' ? null : note
            });
            await monitor.saveAlerts();
            return view;
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/alerts/{id}/acknowledgement',
        id: 'withdrawAcknowledgement',
        access: 'write',
        summary: 'Take back that you care for an alert',
        answers: 'done',
        ui: { title: 'Take back', role: 'action' },
        returns: alertSchema,
        audit: { action: 'withdraw', resource: 'alert' },
        validate: { params },
        async handler({ params: { id }, audit }) {
            audit({ resourceId: id });
            const view = acknowledge(id, null);
            await monitor.saveAlerts();
            return view;
        }
    });
}

/** Declares the routes below `/alerts`. */
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
