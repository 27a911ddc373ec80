/** Routes of servers that the panel runs. */
import { errors, joi, reply, taskSchema } from '@portico/sdk';

import { presetWords } from '../managed/engine.ts';
import { isAllowedHost, normalNetwork } from '../managed/network/remote.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { serverParams } from './parameters.ts';

const changes = [
    { change: 'start', title: 'Start', confirm: undefined },
    {
        change: 'stop',
        title: 'Stop',
        confirm: 'Stop this server? What uses its databases fails until it is started again.'
    },
    { change: 'restart', title: 'Restart', confirm: 'Restart this server? Its sessions end.' }
] as const;
const optionValue = joi.alternatives(joi.number(), joi.boolean(), joi.string().max(200), joi.valid(null));
const configSchema = joi.array().items(
    joi.object({
        name: joi
            .string()
            .required()
            .label('Option')
            .meta({ ui: { column: 1 } }),
        value: optionValue
            .allow(null)
            .required()
            .label('Value')
            .meta({ ui: { column: 2 } }),
        default: optionValue.required().label('Default of the server'),
        source: joi
            .choice({ default: 'The server', preset: 'The preset', set: 'Set by hand' })
            .required()
            .label('Comes from')
            .meta({ ui: { column: 3 } }),
        restart: joi.boolean().required().label('Needs a restart'),
        pending: joi
            .boolean()
            .required()
            .label('Waits for a restart')
            .meta({ ui: { column: 4 } })
    })
);

/** Registers start, stop, restart, access of other machines, logs and configuration. */
export function registerManagedRoutes(ctx: Ctx, services: Services): void {
    registerActions(ctx, services);
    registerAccess(ctx, services);
    registerLogs(ctx, services);
    registerConfig(ctx, services);
}

function registerActions(ctx: Ctx, { managed }: Services): void {
    for (const { change, title, confirm } of changes) {
        ctx.route({
            method: 'POST',
            path: `/servers/{id}/${change}`,
            id: `${change}Server`,
            access: 'operate',
            summary: `${title} a server that the panel runs`,
            answers: 'task',
            ui: { title, role: 'action', ...(confirm === undefined ? {} : { confirm }) },
            returns: taskSchema,
            audit: { action: change, resource: 'server' },
            validate: { params: serverParams },
            async handler({ params, actor, audit }) {
                audit({ resourceId: params.id });
                return reply.accepted(await managed.change(params.id, change, actor));
            }
        });
    }
}

function registerAccess(ctx: Ctx, { managed, managedRows, target }: Services): void {
    ctx.route({
        method: 'PUT',
        path: '/servers/{id}/access',
        id: 'serverAccess',
        access: 'write',
        stepUp: true,
        summary: 'Let other machines reach a server that the panel runs',
        description:
            'Over TLS only, with the certificate that is then the field `ca` of the server; the server restarts. PostgreSQL lets every account in from the networks. In MariaDB an account says where it comes from, which has to be this machine or one of the networks; every connection but those by the socket needs TLS then.',
        answers: 'task',
        ui: { title: 'Access', role: 'action', confirm: 'Change who reaches this server? Its sessions end.' },
        returns: taskSchema,
        audit: { action: 'open', resource: 'server' },
        validate: {
            params: serverParams,
            payload: joi.object({
                remote: joi.boolean().required().label('Reached from other machines'),
                allow: joi
                    .array()
                    .items(joi.string().max(64))
                    .max(100)
                    .label('From these networks')
                    .description('Such as 10.0.0.0/8')
                    .meta({ ui: { widget: 'lines' } })
            })
        },
        async handler({ params: { id }, payload, actor, audit }) {
            const { server, managed: before } = await managedRows.get(id);
            const allow =
                payload.allow?.map((each, index) => normalNetwork(each, `allow.${index}`)) ?? before.allow;
            audit({ resourceId: id, after: { remote: payload.remote, allow } });
            if (payload.remote && before.runtime === 'container') {
                const message =
                    'A container of the panel is reached from this machine alone: run the server natively';
                throw errors.invalid([{ path: 'remote', message }]);
            }
            if (payload.remote && allow.length === 0) {
                throw errors.invalid([{ path: 'allow', message: 'Say which networks may reach it' }]);
            }
            if (payload.remote && server.kind === 'mysql') {
                const { kind, admin } = await target(id);
                const strange = (await kind.accounts.list(admin)).find(
                    ({ host, system }) => !system && !isAllowedHost(host ?? '', allow)
                );
                if (strange !== undefined) {
                    throw errors.inUse(
                        `the account ${kind.accounts.format(strange)}, which comes from elsewhere`
                    );
                }
            }
            return reply.accepted(await managed.open(id, { remote: payload.remote, allow }, actor));
        }
    });
}

function registerLogs(ctx: Ctx, { managedRows, programs }: Services): void {
    ctx.stream({
        path: '/servers/{id}/logs',
        id: 'serverLogs',
        access: 'logs',
        summary: 'What a server logs',
        ui: { title: 'Log', role: 'log' },
        validate: {
            params: serverParams,
            query: joi.object({
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
            await managedRows.get(params.id);
            const options = { tail: query.lines, follow: query.follow, signal };
            for await (const line of programs.lines(params.id, options)) {
                yield { event: 'line' as const, data: { line } };
            }
        }
    });
}

function registerConfig(ctx: Ctx, { configurations }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/config',
        id: 'serverConfig',
        access: 'read',
        summary: 'Options of a server that the panel runs',
        ui: { title: 'Options', label: 'name' },
        returns: configSchema,
        validate: { params: serverParams },
        handler: async ({ params }) => [...(await configurations.list(params.id))]
    });
    ctx.route({
        method: 'PUT',
        path: '/servers/{id}/config',
        id: 'changeServerConfig',
        access: 'write',
        summary: 'Change options of a server that the panel runs',
        description:
            'What is not sent stays; null takes an option back to the preset. What needs a restart waits for it.',
        answers: 'done',
        ui: { title: 'Change options' },
        returns: configSchema,
        audit: { action: 'configure', resource: 'server' },
        validate: {
            params: serverParams,
            payload: joi.object({
                preset: joi.choice(presetWords).label('Preset'),
                values: joi.record(optionValue).label('Options')
            })
        },
        async handler({ params, payload, audit }) {
            audit({ resourceId: params.id, after: payload });
            const { preset, values } = payload;
            return [...(await configurations.change(params.id, { preset, values }))];
        }
    });
}
