/** Routes of the programs that serve. */
import { errors, joi } from '@portico/sdk';

import { projectSchema } from '../../projects/shapes.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { nothing, projectParams } from '../params.ts';

const processSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Program')
        .description('`web` answers requests; others are workers')
        .meta({ ui: { column: 1 } }),
    instance: joi.number().integer().required().label('Instance'),
    state: joi
        .choice({ running: 'Runs', stopped: 'Stopped', failed: 'Failed' })
        .required()
        .label('State')
        .meta({ ui: { column: 2, tones: { running: 'good', stopped: 'neutral', failed: 'bad' } } }),
    pid: joi.number().integer().allow(null).required().label('Process'),
    port: joi.number().integer().allow(null).required().label('Port'),
    since: joi.string().isoDate().allow(null).required().label('Since'),
    restarts: joi.number().integer().required().label('Restarts'),
    memoryBytes: joi.number().integer().allow(null).required().label('Memory').unit('byte')
});

const words = {
    start: { title: 'Start', summary: 'Start the programs of a project, and its host' },
    stop: { title: 'Stop', summary: 'End the programs of a project; its host is off' },
    restart: { title: 'Restart', summary: 'End the programs of a project, and start them again' }
} as const;

/** Declares the routes of a project's processes. */
export function registerProcessRoutes(ctx: Ctx, { store, queue, views, changes, processes }: Services): void {
    for (const change of ['start', 'stop', 'restart'] as const) {
        ctx.route({
            method: 'POST',
            path: `/projects/{id}/${change}`,
            id: `${change}Project`,
            access: 'run',
            summary: words[change].summary,
            answers: 'done',
            ui: { title: words[change].title, role: 'action' },
            audit: { action: change, resource: 'project' },
            timeoutSeconds: 700,
            validate: { params: projectParams },
            returns: projectSchema,
            async handler({ params, audit }) {
                const project = await store.project(params.id);
                audit({ resourceId: project.id });
                if (project.live === null) {
                    throw errors.notFound('Nothing of this project was deployed yet');
                }
                await queue.hold(project.id, () => changes.change(project, change));
                return views.view(await store.project(project.id));
            }
        });
    }
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/processes',
        id: 'processes',
        access: 'read',
        summary: 'The programs of a project',
        ui: { title: 'Programs', label: 'name', empty: 'No program: files need none' },
        validate: { params: projectParams },
        returns: joi.array().items(processSchema),
        async handler({ params }) {
            const { live } = await store.anyProject(params.id);
            return live === null ? [] : processes.views(await store.deployment(live));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/processes/{name}/restart',
        id: 'restartProcess',
        access: 'run',
        summary: 'Restart one program of a project',
        answers: 'done',
        ui: { title: 'Restart', role: 'action' },
        audit: { action: 'restart', resource: 'process' },
        timeoutSeconds: 700,
        validate: {
            params: projectParams.keys({
                name: joi
                    .string()
                    .pattern(/^[a-z][a-z0-9-]{0,19}$/)
                    .required()
                    .label('Program')
            })
        },
        returns: nothing,
        async handler({ params, audit }) {
            const project = await store.project(params.id);
            audit({ resourceId: project.id, after: { process: params.name } });
            const { live } = project;
            const changed =
                live === null
                    ? 0
                    : await queue.hold(project.id, async () =>
                          processes.change(await store.deployment(live), 'restart', params.name)
                      );
            if (changed === 0) {
                throw errors.notFound(`The project has no program ${params.name}`);
            }
            return null;
        }
    });
}
