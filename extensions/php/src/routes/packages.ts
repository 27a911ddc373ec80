/** Routes that install and remove releases of PHP and their extensions. */
import { errors, joi, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { acceptTask } from '../task-replies.ts';

const release = joi
    .string()
    .pattern(/^\d{1,2}\.\d{1,2}$/)
    .required()
    .label('Release')
    .example('8.2');
const releaseParams = joi.object({ release });

/** Registers the routes of packages. */
export function registerPackageRoutes(ctx: Ctx, services: Services): void {
    registerReleases(ctx, services);
    registerExtensions(ctx, services);
    registerExtensionChange(ctx, services);
}

function registerReleases(ctx: Ctx, { packages, releases, store }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/versions',
        id: 'installVersion',
        access: 'install',
        stepUp: true,
        summary: 'Install a release of PHP',
        description: 'As packages of Debian. What apt-get says is the log of the task; 42253 when it fails.',
        answers: 'task',
        ui: { title: 'Install a release', role: 'action' },
        audit: { action: 'install', resource: 'php' },
        validate: { payload: joi.object({ release }) },
        returns: taskSchema,
        handler: ({ payload, actor, audit }) => {
            audit({ resourceId: payload.release });
            const description = {
                kind: 'install',
                access: 'install',
                actor,
                resource: payload.release,
                key: 'packages'
            };
            return acceptTask(
                ctx,
                { ...description, title: `Install PHP ${payload.release}` },
                async (run) => {
                    await packages.install(payload.release, run.signal, run.log);
                    return releases.get(payload.release);
                }
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/versions/{release}',
        id: 'removeVersion',
        access: 'install',
        stepUp: true,
        summary: 'Remove a release of PHP',
        description: 'One that has sites is refused (40901).',
        answers: 'task',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this release of PHP from the machine?' },
        audit: { action: 'remove', resource: 'php' },
        validate: { params: releaseParams },
        returns: taskSchema,
        async handler({ params, actor, audit }) {
            await releases.get(params.release);
            const used = (await store.all()).filter((site) => site.release === params.release);
            if (used.length > 0) {
                throw errors.inUse(used.map(({ name }) => name));
            }
            audit({ resourceId: params.release });
            const description = {
                kind: 'remove',
                access: 'install',
                actor,
                resource: params.release,
                key: 'packages'
            };
            return acceptTask(ctx, { ...description, title: `Remove PHP ${params.release}` }, (run) =>
                packages.remove(params.release, run.signal, run.log)
            );
        }
    });
}

function registerExtensions(ctx: Ctx, { packages }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/versions/{release}/extensions',
        id: 'extensions',
        access: 'read',
        summary: 'The extensions of a release',
        ui: { title: 'Extensions', label: 'name' },
        validate: { params: releaseParams },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Extension')
                    .meta({ ui: { column: 1 } }),
                state: joi
                    .choice({
                        builtin: 'Part of PHP',
                        enabled: 'Enabled',
                        disabled: 'Disabled',
                        available: 'Can be installed'
                    })
                    .required()
                    .label('State')
                    .meta({
                        ui: { column: 2, tones: { enabled: 'good', builtin: 'good', disabled: 'neutral' } }
                    })
            })
        ),
        handler: async ({ params }) => [...(await packages.extensions(params.release))]
    });
}

function registerExtensionChange(ctx: Ctx, { changes, packages, releases, store }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/versions/{release}/extensions',
        id: 'changeExtension',
        access: 'install',
        stepUp: true,
        summary: 'Install, remove, enable or disable an extension',
        description: 'The sites of the release are then reloaded.',
        answers: 'task',
        ui: { title: 'Change an extension', role: 'action' },
        audit: { action: 'change-extension', resource: 'php' },
        validate: {
            params: releaseParams,
            payload: joi.object({
                name: joi
                    .string()
                    .pattern(/^[a-z][a-z0-9_-]{0,39}$/)
                    .required()
                    .label('Extension'),
                action: joi
                    .choice({ install: 'Install', remove: 'Remove', enable: 'Enable', disable: 'Disable' })
                    .required()
                    .label('Action')
            })
        },
        returns: taskSchema,
        async handler({ params, payload, actor, audit }) {
            await releases.get(params.release);
            const { name, action } = payload;
            audit({ resourceId: `${params.release} ${name}`, after: { action } });
            const description = {
                kind: 'extension',
                access: 'install',
                actor,
                resource: params.release,
                key: 'packages'
            };
            return acceptTask(
                ctx,
                { ...description, title: `${action} ${name} of PHP ${params.release}` },
                async (run) => {
                    await packages.change(params.release, name, action, run.signal, run.log);
                    for (const site of await store.all()) {
                        if (site.release === params.release && (await changes.isRunning(site))) {
                            await changes.reload(site);
                            run.log(`${site.name} is reloaded`);
                        }
                    }
                }
            );
        }
    });
}
