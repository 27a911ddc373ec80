/** Routes of networks. */
import { errors, joi, reply } from '@portico/sdk';

import type { EngineNetwork } from '../../engine/documents.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { labelOf } from '../../spec/spec.ts';
import { nameOf } from '../../stacks/planner.ts';
import { checkLabels, labels, pageOf, paging, resourceName } from '../fields.ts';

const nullableText = joi.string().allow(null).required();
const networkSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Id')
        .meta({ ui: { column: false } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    driver: joi
        .string()
        .required()
        .label('Driver')
        .meta({ ui: { column: 2 } }),
    internal: joi.boolean().required().label('Without a way out'),
    ipv6: joi.boolean().required().label('With IPv6'),
    subnet: nullableText.label('Addresses'),
    gateway: nullableText.label('Gateway'),
    stack: nullableText.label('Stack').meta({ ui: { column: 3 } })
});
const networkParams = joi.object({
    id: joi
        .string()
        .max(128)
        .required()
        .label('Network')
        .meta({ ui: { ref: 'container.networks' } })
});

/** Registers the routes of networks. */
export function registerNetworkRoutes(ctx: Ctx, services: Services): void {
    registerNetworks(ctx, services);
    registerNetworkCreation(ctx, services);
    registerNetworkRemoval(ctx, services);
    registerMembers(ctx, services);
}

function networkView(network: EngineNetwork) {
    const [config] = network.IPAM?.Config ?? [];
    return {
        id: network.Id,
        name: network.Name,
        driver: network.Driver,
        internal: network.Internal,
        ipv6: network.EnableIPv6,
        subnet: config?.Subnet ?? null,
        gateway: config?.Gateway ?? null,
        stack: network.Labels?.[labelOf.project] ?? null
    };
}

/** @throws NOT_FOUND 40400 */
async function findNetwork({ inventory }: Services, id: string): Promise<EngineNetwork> {
    const networks = await inventory.networks();
    const found = networks.get(id) ?? [...networks.values()].find((each) => each.Id === id);
    if (found === undefined) {
        throw errors.notFound('There is no network of that name');
    }
    return found;
}

function registerNetworks(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/networks',
        id: 'networks',
        access: 'read',
        summary: 'Networks',
        ui: { title: 'Networks', order: 4, label: 'name' },
        returns: joi.array().items(networkSchema),
        validate: { query: joi.object(paging) },
        async handler({ query }) {
            const networks = await services.inventory.networks();
            return pageOf([...networks.values()].map(networkView), query, ({ name }) => name);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/networks/{id}',
        id: 'network',
        access: 'read',
        summary: 'One network',
        returns: networkSchema,
        validate: { params: networkParams },
        handler: async ({ params }) => networkView(await findNetwork(services, params.id))
    });
}

function registerNetworkCreation(ctx: Ctx, services: Services): void {
    const { engine, inventory } = services;
    ctx.route({
        method: 'POST',
        path: '/networks',
        id: 'createNetwork',
        access: 'write',
        summary: 'Make a network',
        answers: 'made',
        ui: { title: 'New network', primary: true },
        returns: networkSchema,
        audit: { action: 'create', resource: 'network' },
        validate: {
            payload: joi.object({
                name: resourceName,
                driver: joi.choice({ bridge: 'Bridge' }).default('bridge').label('Driver'),
                internal: joi.boolean().default(false).label('Without a way out'),
                ipv6: joi
                    .boolean()
                    .default(false)
                    .label('With IPv6')
                    .meta({ ui: { advanced: true } }),
                subnet: joi
                    .string()
                    .pattern(/^[0-9A-Fa-f.:]{2,45}\/\d{1,3}$/, 'addresses such as 10.20.0.0/24')
                    .label('Addresses')
                    .example('10.20.0.0/24')
                    .meta({ ui: { advanced: true } }),
                gateway: joi
                    .string()
                    .pattern(/^[0-9A-Fa-f.:]{2,45}$/, 'an IP address')
                    .label('Gateway')
                    .meta({ ui: { advanced: true } }),
                labels
            })
        },
        async handler({ payload, audit }) {
            checkLabels(payload.labels);
            if ((await inventory.networks()).has(payload.name)) {
                throw errors.conflict('name');
            }
            const { name, driver, internal, ipv6, subnet, gateway } = payload;
            if (gateway !== undefined && subnet === undefined) {
                const message = 'A gateway needs the addresses that it is one of';
                throw errors.invalid([{ path: 'subnet', message }]);
            }
            const pool = {
                ...(subnet === undefined ? {} : { Subnet: subnet }),
                ...(gateway === undefined ? {} : { Gateway: gateway })
            };
            const { Id: id } = await engine.call<{ Id: string }>('POST', '/networks/create', {
                body: {
                    Name: name,
                    CheckDuplicate: true,
                    Driver: driver,
                    Internal: internal,
                    EnableIPv6: ipv6,
                    Labels: payload.labels,
                    ...(Object.keys(pool).length === 0 ? {} : { IPAM: { Config: [pool] } })
                }
            });
            audit({ resourceId: name });
            const view = networkView(await findNetwork(services, name));
            return reply.created(`/api/plugins/${ctx.name}/networks/${id}`, view);
        }
    });
}

function registerNetworkRemoval(ctx: Ctx, services: Services): void {
    const { engine } = services;
    ctx.route({
        method: 'DELETE',
        path: '/networks/{id}',
        id: 'removeNetwork',
        access: 'write',
        summary: 'Remove a network',
        description: 'One that containers are in is 40901, one of a stack that a plugin made 40950.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this network?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'network' },
        validate: { params: networkParams },
        async handler({ params, audit }) {
            const network = await findNetwork(services, params.id);
            await services.store.mustBeFree(network.Labels?.[labelOf.project] ?? null);
            audit({ resourceId: network.Name });
            const users = (await services.inventory.list())
                .filter(({ NetworkSettings: settings }) => network.Name in (settings?.Networks ?? {}))
                .map(nameOf);
            if (users.length > 0) {
                const names = users.join(', ');
                throw errors.inUse(
                    names,
                    `Containers are in this network: ${names}. Disconnect or remove them first`
                );
            }
            await engine.call('DELETE', `/networks/${network.Id}`);
            return null;
        }
    });
}

/** The container that is meant. */
const member = {
    container: joi
        .string()
        .max(128)
        .required()
        .label('Container')
        .meta({ ui: { ref: 'container.containers' } })
};

function registerMembers(ctx: Ctx, services: Services): void {
    const { containers, inventory, policy, engine } = services;
    ctx.route({
        method: 'POST',
        path: '/networks/{id}/connect',
        id: 'connectNetwork',
        access: 'write',
        summary: 'Connect a container to a network',
        description:
            'A container of a stack is changed by its compose file (40901), and the network of the machine is refused (42253).',
        answers: 'done',
        ui: { title: 'Connect' },
        returns: networkSchema,
        audit: { action: 'connect', resource: 'network' },
        validate: {
            params: networkParams,
            payload: joi.object({
                ...member,
                aliases: joi
                    .array()
                    .items(
                        joi
                            .string()
                            .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/, 'a name')
                            .label('Name')
                    )
                    .max(50)
                    .default([])
                    .label('Further names')
                    .meta({ ui: { widget: 'lines' } })
            })
        },
        async handler({ params, payload, audit }) {
            const network = await findNetwork(services, params.id);
            const { container, spec } = await inventory.known(payload.container);
            await containers.mustBeSingle(container);
            audit({ resourceId: network.Name, after: payload });
            const use = {
                name: network.Name,
                aliases: payload.aliases,
                external: true,
                driver: network.Driver
            };
            const judged = { service: null, spec: { ...spec, networks: [...spec.networks, use] } };
            policy.refuse(await policy.judge([judged], `container:${spec.name}`));
            await engine.call('POST', `/networks/${network.Id}/connect`, {
                body: { Container: container.Id, EndpointConfig: { Aliases: payload.aliases } }
            });
            return networkView(network);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/networks/{id}/disconnect',
        id: 'disconnectNetwork',
        access: 'write',
        summary: 'Disconnect a container from a network',
        answers: 'done',
        ui: { title: 'Disconnect' },
        returns: networkSchema,
        audit: { action: 'disconnect', resource: 'network' },
        validate: { params: networkParams, payload: joi.object(member) },
        async handler({ params, payload, audit }) {
            const network = await findNetwork(services, params.id);
            const container = await inventory.container(payload.container);
            await containers.mustBeSingle(container);
            audit({ resourceId: network.Name, after: payload });
            await engine.call('POST', `/networks/${network.Id}/disconnect`, {
                body: { Container: container.Id }
            });
            return networkView(network);
        }
    });
}
