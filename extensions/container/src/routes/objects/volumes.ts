/** Routes of volumes. */
import { errors, joi, reply } from '@portico/sdk';

import type { EngineVolume } from '../../engine/documents.ts';
import { deviceOf } from '../../policy/judge.ts';
import { policyRefused } from '../../policy/policy.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { labelOf } from '../../spec/spec.ts';
import { volumeInUse } from '../../volumes/archives.ts';
import { checkLabels, labelMap, labels, pageOf, paging, resourceName, volumeParams } from '../fields.ts';

const nullableText = joi.string().allow(null).required();
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

/** Registers the routes of volumes. */
export function registerVolumeRoutes(ctx: Ctx, services: Services): void {
    registerVolumes(ctx, services);
    registerVolumeChanges(ctx, services);
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
                const finding = { rule: 'volume-device', level: 'refused', service: null } as const;
                throw policyRefused([{ ...finding, detail: device, excepted: false }]);
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
        description: 'One that a container has is 40901, one of a stack that a plugin made 40950.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this volume? What is in it is lost.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'volume' },
        validate: { params: volumeParams },
        async handler({ params, audit }) {
            const { name, usedBy, stack } = await findVolume(services, params.name);
            await services.store.mustBeFree(stack);
            if (usedBy.length > 0) {
                throw volumeInUse(usedBy);
            }
            audit({ resourceId: name });
            await engine.call('DELETE', `/volumes/${encodeURIComponent(name)}`);
            return null;
        }
    });
}
