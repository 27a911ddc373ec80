/** Routes of the rules of the draft. */
import { isFailure, joi, pages, reply } from '@portico/sdk';

import type { Rule } from '../draft/model.ts';
import { changedRule, newRule } from '../draft/schema.ts';
import { type RuleView, ruleView } from '../draft/views.ts';
import { counterName } from '../ruleset/ruleset.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './id-params.ts';

type Counters = Awaited<ReturnType<Services['nft']['counters']>>;

/** Registers the routes below `/rules`. */
export function registerRuleRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerChanges(ctx, services);
    registerOrder(ctx, services);
}

function registerReads(ctx: Ctx, services: Services): void {
    const { draft, objects } = services;
    ctx.route({
        method: 'GET',
        path: '/rules',
        id: 'rules',
        access: 'read',
        summary: 'Rules of the draft',
        description:
            'In the order in which they are tried, with what they counted since they came into the kernel.',
        ui: { title: 'Rules', primary: true, order: 1, label: 'comment', empty: 'No rule yet' },
        returns: joi.array().items(ruleView),
        validate: {
            query: joi.object({
                ...pages.query(100, 2_000),
                q: joi
                    .string()
                    .max(100)
                    .label('Text')
                    .description('A part of the comment, of an address or of a port'),
                direction: joi
                    .choice({
                        in: 'To this machine',
                        out: 'From this machine',
                        forward: 'Through this machine',
                        container: 'To published ports'
                    })
                    .label('Direction'),
                zone: joi.string().max(30).label('Zone')
            })
        },
        async handler({ query }) {
            const model = await draft.model();
            const { rules } = model;
            const found = rules.filter(
                (rule) =>
                    (query.direction === undefined || rule.direction === query.direction) &&
                    (query.zone === undefined || rule.zone === query.zone) &&
                    (query.q === undefined || textOf(rule).includes(query.q.toLowerCase()))
            );
            const { rows, page } = pages.ordered(found, query);
            const [counters, warned] = [await countersOf(services), await services.foreign.warningsOf(model)];
            return reply.list(
                rows.map((rule) => viewOf(rule, rules, counters, warned)),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/rules/{id}',
        id: 'rule',
        access: 'read',
        summary: 'One rule of the draft',
        returns: ruleView,
        validate: { params: idParams },
        handler: async ({ params }) => view(services, await objects.get('rules', params.id))
    });
}

function registerChanges(ctx: Ctx, services: Services): void {
    const { objects } = services;
    ctx.route({
        method: 'POST',
        path: '/rules',
        id: 'createRule',
        access: 'write',
        summary: 'Make a rule in the draft',
        answers: 'made',
        ui: { title: 'New rule', primary: true },
        returns: ruleView,
        audit: { action: 'create', resource: 'rule' },
        validate: { payload: newRule },
        async handler({ payload, audit }) {
            const rule = await objects.create('rules', payload);
            audit({ resourceId: rule.id, after: rule });
            return reply.created(`/api/plugins/${ctx.name}/rules/${rule.id}`, await view(services, rule));
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/rules/{id}',
        id: 'updateRule',
        access: 'write',
        summary: 'Change a rule of the draft',
        answers: 'done',
        ui: { title: 'Change' },
        returns: ruleView,
        audit: { action: 'update', resource: 'rule' },
        validate: { params: idParams, payload: changedRule },
        async handler({ params, payload, ifMatch, audit }) {
            audit({ resourceId: params.id });
            const { before, after } = await objects.update('rules', params.id, payload, ifMatch);
            audit({ before, after });
            return view(services, after);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/rules/{id}',
        id: 'removeRule',
        access: 'write',
        summary: 'Remove a rule from the draft',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this rule from the draft?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'rule' },
        validate: { params: idParams },
        async handler({ params, ifMatch, audit }) {
            audit({ resourceId: params.id, before: await objects.remove('rules', params.id, ifMatch) });
            return null;
        }
    });
}

function registerOrder(ctx: Ctx, services: Services): void {
    const { objects } = services;
    ctx.route({
        method: 'POST',
        path: '/rules/order',
        id: 'orderRules',
        access: 'write',
        summary: 'Put the rules of the draft in another order',
        answers: 'done',
        ui: { title: 'Order', role: 'action' },
        returns: joi.array().items(ruleView),
        audit: { action: 'order', resource: 'rule' },
        validate: {
            payload: joi.object({
                ids: joi
                    .array()
                    .items(joi.number().integer().min(1))
                    .max(2_000)
                    .required()
                    .label('Rules')
                    .description('The id of each rule, once')
            })
        },
        async handler({ payload, audit }) {
            const rules = await objects.order(payload.ids);
            audit({ after: { ids: payload.ids } });
            const warned = await services.foreign.warningsOf(await services.draft.model());
            const counters = await countersOf(services);
            return rules.map((rule) => viewOf(rule, rules, counters, warned));
        }
    });
}

async function view(services: Services, rule: Rule): Promise<RuleView> {
    const model = await services.draft.model();
    return viewOf(rule, model.rules, await countersOf(services), await services.foreign.warningsOf(model));
}

function viewOf(
    rule: Rule,
    rules: readonly Rule[],
    counters: Counters,
    warned: (rule: Rule) => string[]
): RuleView {
    const counted = counters.get(counterName(rule.id));
    return {
        ...rule,
        ports: [...rule.ports],
        services: [...rule.services],
        sources: [...rule.sources],
        destinations: [...rule.destinations],
        position: rules.findIndex(({ id }) => id === rule.id) + 1,
        packets: counted?.packets ?? null,
        bytes: counted?.bytes ?? null,
        warnings: warned(rule)
    };
}

/** The counters of the kernel; none where it cannot be asked, since lists work without it. */
async function countersOf({ nft }: Services): Promise<Counters> {
    try {
        return await nft.counters();
    } catch (error) {
        if (isFailure(error)) {
            return new Map();
        }
        throw error;
    }
}

function textOf({ comment, sources, destinations, ports, services, zone }: Rule): string {
    return [comment, ...sources, ...destinations, ...ports, ...services, zone ?? ''].join(' ').toLowerCase();
}
