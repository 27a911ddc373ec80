/** Routes of the tools and their switches. */
import { type Actor, errors, joi, pages, reply, type RouteInfo } from '@portico/sdk';

import type { ApprovalWay } from '../entities.ts';
import type { Services } from '../services.ts';
import { approvalWords, type Ctx } from '../settings.ts';
import { areaOf, type RouteTool } from '../tools/catalogue.ts';

const effects = { read: 'Reads', write: 'Changes', destructive: 'Removes' } as const;
const toolSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    route: joi.string().required().label('Route'),
    title: joi
        .string()
        .allow('')
        .required()
        .label('Title')
        .meta({ ui: { column: 2 } }),
    effect: joi
        .choice(effects)
        .required()
        .label('Effect')
        .meta({ ui: { column: 3, tones: { read: 'good', write: 'warning', destructive: 'bad' } } }),
    permission: joi.string().allow(null).required().label('Permission'),
    dangerous: joi.boolean().required().label('Dangerous'),
    enabled: joi
        .boolean()
        .required()
        .label('Switched on')
        .meta({ ui: { column: 4 } }),
    approval: joi
        .choice(approvalWords)
        .allow(null)
        .required()
        .label('Approval')
        .description('Empty: as the setting says'),
    allowed: joi.boolean().required().label('Yours').description('Your agents get it now')
});

/** Registers the routes below `/tools`. */
export function registerToolRoutes(ctx: Ctx, services: Services): void {
    const { catalogue, switches } = services;
    ctx.route({
        method: 'GET',
        path: '/tools',
        id: 'tools',
        access: 'read',
        summary: 'The tools that agents can get',
        returns: joi.array().items(toolSchema),
        ui: { title: 'Tools', label: 'name', order: 3, empty: 'No route is a tool' },
        validate: {
            query: joi.object({
                ...pages.query(100),
                q: joi.string().max(200).label('Search').description('A part of name or title'),
                area: joi.string().max(100).label('Area').description('First part of the route id'),
                effect: joi.choice(effects).label('Effect')
            })
        },
        async handler({ actor, query }) {
            const { tools, allowed } = await catalogue.all(actor);
            const q = query.q?.toLowerCase() ?? '';
            const wanted = tools.filter(
                ({ name, info }) =>
                    `${name} ${info.summary}`.toLowerCase().includes(q) &&
                    (query.area === undefined || areaOf(info) === query.area) &&
                    (query.effect === undefined || info.effect === query.effect)
            );
            const { rows, page } = pages.sorted(wanted, query, ({ name }) => name);
            return reply.list(
                rows.map((tool) => viewOf(tool, switches, allowed)),
                page
            );
        }
    });
    registerSwitch(ctx, services);
}

function registerSwitch(ctx: Ctx, { catalogue, switches, toolsChanged }: Services): void {
    const find = async (actor: Actor, name: string) => {
        const { tools, allowed } = await catalogue.all(actor);
        const tool = tools.find((each) => each.name === name);
        if (tool === undefined) {
            throw errors.notFound('There is no such tool');
        }
        return viewOf(tool, switches, allowed);
    };
    ctx.route({
        method: 'PUT',
        path: '/tools/{name}',
        id: 'switchTool',
        access: 'write',
        summary: 'Switch a tool, and say how its calls are approved',
        answers: 'done',
        returns: toolSchema,
        audit: { action: 'update', resource: 'tools' },
        validate: {
            params: joi.object({ name: joi.string().max(200).required().label('Name') }),
            payload: joi.object({
                enabled: joi.boolean().label('Switched on'),
                approval: joi
                    .choice(approvalWords)
                    .allow(null)
                    .label('Approval')
                    .description(
                        'Empty: as the setting says. What is dangerous is always approved in the panel, and what only reads needs no approval'
                    )
            })
        },
        async handler({ actor, params, payload, audit }) {
            const before = await find(actor, params.name);
            checkApproval(before, payload.approval ?? null);
            await switches.set(params.name, {
                ...(payload.enabled === undefined ? {} : { enabled: payload.enabled }),
                ...(payload.approval === undefined ? {} : { approval: payload.approval })
            });
            toolsChanged();
            const after = await find(actor, params.name);
            audit({ resourceId: params.name, before, after });
            return after;
        }
    });
}

/** What would be stored and never hold is refused. @throws VALIDATION_FAILED 40001 */
function checkApproval(
    { dangerous, effect }: Pick<RouteInfo, 'dangerous' | 'effect'>,
    approval: ApprovalWay | null
): void {
    const message =
        dangerous && approval !== 'panel'
            ? 'What is dangerous is always approved in the panel'
            : !dangerous && effect === 'read' && approval !== 'none'
              ? 'What only reads needs no approval'
              : null;
    if (message !== null && approval !== null) {
        throw errors.invalid([{ path: 'approval', message }]);
    }
}

function viewOf({ name, info }: RouteTool, switches: Services['switches'], allowed: ReadonlySet<string>) {
    const { id: route, summary: title, effect, permission, dangerous } = info;
    return {
        name,
        route,
        title,
        effect,
        permission,
        dangerous,
        ...switches.of(name),
        allowed: allowed.has(name)
    };
}
