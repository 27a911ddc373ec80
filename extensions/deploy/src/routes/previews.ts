/** Routes of previews of pull requests. */
import { joi, pages, reply } from '@portico/sdk';

import { commitForm } from '../git/remote/refs.ts';
import type { Preview } from '../previews/store.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { projectParams } from './params.ts';

const params = joi.object({ id: joi.number().integer().min(1).required().label('Preview') });
const states = {
    'awaiting-approval': 'Waits for approval',
    building: 'Is being built',
    live: 'Serves',
    failed: 'Failed',
    closed: 'Is over'
} as const;
const tones = {
    'awaiting-approval': 'warning',
    building: 'busy',
    live: 'good',
    failed: 'bad',
    closed: 'neutral'
} as const;

/** A preview as it is shown. */
export const previewSchema = joi.object({
    id: joi.number().integer().required().label('Id'),
    projectId: joi
        .number()
        .integer()
        .required()
        .label('Project')
        .meta({ ui: { ref: 'deploy.projects', column: false } }),
    number: joi
        .number()
        .integer()
        .required()
        .label('Pull request')
        .meta({ ui: { column: 1 } }),
    branch: joi
        .string()
        .required()
        .label('Branch')
        .meta({ ui: { column: 3 } }),
    fork: joi.boolean().required().label('Of a fork'),
    commit: joi
        .string()
        .required()
        .label('Commit')
        .meta({ ui: { column: 4 } }),
    approvedCommit: joi.string().allow(null).required().label('Approved commit'),
    state: joi
        .choice(states)
        .required()
        .label('State')
        .meta({ ui: { column: 2, tones } }),
    domain: joi
        .string()
        .required()
        .label('Domain')
        .meta({ ui: { column: 5 } }),
    deploymentId: joi.number().integer().allow(null).required().label('Deployment'),
    expiresAt: joi.string().isoDate().required().label('Ends by itself')
});

/** A preview for an answer. */
export function previewView(preview: Preview) {
    const { id, projectId, number, branch, fork, commit, approvedCommit, state, domain, deploymentId } =
        preview;
    return {
        ...{ id, projectId, number, branch, fork, commit, approvedCommit, state, domain, deploymentId },
        expiresAt: new Date(preview.expiresAt).toISOString()
    };
}

/** Declares the routes of previews of pull requests. */
export function registerPreviewRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerApproval(ctx, services);
}

function registerReading(ctx: Ctx, { store, previews, previewStore }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/previews',
        id: 'previews',
        access: 'read',
        summary: 'Previews of pull requests',
        description: 'Newest first.',
        ui: { title: 'Previews', label: 'number', empty: 'No pull request was previewed yet' },
        validate: { params: projectParams, query: joi.object(pages.query()) },
        returns: joi.array().items(previewSchema),
        async handler({ query, ...request }) {
            await store.project(request.params.id);
            const all = await previewStore.list(request.params.id);
            const after = pages.afterNumber(query);
            const rest = all.filter(({ id }) => after === null || id < after).slice(0, query.limit + 1);
            const { rows, page } = pages.read(rest, query.limit, ({ id }) => id, all.length);
            const views = await Promise.all(rows.map(async (row) => previewView(await previews.view(row))));
            return reply.list(views, page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/previews/{id}',
        id: 'preview',
        access: 'read',
        summary: 'One preview',
        validate: { params },
        returns: previewSchema,
        handler: async (request) =>
            previewView(await previews.view(await previewStore.get(request.params.id)))
    });
    ctx.route({
        method: 'DELETE',
        path: '/previews/{id}',
        id: 'closePreview',
        access: 'write',
        summary: 'End a preview',
        description: 'With its host, its programs and its files. A new commit makes it again.',
        answers: 'done',
        ui: { title: 'End', role: 'action', confirm: 'End this preview?' },
        audit: { action: 'delete', resource: 'preview' },
        timeoutSeconds: 120,
        validate: { params },
        returns: previewSchema,
        async handler({ audit, ...request }) {
            audit({ resourceId: request.params.id });
            return previewView(await previews.view(await previews.close(request.params.id)));
        }
    });
}

function registerApproval(ctx: Ctx, { previews }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/previews/{id}/approve',
        id: 'approvePreview',
        access: 'approve',
        summary: 'Let one commit of a fork be built and served',
        description: 'Exactly this commit; when the pull request has another one meanwhile, it is 40952.',
        answers: 'done',
        ui: { title: 'Approve', role: 'action', confirm: 'Build and run code of this fork?' },
        audit: { action: 'approve', resource: 'preview' },
        timeoutSeconds: 120,
        validate: {
            params,
            payload: joi.object({
                commit: joi
                    .string()
                    .pattern(commitForm)
                    .required()
                    .label('Commit')
                    .description('The whole id of the head that was looked at')
            })
        },
        returns: previewSchema,
        async handler({ payload, audit, ...request }) {
            audit({ resourceId: request.params.id, after: payload });
            const row = await previews.approve(request.params.id, payload.commit);
            return previewView(await previews.view(row));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/previews/{id}/revoke',
        id: 'revokePreview',
        access: 'approve',
        summary: 'Take the approval of a preview back',
        description: 'What runs of it ends, and its host goes.',
        answers: 'done',
        ui: { title: 'Revoke', role: 'action', confirm: 'End what runs of this fork?' },
        audit: { action: 'revoke', resource: 'preview' },
        timeoutSeconds: 120,
        validate: { params },
        returns: previewSchema,
        async handler({ audit, ...request }) {
            audit({ resourceId: request.params.id });
            return previewView(await previews.view(await previews.revoke(request.params.id)));
        }
    });
}
