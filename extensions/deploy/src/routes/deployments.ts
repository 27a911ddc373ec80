/** Routes of deployments: begin, cancel, roll back, and what became of them. */
import { errors, isFailure, joi, pages, reply } from '@portico/sdk';

import { checkTools } from '../build/tools.ts';
import { activeStates } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { commitForm, refForm } from '../git/remote/refs.ts';
import { deploymentSchema, deploymentState, deploymentTrigger, deploymentView } from '../projects/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { deploymentParams, nothing, projectParams } from './params.ts';

/** Registers the routes of deployments. */
export function registerDeploymentRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerBegin(ctx, services);
    registerRollback(ctx, services);
    registerCanary(ctx, services);
    registerEnds(ctx, services);
}

/** Answers 202 with a deployment that was added. */
function accepted(ctx: Ctx, row: DeploymentRow) {
    return reply.accepted(deploymentView(row), {
        headers: { location: `/api/plugins/${ctx.name}/deployments/${row.id}` }
    });
}

function registerReading(ctx: Ctx, { store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/deployments',
        id: 'deployments',
        access: 'read',
        summary: 'Deployments of a project',
        description: 'Newest first.',
        ui: { title: 'Deployments', label: 'number', empty: 'Nothing was deployed yet' },
        validate: {
            params: projectParams,
            query: joi.object({ ...pages.query(), state: deploymentState(), trigger: deploymentTrigger() })
        },
        returns: joi.array().items(deploymentSchema),
        async handler({ params, query }) {
            await store.project(params.id);
            const { rows, page } = await store.page(params.id, query);
            return reply.list(rows.map(deploymentView), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/deployments/{id}',
        id: 'deployment',
        access: 'read',
        summary: 'Show one deployment',
        validate: { params: deploymentParams },
        returns: deploymentSchema,
        handler: async ({ params }) => deploymentView(await store.deployment(params.id))
    });
    ctx.route({
        method: 'GET',
        path: '/queue',
        id: 'queue',
        access: 'read',
        summary: 'What is under way, and what waits',
        ui: { title: 'Queue', role: 'card', order: 2 },
        returns: joi.object({
            running: joi.array().items(deploymentSchema).required().label('Under way'),
            waiting: joi.array().items(deploymentSchema).required().label('Waiting')
        }),
        handler: async () => ({
            running: (await store.inStates(activeStates)).map(deploymentView),
            waiting: (await store.inStates(['queued'])).map(deploymentView)
        })
    });
}

function registerBegin(ctx: Ctx, { store, queue }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/deployments',
        id: 'deploy',
        access: 'run',
        summary: 'Deploy a project',
        description:
            'Builds the newest commit of the branch, or the one that is named. It waits for the one under way; of those that wait, only the newest is built.',
        answers: 'task',
        ui: { title: 'Deploy', role: 'action', primary: true },
        audit: { action: 'deploy', resource: 'project' },
        validate: {
            params: projectParams,
            payload: joi.object({
                commit: joi.string().pattern(commitForm).label('Commit').description('A whole id'),
                branch: joi
                    .string()
                    .pattern(refForm)
                    .label('Branch')
                    .description('Default: that of the project'),
                clearCache: joi.boolean().default(false).label('Without the cache')
            })
        },
        returns: deploymentSchema,
        async handler({ params, payload, audit }) {
            const project = await store.project(params.id);
            if (!project.config.enabled) {
                throw errors.inUse(project.name, 'The project is not enabled: enable it first');
            }
            await checkTools(ctx, project.config).catch(refuseTool);
            const added = await queue.add({
                projectId: project.id,
                trigger: 'manual',
                ref: `refs/heads/${payload.branch ?? project.config.source.branch}`,
                commit: payload.commit ?? null,
                from: null,
                clearCache: payload.clearCache
            });
            audit({ resourceId: project.id, after: { deployment: added.number } });
            return accepted(ctx, added);
        }
    });
}

function registerRollback(ctx: Ctx, { store, queue }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/rollback',
        id: 'rollback',
        access: 'run',
        summary: 'Serve a kept release again',
        description: 'Nothing is built. Default: the release that served before.',
        answers: 'task',
        ui: { title: 'Roll back', role: 'action', confirm: 'Serve the older release again?' },
        audit: { action: 'rollback', resource: 'project' },
        validate: {
            params: projectParams,
            payload: joi.object({
                deployment: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Deployment')
                    .meta({ ui: { ref: 'deploy.deployments' } })
            })
        },
        returns: deploymentSchema,
        async handler({ params, payload, audit }) {
            const project = await store.project(params.id);
            const kept = await store.kept(project.id);
            const wanted =
                payload.deployment === undefined
                    ? kept
                          .filter(({ state }) => state === 'retired')
                          .sort((one, other) => (other.switchedAt ?? 0) - (one.switchedAt ?? 0))[0]
                    : await store.deployment(payload.deployment);
            if (wanted === undefined) {
                throw fail.NOT_KEPT(null, { message: 'No release that served before is kept' });
            }
            if (wanted.projectId !== project.id || !wanted.kept) {
                throw fail.NOT_KEPT();
            }
            const added = await queue.add({
                projectId: project.id,
                trigger: 'rollback',
                ref: wanted.ref,
                commit: wanted.commit,
                from: wanted.id,
                clearCache: false
            });
            audit({ resourceId: project.id, after: { deployment: added.number, from: wanted.number } });
            return accepted(ctx, added);
        }
    });
}

function registerCanary(ctx: Ctx, { store, canaries }: Services): void {
    for (const verdict of ['promote', 'abort'] as const) {
        ctx.route({
            method: 'POST',
            path: `/projects/{id}/canary/${verdict}`,
            id: `${verdict}Canary`,
            access: 'run',
            summary: verdict === 'promote' ? 'Give the canary all requests now' : 'Take the canary back',
            answers: 'done',
            ui: {
                title: verdict === 'promote' ? 'Promote the canary' : 'Take the canary back',
                role: 'action'
            },
            audit: { action: verdict, resource: 'canary' },
            validate: { params: projectParams },
            returns: deploymentSchema,
            async handler({ params, audit }) {
                const project = await store.project(params.id);
                audit({ resourceId: project.id });
                const found = (await store.inStates(['canary'])).find(
                    ({ projectId }) => projectId === project.id
                );
                if (found === undefined || !canaries.decide(found.id, verdict)) {
                    throw errors.notFound('The project has no canary now');
                }
                return deploymentView(found);
            }
        });
    }
}

function registerEnds(ctx: Ctx, { store, queue, retention }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/deployments/{id}/cancel',
        id: 'cancel',
        access: 'run',
        summary: 'Cancel a deployment',
        description: 'Ends all of its programs; 40950 once its switch has begun.',
        answers: 'done',
        ui: { title: 'Cancel', role: 'action', confirm: 'Cancel this deployment?' },
        audit: { action: 'cancel', resource: 'deployment' },
        validate: { params: deploymentParams },
        returns: deploymentSchema,
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            return deploymentView(await queue.cancel(params.id));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/deployments/{id}',
        id: 'deleteRelease',
        access: 'write',
        summary: 'Keep a release no longer',
        description: 'Its record stays. The release that serves is 40901.',
        answers: 'done',
        ui: { title: 'Remove release', role: 'action', confirm: 'Remove the files of this release?' },
        audit: { action: 'delete', resource: 'release' },
        validate: { params: deploymentParams },
        returns: nothing,
        async handler({ params, audit }) {
            const deployment = await store.deployment(params.id);
            const project = await store.project(deployment.projectId);
            audit({ resourceId: deployment.id });
            if (project.live === deployment.id) {
                throw errors.inUse(
                    project.name,
                    'This release serves: deploy or roll back to another one first'
                );
            }
            if (!deployment.kept) {
                throw fail.NOT_KEPT();
            }
            await queue.hold(project.id, () => retention.forget(deployment));
            return null;
        }
    });
}

/** A tool that is missing is told at once; every other reason is that of the deployment. @throws TOOL_MISSING 50302 */
function refuseTool(error: unknown): void {
    if (isFailure(error) && error.code === 50302) {
        throw error;
    }
}
