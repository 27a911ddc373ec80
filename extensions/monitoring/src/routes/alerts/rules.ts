/** The routes of alert rules. */
import { type Actor, joi, pages, reply } from '@portico/sdk';

import type { ActionState } from '../../actions/actions.ts';
import { changedRule, newRule, ruleSchema } from '../../alerts/schema.ts';
import { askPanel } from '../../findings/panel.ts';
import { matchesAny } from '../../sampling/glob.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Rule')
        .meta({ ui: { ref: 'monitoring.rules' } })
});

const actionSchema = joi.object({
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 1 } }),
    alertId: joi
        .number()
        .integer()
        .required()
        .label('Alert')
        .meta({ ui: { ref: 'monitoring.alerts', column: 2 } }),
    state: joi
        .valid('done', 'failed', 'limited')
        .required()
        .label('State')
        .description('`limited`: not called, since one ran, or too many did')
        .meta({ ui: { column: 3, tones: { done: 'good', failed: 'bad', limited: 'neutral' } } }),
    code: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Code')
        .description('Of the answer; 0 for success, 40103 without an authorization, null where there is none')
        .meta({ ui: { column: 4 } })
});

/** Declares `/rules/{id}/test`, `/authorize` and `/actions`. */
export function registerRuleWork(ctx: Ctx, { monitor, tries }: Services): void {
    const { rules } = monitor;
    ctx.route({
        method: 'POST',
        path: '/rules/{id}/test',
        id: 'testRule',
        access: 'write',
        summary: "Send a test notification by a rule's channels",
        answers: 'done',
        ui: { title: 'Test', role: 'action' },
        returns: joi.object({
            delivered: joi
                .array()
                .items(joi.number().integer())
                .required()
                .label('Delivered to')
                .description(
                    'Ids of the channels that it was handed to, as far as the caller may see channels'
                )
        }),
        audit: { action: 'test', resource: 'rule' },
        validate: { params },
        async handler({ params: { id }, actor, signal, audit }) {
            audit({ resourceId: id });
            const { name, channels } = await rules.get(id);
            tries.take(actor);
            await ctx.notify({
                event: 'alert-test',
                severity: 'info',
                title: `Test: ${name}`,
                text: 'This is how alerts of the rule are told',
                data: { ruleId: id },
                ...(channels === null ? {} : { channels })
            });
            return { delivered: await findChannels(ctx, { actor, signal, wanted: channels }) };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/rules/{id}/authorize',
        id: 'authorizeRule',
        access: 'control',
        summary: 'Let a rule call its route in your name',
        description:
            'Never more than you may do yourself. You revoke it among your API tokens; it ends with the rule, and with a change of what it does or when.',
        answers: 'done',
        ui: { title: 'Authorize', role: 'action', confirm: 'Let this rule act in your name?' },
        stepUp: true,
        returns: ruleSchema,
        audit: { action: 'authorize', resource: 'rule' },
        validate: { params },
        async handler({ params: { id }, actor, audit }) {
            audit({ resourceId: id });
            return reply.with(await rules.authorize(id, actor), {});
        }
    });
    registerActions(ctx, monitor);
}

function registerActions(ctx: Ctx, { rules, actions }: Services['monitor']): void {
    ctx.route({
        method: 'GET',
        path: '/rules/{id}/actions',
        id: 'ruleActions',
        access: 'read',
        summary: 'What a rule has called',
        ui: { title: 'Actions', empty: 'Nothing was called yet' },
        returns: joi.array().items(actionSchema),
        description: 'Newest first.',
        validate: { params, query: joi.object({ ...pages.query() }) },
        async handler({ params: { id }, query }) {
            await rules.get(id);
            const found = await actions.list(id, pages.afterNumber(query), query.limit + 1);
            const { rows, page } = pages.read(found, query.limit, (row) => row.id);
            return reply.list(
                rows.map(({ at, alert, state, code }) => ({
                    at: new Date(at).toISOString(),
                    alertId: alert,
                    state: state as ActionState,
                    code: code ?? null
                })),
                page
            );
        }
    });
}

/** Channels that an event of alerts goes to; those that a rule names where the caller may not see channels. */
async function findChannels(
    ctx: Ctx,
    {
        actor,
        signal,
        wanted
    }: { readonly actor: Actor; readonly signal: AbortSignal; readonly wanted: readonly number[] | null }
): Promise<number[]> {
    const rows = await askPanel({ ctx, actor, signal }, 'channels.list');
    if (!Array.isArray(rows)) {
        return [...(wanted ?? [])];
    }
    const event = `${ctx.name}.alert-test`;
    const channels = rows as readonly { id: number; enabled: boolean; events: readonly string[] }[];
    return channels
        .filter(
            ({ id, enabled, events }) =>
                enabled &&
                (wanted === null
                    ? events.some((pattern) => matchesAny(event, [pattern]))
                    : wanted.includes(id))
        )
        .map(({ id }) => id);
}

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
        async handler({ actor }) {
            const all = await rules.list(actor.can('write'));
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
        handler: async ({ params: { id }, actor }) => reply.with(await rules.get(id, actor.can('write')), {})
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
            "Another metric or operator, and switching it off, end the rule's alerts; another threshold moves them with the next sample. Another action, metric, operator, threshold or time ends what a person authorized.",
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
