/** The routes of alert rules. */
import { joi, reply } from '@portico/sdk';

import { changedRule, newRule, ruleSchema } from '../alerts/schema.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Rule')
        .meta({ ui: { ref: 'monitoring.rules' } })
});

/** Declares `/rules` and `/rules/{id}`. */
export function registerRuleRoutes(ctx: Ctx, { monitor }: Services): void {
    const { rules } = monitor;
    ctx.route({
        method: 'GET',
        path: '/rules',
        id: 'rules',
        access: 'read',
        summary: 'Alert rules',
        ui: { title: 'Rules', order: 3, label: 'name', empty: 'No rule yet' },
        returns: joi.array().items(ruleSchema),
        async handler() {
            const all = await rules.list();
            return reply.list(all, { total: all.length });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/rules',
        id: 'createRule',
        access: 'write',
        summary: 'Make an alert rule',
        answers: 'made',
        ui: { title: 'New rule' },
        returns: ruleSchema,
        audit: { action: 'create', resource: 'rule' },
        description:
            'A rule on `disk.usedPercent` watches every disk by itself; one on `disk.usedPercent:/srv` only that one.',
        validate: { payload: newRule },
        async handler({ payload, audit }) {
            const rule = await rules.create(payload, { ifMatch: null, audit });
            return reply.created(`/api/plugins/${ctx.name}/rules/${rule.id}`, rule);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/rules/{id}',
        id: 'rule',
        access: 'read',
        summary: 'One alert rule',
        returns: ruleSchema,
        validate: { params },
        handler: async ({ params: { id } }) => reply.with(await rules.get(id), {})
    });
    ctx.route({
        method: 'PUT',
        path: '/rules/{id}',
        id: 'changeRule',
        access: 'write',
        summary: 'Change an alert rule',
        answers: 'done',
        ui: { title: 'Change' },
        returns: ruleSchema,
        audit: { action: 'update', resource: 'rule' },
        description:
            "Another metric or operator, and switching it off, end the rule's alerts; another threshold moves them with the next sample.",
        validate: { params, payload: changedRule },
        handler: async ({ params: { id }, payload, ifMatch, audit }) =>
            reply.with(await rules.update(id, payload, { ifMatch, audit }), {})
    });
    ctx.route({
        method: 'DELETE',
        path: '/rules/{id}',
        id: 'removeRule',
        access: 'write',
        summary: 'Remove an alert rule',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this rule? Its alerts end.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'rule' },
        description: 'Its alerts end.',
        validate: { params },
        async handler({ params: { id }, ifMatch, audit }) {
            await rules.remove(id, { ifMatch, audit });
            return reply.with(null, {});
        }
    });
}
