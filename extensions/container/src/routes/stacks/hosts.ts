/** Routes of hosts that lead to containers. */
import { errors, joi, reply } from '@portico/sdk';

import type { HostView } from '../../hosts/hosts.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { pageOf, paging } from '../fields.ts';

const text = joi.string().allow(null).required();
const hostSchema = joi.object({
    id: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: false } }),
    domain: joi
        .string()
        .required()
        .label('Domain')
        .meta({ ui: { column: 1 } }),
    container: text.label('Container').meta({ ui: { column: 2 } }),
    stack: text.label('Stack').meta({ ui: { column: 3 } }),
    service: text.label('Service').meta({ ui: { column: 4 } }),
    port: joi
        .number()
        .integer()
        .required()
        .label('Port in the container')
        .meta({ ui: { column: 5 } }),
    scheme: joi.choice({ http: 'HTTP', https: 'HTTPS' }).required().label('Protocol of the container'),
    target: text.label('Leads to').description('Null while no container publishes the port'),
    host: joi.any().required().label('Host').description('As the panel shows it')
});
const newHost = joi.object({
    container: joi
        .string()
        .max(128)
        .label('Container')
        .meta({ ui: { ref: 'container.containers' } }),
    stack: joi
        .string()
        .max(128)
        .label('Stack')
        .description('With a service, instead of a container')
        .meta({ ui: { ref: 'container.stacks' } }),
    service: joi.string().max(63).label('Service'),
    port: joi.number().integer().min(1).max(65_535).required().label('Port in the container'),
    domain: joi.string().max(253).required().label('Domain').example('app.example.com'),
    aliases: joi
        .array()
        .items(joi.string().max(253).label('Name'))
        .max(100)
        .default([])
        .label('Further names')
        .meta({ ui: { widget: 'lines', advanced: true } }),
    scheme: joi
        .choice({ http: 'HTTP', https: 'HTTPS' })
        .default('http')
        .label('Protocol of the container')
        .meta({ ui: { advanced: true } }),
    ssl: joi.boolean().default(false).label('Serve HTTPS'),
    sslMode: joi
        .choice({ auto: 'From a certificate authority', internal: "From the engine's own authority" })
        .label('Certificate')
        .meta({ ui: { advanced: true } }),
    publish: joi
        .boolean()
        .default(false)
        .label('Publish the port')
        .description('The container is made again, with a free port of loopback')
});
const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Host')
        .meta({ ui: { ref: 'container.hosts' } })
});

const plain = (view: HostView) => ({ ...view, host: { ...view.host } });

/** Registers the routes of hosts. */
export function registerHostRoutes(ctx: Ctx, { hosts }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/hosts',
        id: 'hosts',
        access: 'read',
        summary: 'Hosts that lead to containers',
        ui: { title: 'Hosts', order: 5, label: 'domain', empty: 'No host leads to a container yet' },
        returns: joi.array().items(hostSchema),
        validate: { query: joi.object(paging) },
        handler: async ({ query }) =>
            pageOf((await hosts.list()).map(plain), query, ({ domain, id }) => `${domain} ${id}`)
    });
    ctx.route({
        method: 'POST',
        path: '/hosts',
        id: 'createHost',
        access: 'write',
        summary: 'Serve a port of a container under a name',
        description:
            'Needs hosts:write, too. The host follows: when the container is made or started anew, it leads to the new address. A port that is not published is 40901, unless `publish` has it published on loopback.',
        answers: 'made',
        timeoutSeconds: 300,
        ui: { title: 'New host', primary: true },
        returns: hostSchema,
        audit: { action: 'create', resource: 'host' },
        validate: { payload: newHost },
        async handler({ payload, actor, signal, audit }) {
            const { container = null, stack = null, service = null, ...rest } = payload;
            if ((container === null) === (stack === null) || (stack === null) !== (service === null)) {
                const message = 'Either a container, or a stack with a service';
                throw errors.invalid([{ path: 'container', message }]);
            }
            const view = await hosts.create({ ...rest, container, stack, service }, actor, signal);
            audit({ resourceId: view.id, after: payload });
            return reply.created(`/api/plugins/${ctx.name}/hosts/${view.id}`, plain(view));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/hosts/{id}',
        id: 'removeHost',
        access: 'write',
        summary: 'Remove a host that leads to a container',
        description: 'Needs hosts:write, too. The container goes on.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this host? The container goes on.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'host' },
        validate: { params },
        async handler({ params: { id }, actor, audit }) {
            audit({ resourceId: id, before: plain(await hosts.remove(id, actor)) });
            return null;
        }
    });
}
