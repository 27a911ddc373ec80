/** Routes of networks and volumes. */
import { errors, joi, reply } from '@portico/sdk';

import type { EngineNetwork, EngineVolume } from '../engine/documents.ts';
import { fail } from '../errors.ts';
import { deviceOf } from '../policy/judge.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { isReservedLabel, labelOf } from '../spec/spec.ts';
import { labelMap, pageOf, paging } from './fields.ts';

const resourceName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
    .required()
    .label('Name');
const labels = labelMap
    .default({})
    .label('Labels')
    .meta({ ui: { advanced: true } });
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
const volumeSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    driver: joi.string().required().label('Driver'),
    mountpoint: joi.string().allow('').required().label('Folder'),
    bytes: joi
        .number()
        .allow(null)
        .required()
        .label('Size')
        .unit('byte')
        .description('Null: the engine does not say it here'),
    usedBy: joi
        .array()
        .items(joi.string())
        .required()
        .label('Used by')
        .meta({ ui: { column: 2 } }),
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
const volumeParams = joi.object({
    name: joi
        .string()
        .max(255)
        .required()
        .label('Volume')
        .meta({ ui: { ref: 'container.volumes' } })
});

/** Registers the routes of networks and volumes. */
export function registerResourceRoutes(ctx: Ctx, services: Services): void {
    registerNetworks(ctx, services);
    registerNetworkCreation(ctx, services);
    registerNetworkRemoval(ctx, services);
    registerVolumes(ctx, services);
    registerVolumeChanges(ctx, services);
}

/** @throws VALIDATION_FAILED 40001 for a label that says what belongs to which stack */
function checkLabels(given: Readonly<Record<string, string>>): void {
    const reserved = Object.keys(given).find(isReservedLabel);
    if (reserved !== undefined) {
        throw errors.invalid([
            { path: `labels.${reserved}`, message: 'This label is set by the panel alone' }
        ]);
    }
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
                    .max(50)
                    .label('Addresses')
                    .example('10.20.0.0/24')
                    .meta({ ui: { advanced: true } }),
                gateway: joi
                    .string()
                    .max(50)
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
        description: 'One that containers are in is 42254.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this network?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'network' },
        validate: { params: networkParams },
        async handler({ params, audit }) {
            const network = await findNetwork(services, params.id);
            audit({ resourceId: network.Name });
            await engine.call('DELETE', `/networks/${network.Id}`);
            return null;
        }
    });
}

async function usersOf({ inventory }: Services): Promise<ReadonlyMap<string, readonly string[]>> {
    const users = new Map<string, string[]>();
    for (const { Mounts: mounts, Names: names } of await inventory.list()) {
        for (const { Type, Name = '' } of mounts ?? []) {
            if (Type === 'volume') {
                users.set(Name, [...(users.get(Name) ?? []), (names[0] ?? '').replace(/^\//, '')]);
            }
        }
    }
    return users;
}

function volumeView(volume: EngineVolume, users: ReadonlyMap<string, readonly string[]>) {
    return {
        name: volume.Name,
        driver: volume.Driver,
        mountpoint: volume.Mountpoint,
        bytes: volume.UsageData?.Size ?? null,
        usedBy: [...(users.get(volume.Name) ?? [])],
        stack: volume.Labels?.[labelOf.project] ?? null
    };
}

/** @throws NOT_FOUND 40400 */
async function findVolume(services: Services, name: string): Promise<ReturnType<typeof volumeView>> {
    const found = (await services.inventory.volumes()).get(name);
    if (found === undefined) {
        throw errors.notFound('There is no volume of that name');
    }
    return volumeView(found, await usersOf(services));
}

function registerVolumes(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/volumes',
        id: 'volumes',
        access: 'read',
        summary: 'Volumes',
        ui: { title: 'Volumes', order: 5, label: 'name', empty: 'No volume yet' },
        returns: joi.array().items(volumeSchema),
        validate: { query: joi.object(paging) },
        async handler({ query }) {
            const [volumes, users] = await Promise.all([services.inventory.volumes(), usersOf(services)]);
            return pageOf(
                [...volumes.values()].map((volume) => volumeView(volume, users)),
                query,
                ({ name }) => name
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/volumes/{name}',
        id: 'volume',
        access: 'read',
        summary: 'One volume',
        returns: volumeSchema,
        validate: { params: volumeParams },
        handler: ({ params }) => findVolume(services, params.name)
    });
}

function registerVolumeChanges(ctx: Ctx, services: Services): void {
    const { engine, inventory } = services;
    ctx.route({
        method: 'POST',
        path: '/volumes',
        id: 'createVolume',
        access: 'write',
        summary: 'Make a volume',
        description: 'Options that mount a path are refused (42253).',
        answers: 'made',
        ui: { title: 'New volume', primary: true },
        returns: volumeSchema,
        audit: { action: 'create', resource: 'volume' },
        validate: {
            payload: joi.object({
                name: resourceName,
                driver: joi
                    .string()
                    .max(100)
                    .default('local')
                    .label('Driver')
                    .meta({ ui: { advanced: true } }),
                options: labelMap
                    .default({})
                    .label('Options')
                    .meta({ ui: { advanced: true } }),
                labels
            })
        },
        async handler({ payload, audit }) {
            const { name, driver, options } = payload;
            checkLabels(payload.labels);
            const device = deviceOf(driver, options);
            if (device !== null) {
                const finding = {
                    rule: 'volume-device',
                    level: 'refused',
                    service: null,
                    detail: device,
                    excepted: false
                };
                throw fail.POLICY_REFUSED({ findings: [finding] });
            }
            if ((await inventory.volumes()).has(name)) {
                throw errors.conflict('name');
            }
            await engine.call('POST', '/volumes/create', {
                body: { Name: name, Driver: driver, DriverOpts: options, Labels: payload.labels }
            });
            audit({ resourceId: name });
            return reply.created(
                `/api/plugins/${ctx.name}/volumes/${name}`,
                await findVolume(services, name)
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/volumes/{name}',
        id: 'removeVolume',
        access: 'write',
        summary: 'Remove a volume',
        description: 'One that a container has is 40901.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this volume? What is in it is lost.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'volume' },
        validate: { params: volumeParams },
        async handler({ params, audit }) {
            const { name, usedBy } = await findVolume(services, params.name);
            if (usedBy.length > 0) {
                throw errors.inUse(usedBy.join(', '));
            }
            audit({ resourceId: name });
            await engine.call('DELETE', `/volumes/${encodeURIComponent(name)}`);
            return null;
        }
    });
}
