/** The route that runs a tool in a site. */
import { joi, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { acceptTask } from '../task-replies.ts';
import { siteParams, takeSite } from './params.ts';

/** Registers the route of tools. */
export function registerToolRoutes(ctx: Ctx, services: Services): void {
    const { store, tools } = services;
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/tools/{tool}',
        id: 'runTool',
        access: 'operate',
        summary: 'Run Composer, WP-CLI or artisan in a site',
        description:
            'As the account of the site, for at most 10 minutes and with 1 GiB of memory. What it prints is the log of the task; one that fails is 42253.',
        answers: 'task',
        ui: { title: 'Run a tool', role: 'action' },
        audit: { action: 'run-tool', resource: 'site' },
        validate: {
            params: siteParams.keys({
                tool: joi
                    .choice({ composer: 'Composer', wp: 'WP-CLI', artisan: 'artisan' })
                    .required()
                    .label('Tool')
            }),
            payload: joi.object({
                command: joi
                    .string()
                    .pattern(/^[a-z][a-z:-]{0,60}$/)
                    .required()
                    .label('Command')
                    .description(
                        'Composer: install, update, require, remove, validate. WP-CLI: core, plugin, theme, cache, option. artisan: migrate, cache:clear and the like'
                    ),
                arguments: joi
                    .array()
                    .items(joi.string().pattern(/^(?!-)[^\0\r\n]{1,1000}$/))
                    .max(50)
                    .default([])
                    .label('Arguments')
                    .description('None begins with a dash')
                    .meta({ ui: { widget: 'lines' } })
            })
        },
        returns: taskSchema,
        async handler({ params, payload, actor, audit }) {
            const lock = await takeSite(services, params.id, `the tool ${params.tool}`);
            try {
                const site = await store.get(params.id);
                const prepared = await tools.prepare(site, params.tool, payload);
                audit({ resourceId: site.id, after: { tool: params.tool, command: payload.command } });
                return await acceptTask(
                    ctx,
                    {
                        kind: 'run-tool',
                        title: `${params.tool} ${payload.command} in ${site.name}`,
                        access: 'operate',
                        actor,
                        resource: site.name,
                        lock
                    },
                    (run) => tools.run(site, params.tool, prepared, run)
                );
            } catch (error) {
                lock[Symbol.dispose]();
                throw error;
            }
        }
    });
}
