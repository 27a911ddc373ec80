/** Routes that list, make, change and remove sites. */
import { errors, joi, reply, requireVersion, taskSchema } from '@portico/sdk';

import type { Template } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { Application } from '../sites/creation/creation.ts';
import { newSiteSchema, siteChangeSchema, siteSchema } from '../sites/creation/input.ts';
import type { WordPressInput } from '../sites/creation/wordpress.ts';
import { siteView } from '../sites/views.ts';
import type { SwitchInput } from '../switching/switches.ts';
import { acceptTask } from '../task-replies.ts';
import { nothing, siteParams, withSite } from './params.ts';

/** Registers the routes of sites. */
export function registerSiteRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerCreation(ctx, services);
    registerChange(ctx, services);
    registerRemoval(ctx, services);
}

function registerReading(ctx: Ctx, { locks, masters, store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sites',
        id: 'sites',
        access: 'read',
        summary: 'List the sites',
        ui: { title: 'Sites', primary: true, order: 1, label: 'name', empty: 'No site yet' },
        returns: joi.array().items(siteSchema),
        async handler() {
            const [sites, running] = [await store.all(), await masters.all()];
            return reply.list(
                sites.map((site) => siteView(site, running, locks)),
                { total: sites.length }
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/sites/{id}',
        id: 'site',
        access: 'read',
        summary: 'Show one site',
        validate: { params: siteParams },
        returns: siteSchema,
        handler: async ({ params }) => siteView(await store.get(params.id), await masters.all(), locks)
    });
}

function registerCreation(ctx: Ctx, { creation, locks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/sites',
        id: 'createSite',
        access: 'write',
        summary: 'Make a site',
        description:
            'An account, a folder, a PHP-FPM of its own and a host. Its task gives `{ siteId, hostId }`, and for WordPress `adminPassword`.',
        answers: 'task',
        ui: { title: 'New site', role: 'action', primary: true },
        audit: { action: 'create', resource: 'site' },
        validate: { payload: newSiteSchema },
        returns: taskSchema,
        async handler({ payload, actor, audit }) {
            const { runtime, wordpress, ...input } = payload;
            if (runtime === 'frankenphp') {
                throw errors.toolMissing('FrankenPHP', 'the panel drives PHP-FPM: make the site with it');
            }
            const application = applicationOf(input.template, wordpress);
            const site = await creation.begin({ ...input, application });
            audit({
                resourceId: site.id,
                after: { name: site.name, domain: site.domain, release: site.release }
            });
            return acceptTask(
                ctx,
                {
                    kind: 'create-site',
                    title: `Make the site ${site.name}`,
                    access: 'write',
                    actor,
                    resource: site.name,
                    lock: locks.take(site.id, 'creation')
                },
                async (run) => {
                    const { site: made, adminPassword } = await creation.finish(site, run, application);
                    return {
                        siteId: made.id,
                        hostId: made.hostId,
                        ...(adminPassword === undefined ? {} : { adminPassword })
                    };
                }
            );
        }
    });
}

/** @throws VALIDATION_FAILED 40001 when template and application do not belong together */
function applicationOf(template: Template, input: WordPressInput | undefined): Application | undefined {
    if ((template === 'wordpress') !== (input !== undefined)) {
        throw errors.invalid([
            { path: 'wordpress', message: 'It belongs to the template wordpress, which needs it' }
        ]);
    }
    return input !== undefined
        ? { kind: 'wordpress', input }
        : template === 'laravel'
          ? { kind: 'laravel' }
          : undefined;
}

function registerChange(ctx: Ctx, services: Services): void {
    const { changes, locks, masters, releases, switches } = services;
    ctx.route({
        method: 'PUT',
        path: '/sites/{id}',
        id: 'updateSite',
        access: 'write',
        summary: 'Change a site',
        description:
            'What is left out stays as it is. Another `release` is taken over without a lost request; try it first with a switch.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'site' },
        timeoutSeconds: 300,
        validate: { params: siteParams, payload: siteChangeSchema },
        returns: siteSchema,
        handler: (request) =>
            withSite(services, request.params.id, 'a change', async (site) => {
                const { version, release, ...input } = request.payload;
                requireVersion(site, request.ifMatch, version);
                request.audit({ resourceId: site.id });
                if (release !== undefined) {
                    await releases.get(release);
                }
                const updated = await changes.update(site, input);
                const changed =
                    release === undefined || release === site.release
                        ? updated
                        : await switches.run(updated, atOnce(release), request.signal, () => undefined);
                return siteView(changed, await masters.all(), locks);
            })
    });
}

/** A switch that tries the new release by one request, and does not observe it. */
function atOnce(release: string): SwitchInput {
    return { release, percent: 0, observeSeconds: 0, maxErrors: 0, path: '/' };
}

function registerRemoval(ctx: Ctx, services: Services): void {
    const { creation } = services;
    ctx.route({
        method: 'DELETE',
        path: '/sites/{id}',
        id: 'deleteSite',
        access: 'write',
        summary: 'Remove a site',
        description:
            'Its host, processes and account go. Its files stay, as those of root, unless `deleteFiles` is true.',
        answers: 'done',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this site with its host and its account?' },
        audit: { action: 'delete', resource: 'site' },
        timeoutSeconds: 900,
        validate: {
            params: siteParams,
            query: joi.object({ deleteFiles: joi.boolean().default(false).label('Delete its files, too') })
        },
        returns: nothing,
        handler: ({ params, query, audit, ...request }) =>
            withSite(services, params.id, 'its removal', async (site) => {
                requireVersion(site, request.ifMatch);
                audit({ resourceId: site.id, before: { name: site.name, domain: site.domain } });
                await creation.remove(site, query.deleteFiles);
                return null;
            })
    });
}
