/** Routes that list, make, change and remove projects. */
import { joi, pages, reply, taskSchema } from '@portico/sdk';

import type { Project } from '../../deployments/store.ts';
import { checkProject } from '../../projects/checks.ts';
import type { ProjectInput } from '../../projects/schema.ts';
import { newProject, projectChange, projectSchema, readProject } from '../../projects/shapes.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { projectParams, versionOf } from '../params.ts';

/** Registers the routes of projects. */
export function registerProjectRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerCreation(ctx, services);
    registerChange(ctx, services);
    registerRemoval(ctx, services);
}

function registerReading(ctx: Ctx, { store, views }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects',
        id: 'projects',
        access: 'read',
        summary: 'List the projects',
        ui: { title: 'Projects', primary: true, order: 1, label: 'name', empty: 'No project yet' },
        validate: { query: joi.object(pages.query()) },
        returns: joi.array().items(projectSchema),
        async handler({ query }) {
            const { rows, page } = pages.sorted(await store.projects(), query, ({ name }) => name);
            return reply.list(await Promise.all(rows.map((project) => views.view(project))), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/projects/{id}',
        id: 'project',
        access: 'read',
        summary: 'Show one project',
        validate: { params: projectParams },
        returns: projectSchema,
        handler: async ({ params }) => views.view(await store.project(params.id))
    });
}

function registerCreation(ctx: Ctx, services: Services): void {
    const { store, views } = services;
    ctx.route({
        method: 'POST',
        path: '/projects',
        id: 'createProject',
        access: 'write',
        summary: 'Make a project',
        description: 'Nothing is deployed yet: that is a call of its own, or a push.',
        answers: 'made',
        ui: { title: 'New project', role: 'action', primary: true },
        audit: { action: 'create', resource: 'project' },
        validate: { payload: newProject },
        returns: projectSchema,
        async handler({ payload, audit }) {
            const { version: _version, ...input } = payload;
            await checkProject(services, input);
            const project = await store.addProject(input);
            audit({ resourceId: project.id, after: { name: project.name, source: project.config.source } });
            return reply.created(
                `/api/plugins/${ctx.name}/projects/${project.id}`,
                await views.view(project)
            );
        }
    });
}

function registerChange(ctx: Ctx, services: Services): void {
    const { store, views, changes, queue } = services;
    ctx.route({
        method: 'PUT',
        path: '/projects/{id}',
        id: 'updateProject',
        access: 'write',
        summary: 'Change a project',
        description:
            'Each field that is there replaces the one before whole. Domains change at once; everything else counts for the next deployment.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'project' },
        validate: { params: projectParams, payload: projectChange },
        returns: projectSchema,
        async handler({ params, payload, audit, ifMatch }) {
            const before = await store.project(params.id);
            const { version: said, ...change } = payload;
            const version = versionOf(before, { ifMatch }, said);
            const input = merged(before, change);
            await checkProject(services, input, before);
            audit({ resourceId: before.id });
            const isRenamed = JSON.stringify(input.host) !== JSON.stringify(before.config.host);
            const work = async (): Promise<Project> => {
                const project = await store.configure(before.id, input, version);
                if (isRenamed && project.live !== null) {
                    // The engine may refuse the domains: then nothing is changed.
                    await changes.rename(project, before);
                }
                return project;
            };
            return views.view(isRenamed ? await queue.hold(before.id, work) : await work());
        }
    });
}

function registerRemoval(ctx: Ctx, { store, queue, changes, previews, crons }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/projects/{id}',
        id: 'deleteProject',
        access: 'write',
        summary: 'Remove a project',
        description:
            'Cancels what is under way, ends its programs, and removes its host and its releases; its shared folders stay with `keepFiles=true`.',
        answers: 'task',
        ui: {
            title: 'Remove',
            role: 'action',
            confirm: 'Remove this project with its releases and its host?'
        },
        audit: { action: 'delete', resource: 'project' },
        validate: {
            params: projectParams,
            query: joi.object({ keepFiles: joi.boolean().default(false).label('Keep its files') })
        },
        returns: taskSchema,
        async handler({ params, query, audit, actor, ...request }) {
            const project = await store.project(params.id);
            versionOf(project, request);
            audit({ resourceId: project.id, before: { name: project.name } });
            const task = await ctx.task(
                {
                    kind: 'remove-project',
                    title: `Remove ${project.name}`,
                    access: 'write',
                    actor,
                    resource: project.name,
                    key: `remove-${project.id}`
                },
                async () => {
                    await previews.removeAll(project.id);
                    await crons.removeAll(project.id);
                    await queue.drain(project.id);
                    await queue.hold(project.id, () => changes.remove(project.id, query.keepFiles));
                    return { projectId: project.id };
                }
            );
            return reply.accepted(task);
        }
    });
}

/** What an admin says of a project after a change. @throws VALIDATION_FAILED 40001 */
function merged({ name, config }: Project, change: object): ProjectInput {
    const said = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
    return readProject({ name, ...config, ...said });
}
