/** Routes of installed apps. */
import { joi, pages, reply, taskSchema } from '@portico/sdk';

import { secretNames } from '../catalogue/form.ts';
import type { InstallInput } from '../install/planning/drafts.ts';
import { installedView, planView } from '../install/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import {
    appName,
    autoUpdate,
    consent,
    installedParams,
    installedSchema,
    limits,
    planSchema,
    publish,
    sourceName
} from './schemas.ts';

const values = joi
    .record(joi.alternatives(joi.string().allow('').max(4_096), joi.number(), joi.boolean()).allow(null))
    .label('Values')
    .description('By the names of the form; null takes the default');
const domain = joi
    .string()
    .domain({ tlds: false })
    .max(253)
    .allow(null)
    .label('Domain')
    .description('A host is made for it')
    .meta({ ui: { widget: 'host' } });
const installFields = {
    source: sourceName.required(),
    app: joi.string().max(63).required().label('App'),
    version: joi
        .string()
        .max(64)
        .label('Version')
        .description('Refused when the source has another one')
        .meta({ ui: { advanced: true } }),
    name: appName.description('Default: the id of the app'),
    values: values.default({}),
    domain,
    ssl: joi.boolean().default(false).label('Certificate'),
    sslMode: joi
        .string()
        .max(40)
        .allow(null)
        .label('Kind of certificate')
        .meta({ ui: { advanced: true } }),
    publish: publish.default([]),
    limits: limits.default({}),
    autoUpdate: autoUpdate.default('off'),
    reuseData: joi
        .boolean()
        .default(false)
        .label('Take up data that it left')
        .meta({ ui: { advanced: true } }),
    acknowledgeUnsigned: joi
        .boolean()
        .default(false)
        .label('It may be unsigned')
        .meta({ ui: { advanced: true } }),
    consent
};

/** Registers the routes of installed apps. */
export function registerInstalledRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerInstall(ctx, services);
    registerChange(ctx, services);
    registerRemoval(ctx, services);
    for (const action of ['start', 'stop', 'restart'] as const) {
        registerControl(ctx, services, action);
    }
    registerKeptData(ctx, services);
}

/** The view of an installed app now. */
export async function viewOf(ctx: Ctx, { store, updates }: Services, name: string) {
    const row = await store.get(name);
    const waiting = await updates.waiting(row);
    return installedView({ ctx, store }, row, waiting?.row.version ?? null);
}

function registerReads(ctx: Ctx, services: Services): void {
    const { store, updates } = services;
    ctx.route({
        method: 'GET',
        path: '/installed',
        id: 'installed',
        access: 'read',
        summary: 'Installed apps',
        ui: { title: 'Installed', primary: true, order: 1, label: 'name', empty: 'No app is installed' },
        returns: joi.typed<unknown>(joi.array().items(installedSchema)),
        validate: { query: joi.object(pages.query()) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await store.list(), query, ({ name }) => name);
            const views = await Promise.all(
                rows.map(async (row) =>
                    installedView({ ctx, store }, row, (await updates.waiting(row))?.row.version ?? null)
                )
            );
            return reply.list(views, page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/installed/{name}',
        id: 'installedApp',
        access: 'read',
        summary: 'One installed app',
        description: 'Secrets only say that they are set.',
        returns: joi.typed<unknown>(installedSchema),
        validate: { params: installedParams },
        handler: ({ params }) => viewOf(ctx, services, params.name)
    });
    ctx.route({
        method: 'GET',
        path: '/installed/{name}/secrets',
        id: 'secrets',
        access: 'write',
        stepUp: true,
        secret: true,
        summary: 'Passwords and random values of an app',
        ui: { title: 'Secrets' },
        returns: joi.record(joi.string().allow('')),
        validate: { params: installedParams },
        async handler({ params }) {
            const row = await store.get(params.name);
            const { document, values: all } = await store.revision(row.name, row.revision);
            const secret = secretNames(document.form);
            return Object.fromEntries(Object.entries(all).filter(([name]) => secret.has(name)));
        }
    });
}

function registerInstall(ctx: Ctx, { drafts, apps }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/plan',
        id: 'plan',
        access: 'write',
        effect: 'read',
        summary: 'Say what an install would come to',
        description: 'It changes nothing. The port on this machine is chosen anew by the install itself.',
        answers: 'done',
        ui: { title: 'Plan' },
        returns: joi.typed<unknown>(planSchema),
        validate: { payload: joi.object(installFields) },
        handler: async ({ payload, actor }) =>
            planView((await drafts.install(payload as InstallInput, actor)).plan)
    });
    ctx.route({
        method: 'POST',
        path: '/installed',
        id: 'install',
        access: 'write',
        summary: 'Install an app',
        description:
            'Needs the `consent` of its plan. It succeeds when all containers run, are healthy where they have a check, and the app answers; when it fails, nothing of it stays.',
        answers: 'task',
        ui: { title: 'Install', primary: true },
        returns: taskSchema,
        audit: { action: 'install', resource: 'app' },
        validate: { payload: joi.object(installFields) },
        async handler({ payload, actor, audit }) {
            const { source, app, version, name, domain: at } = payload;
            audit({ resourceId: name ?? app, after: { source, app, version, domain: at } });
            const input = payload as InstallInput & { autoUpdate: string; consent?: string };
            return reply.accepted(await apps.install(input, actor));
        }
    });
}

function registerChange(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'PUT',
        path: '/installed/{name}',
        id: 'changeApp',
        access: 'write',
        summary: 'Change an installed app',
        description:
            'What is not sent stays, also each value. The app is deployed anew and judged by its health: a task (202). `autoUpdate` alone is answered at once (200).',
        answers: ['done', 'task'],
        ui: { title: 'Change' },
        returns: joi.typed<unknown>(joi.alternatives(taskSchema, installedSchema)),
        audit: { action: 'update', resource: 'app' },
        validate: {
            params: installedParams,
            payload: joi.object({ values, domain, publish, limits, autoUpdate, consent })
        },
        async handler({ params: { name }, payload, actor, audit }) {
            const { autoUpdate: wanted, consent: given, ...change } = payload;
            audit({ resourceId: name, after: { fields: Object.keys(payload), domain: payload.domain } });
            if (Object.keys(change).length === 0) {
                if (wanted !== undefined) {
                    await services.apps.setAutoUpdate(name, wanted);
                }
                return viewOf(ctx, services, name);
            }
            const task = await services.apps.change(name, { ...change, consent: given }, actor);
            if (wanted !== undefined) {
                await services.apps.setAutoUpdate(name, wanted);
            }
            return reply.accepted(task);
        }
    });
}

function registerRemoval(ctx: Ctx, { apps }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/installed/{name}',
        id: 'removeApp',
        access: 'write',
        summary: 'Remove an installed app',
        description: 'With `keepData` its volumes stay, for a later install or for `/leftovers`.',
        answers: 'task',
        ui: { title: 'Remove', confirm: 'Remove this app, and its data unless they are kept?' },
        returns: taskSchema,
        audit: { action: 'delete', resource: 'app' },
        validate: {
            params: installedParams,
            query: joi.object({ keepData: joi.boolean().default(true).label('Keep its data') })
        },
        async handler({ params: { name }, query, actor, audit }) {
            audit({ resourceId: name, after: query });
            return reply.accepted(await apps.remove(name, query.keepData, actor));
        }
    });
}

function registerControl(ctx: Ctx, services: Services, action: 'start' | 'stop' | 'restart'): void {
    const title = action.charAt(0).toUpperCase() + action.slice(1);
    ctx.route({
        method: 'POST',
        path: `/installed/{name}/${action}`,
        id: `${action}App`,
        access: 'run',
        summary: `${title} an app`,
        answers: 'done',
        timeoutSeconds: 300,
        ui: { title, role: 'action' },
        returns: joi.typed<unknown>(installedSchema),
        audit: { action, resource: 'app' },
        validate: { params: installedParams },
        async handler({ params: { name }, actor, audit }) {
            audit({ resourceId: name });
            await services.apps.control(name, action, actor);
            return viewOf(ctx, services, name);
        }
    });
}

function registerKeptData(ctx: Ctx, { store, apps }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/leftovers',
        id: 'leftovers',
        access: 'read',
        summary: 'Data of apps that were removed',
        ui: { title: 'Left data', order: 5, label: 'name', empty: 'No app left data' },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Name')
                    .meta({ ui: { column: 1 } }),
                app: joi
                    .string()
                    .required()
                    .label('App')
                    .meta({ ui: { column: 2 } }),
                bytes: joi
                    .number()
                    .required()
                    .label('Size')
                    .unit('byte')
                    .meta({ ui: { column: 3 } }),
                at: joi
                    .string()
                    .isoDate()
                    .required()
                    .label('Left')
                    .meta({ ui: { column: 4 } })
            })
        ),
        validate: { query: joi.object(pages.query()) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await store.keptData(), query, ({ name }) => name);
            return reply.list(
                rows.map(({ name, source, app, bytes, leftAt }) => ({
                    ...{ name, app: `${source}/${app}`, bytes },
                    at: new Date(leftAt).toISOString()
                })),
                page
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/leftovers/{name}',
        id: 'removeLeftover',
        access: 'write',
        summary: 'Remove data that an app left',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove these data for good?' },
        returns: joi.any(),
        audit: { action: 'delete', resource: 'leftover' },
        validate: {
            params: joi.object({ name: appName.required().meta({ ui: { ref: 'appstore.leftovers' } }) })
        },
        async handler({ params: { name }, actor, audit }) {
            audit({ resourceId: name });
            await apps.dropLeftover(name, actor);
            return null;
        }
    });
}
