/** The routes of policies. */
import { maskArguments, type ToolArguments } from '@portico/agents';
import { joi, pages, reply, type Value } from '@portico/sdk';

import type { PolicyRow, PolicyRunRow } from '../entities.ts';
import { actionIn } from '../policies/policies.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { version } from '../version-field.ts';

const part = joi.object({}).unknown();
const action = joi
    .object({
        route: joi.string().max(200).required().label('Route').example('container.restart'),
        params: part.label('Parameters'),
        query: part.label('Query'),
        payload: joi.any().label('Body')
    })
    .label('What it calls');
const name = joi
    .string()
    .trim()
    .min(1)
    .max(80)
    .label('Name')
    .meta({ ui: { column: 1 } });
const event = joi
    .string()
    .pattern(/^[a-z0-9.*-]{1,100}$/)
    .label('Event')
    .description('Of notifications; * is any text')
    .example('monitoring.alert-*')
    .meta({ ui: { column: 2 } });
const severity = joi.typed<'info' | 'warning' | 'error' | null | undefined>(
    joi
        .choice({ info: 'Information', warning: 'Warning', error: 'Error' })
        .allow(null)
        .label('Severity')
        .description('Null: any')
);
const text = joi.typed<string | null | undefined>(
    joi.string().min(1).max(200).allow(null).label('Text').description('A part of what the notification says')
);
const mode = joi
    .choice({ suggest: 'Suggests', ask: 'Asks first' })
    .label('Mode')
    .description('It acts by itself only once it is authorized')
    .meta({ ui: { column: 3 } });
const cooldownSeconds = joi.number().integer().min(300).max(604_800).label('Pause after each').unit('second');
const perDay = joi.number().integer().min(1).max(100).label('Times a day');
const enabled = joi
    .boolean()
    .label('Enabled')
    .meta({ ui: { column: 4 } });

const policySchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: version.required(),
    name: name.required(),
    event: event.required(),
    severity: joi.string().allow(null).required().label('Severity'),
    text: joi.string().allow(null).required().label('Text'),
    action: action.required(),
    mode: joi
        .choice({ suggest: 'Suggests', ask: 'Asks first', auto: 'Acts' })
        .required()
        .label('Mode')
        .meta({ ui: { column: 3 } }),
    cooldownSeconds: cooldownSeconds.required(),
    perDay: perDay.required(),
    enabled: enabled.required(),
    username: joi.string().allow('').required().label('Owner')
});
const runSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 1 } }),
    event: joi
        .string()
        .required()
        .label('Event')
        .meta({ ui: { column: 2 } }),
    title: joi.string().allow('').required().label('Notification'),
    state: joi
        .choice({
            suggested: 'Suggested',
            asked: 'Asks',
            done: 'Done',
            failed: 'Failed',
            limited: 'Too often'
        })
        .required()
        .label('State')
        .meta({
            ui: {
                column: 3,
                tones: {
                    suggested: 'neutral',
                    asked: 'busy',
                    done: 'good',
                    failed: 'bad',
                    limited: 'warning'
                }
            }
        }),
    code: joi.number().integer().allow(null).required().label('Code'),
    approvalId: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Approval')
        .meta({ ui: { ref: 'ai.approvals' } })
});
const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Policy')
        .meta({ ui: { ref: 'ai.policies' } })
});
const newPolicy = joi.object({
    name: name.required(),
    event: event.required(),
    severity,
    text,
    action: action.required(),
    mode: mode.default('suggest'),
    cooldownSeconds: cooldownSeconds.default(3_600),
    perDay: perDay.default(3),
    enabled: enabled.default(true)
});
const changedPolicy = joi.object({
    name,
    event,
    severity,
    text,
    action,
    mode,
    cooldownSeconds,
    perDay,
    enabled,
    version
});

/** Declares the routes below `/policies`. */
export function registerPolicyRoutes(ctx: Ctx, services: Services): void {
    const viewOf = async (row: PolicyRow): Promise<Value<typeof policySchema>> => {
        const { route, ...given } = await services.policies.actionOf(row);
        const [info] = (await ctx.api.routes()).filter(({ id }) => id === route);
        const shown = maskArguments(info ?? { params: null, query: null, payload: null }, given);
        return policyOf(row, { route, ...shown });
    };
    registerAll(ctx, services, viewOf);
    registerOne(ctx, services, viewOf);
    registerRest(ctx, services, viewOf);
}

type View = (row: PolicyRow) => Promise<Value<typeof policySchema>>;

function registerAll(ctx: Ctx, { policies }: Services, viewOf: View): void {
    ctx.route({
        method: 'GET',
        path: '/policies',
        id: 'policies',
        access: 'inspect',
        summary: 'Policies: what happens when a notification comes',
        ui: { title: 'Policies', order: 10, label: 'name', empty: 'No policy yet' },
        returns: joi.array().items(policySchema),
        async handler() {
            const all = await policies.list();
            return reply.list(await Promise.all(all.map(viewOf)), { total: all.length });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/policies',
        id: 'createPolicy',
        access: 'manage',
        summary: 'Make a policy',
        answers: 'made',
        ui: { title: 'New policy' },
        audit: { action: 'create', resource: 'policy' },
        validate: { payload: newPolicy },
        returns: policySchema,
        async handler({ actor, payload, audit }) {
            const made = await policies.create(actor, {
                ...payload,
                severity: payload.severity ?? null,
                text: payload.text ?? null,
                action: actionIn(payload.action)
            });
            const view = await viewOf(made);
            audit({ resourceId: made.id, after: view });
            return reply.created(`/api/plugins/${ctx.name}/policies/${made.id}`, view);
        }
    });
}

function registerOne(ctx: Ctx, { policies }: Services, viewOf: View): void {
    ctx.route({
        method: 'GET',
        path: '/policies/{id}',
        id: 'policy',
        access: 'inspect',
        summary: 'One policy',
        validate: { params },
        returns: policySchema,
        handler: async ({ params: { id } }) => reply.with(await viewOf(await policies.get(id)), {})
    });
    ctx.route({
        method: 'PUT',
        path: '/policies/{id}',
        id: 'changePolicy',
        access: 'manage',
        summary: 'Change a policy',
        description: 'A change of anything but name and switch ends the right to act by itself.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'policy' },
        validate: { params, payload: changedPolicy },
        returns: policySchema,
        async handler({
            actor,
            params: { id },
            payload: { version: seen, action: given, ...change },
            ifMatch,
            audit
        }) {
            const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
            const row = await policies.update(
                actor,
                id,
                { ...set, ...(given === undefined ? {} : { action: actionIn(given) }) },
                seen ?? ifMatch
            );
            const after = await viewOf(row);
            audit({ resourceId: id, after });
            return reply.with(after, {});
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/policies/{id}',
        id: 'removePolicy',
        access: 'manage',
        summary: 'Remove a policy, and its right to act',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this policy?' },
        audit: { action: 'delete', resource: 'policy' },
        validate: { params },
        returns: joi.valid(null),
        async handler({ params: { id }, audit }) {
            const { name: removed } = await policies.remove(id);
            audit({ resourceId: id, before: { name: removed } });
            return reply.with(null, {});
        }
    });
}

function registerRest(ctx: Ctx, { policies }: Services, viewOf: View): void {
    ctx.route({
        method: 'POST',
        path: '/policies/{id}/authorize',
        id: 'authorizePolicy',
        access: 'manage',
        stepUp: true,
        summary: 'Let a policy act by itself, with your rights',
        description: 'Gives a mandate for its route, revocable among the API tokens.',
        answers: 'done',
        ui: { title: 'Let it act', role: 'action', confirm: 'Let it act without asking, with your rights?' },
        audit: { action: 'authorize', resource: 'policy' },
        validate: { params },
        returns: policySchema,
        async handler({ actor, params: { id }, audit }) {
            const row = await policies.authorize(actor, id);
            audit({ resourceId: id, after: { mode: row.mode, route: row.route } });
            return reply.with(await viewOf(row), {});
        }
    });
    ctx.route({
        method: 'GET',
        path: '/policies/{id}/runs',
        id: 'policyRuns',
        access: 'inspect',
        summary: 'What a policy did',
        ui: { title: 'Runs', label: 'event', empty: 'It did nothing yet' },
        validate: { params, query: joi.object(pages.query()) },
        returns: joi.array().items(runSchema),
        async handler({ params: { id }, query }) {
            const { id: own } = await policies.get(id);
            const found = await policies.runs(own, { before: pages.afterNumber(query), limit: query.limit });
            const { rows, page } = pages.read(found, query.limit, (row) => row.id);
            return reply.list(rows.map(runOf), page);
        }
    });
}

function policyOf(
    row: PolicyRow,
    shown: { readonly route: string } & ToolArguments
): Value<typeof policySchema> {
    const { id, name: named, event: on, mode: how, cooldownSeconds: pause, perDay: most, username } = row;
    return {
        id,
        version: row.version,
        name: named,
        event: on,
        severity: row.severity ?? null,
        text: row.text ?? null,
        action: { ...shown } as Value<typeof action>,
        mode: how,
        cooldownSeconds: pause,
        perDay: most,
        enabled: row.enabled,
        username
    };
}

function runOf({ id, at, event: on, title, state, code, approvalId }: PolicyRunRow): Value<typeof runSchema> {
    return {
        id,
        at: new Date(at).toISOString(),
        event: on,
        title,
        state,
        code: code ?? null,
        approvalId: approvalId ?? null
    };
}
