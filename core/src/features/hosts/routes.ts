/** The routes under `/api/hosts`. */
import { joi, reply } from '@portico/sdk';

import { prepared } from '../../server/http/answer/prepared.ts';
import { json, type Route } from '../../server/http/route.ts';
import { accessCheck, accessVerdict } from './schema/access-check.ts';
import { hostBatch, hostClone, hostCreate, hostParams, hostQuery, hostUpdate } from './schema/bodies.ts';
import { hostView } from './schema/view.ts';
import type { Hosts } from './service.ts';

const base = '/api/hosts';
/** How each change of what the engine serves can fail. */
const changes = ['STEP_UP_REQUIRED', 'REFUSED_BY_PLUGIN', 'ENGINE_REJECTED', 'ENGINE_UNAVAILABLE'] as const;

const checkItem = joi.object({
    id: joi.string().valid('dns', 'address', 'engine', 'certificate', 'upstream').required(),
    title: joi.string().required(),
    ok: joi.boolean().allow(null).required().description('null: could not be tried, or does not apply'),
    evidence: joi.string().required().description('What was seen'),
    remedy: joi.string().allow(null).required().description('What to do about it')
});

/** The routes under `/api/hosts`. */
export function hostRoutes(hosts: Hosts): Route[] {
    return [...collectionRoutes(hosts), ...hostRoutesById(hosts), ...inspectionRoutes(hosts)];
}

/** The list, and what concerns several hosts or a new one. */
function collectionRoutes(hosts: Hosts): Route[] {
    return [
        json({
            method: 'GET',
            path: base,
            id: 'hosts.list',
            access: 'hosts:read',
            summary: 'List hosts',
            description:
                'All hosts, or a page of them with `limit`. The ETag changes with any host and any state',
            validate: { query: hostQuery },
            returns: joi.array().items(hostView),
            handler: ({ query }) => prepared(hosts.page(query))
        }),
        json({
            method: 'POST',
            path: base,
            id: 'hosts.create',
            fails: changes,
            access: 'hosts:write',
            summary: 'Create a host and serve it',
            description:
                'The row and the engine change together or not at all. The header `X-Engine-Reload` says whether the engine had to reload',
            validate: { payload: hostCreate },
            returns: hostView,
            handler: (request) => hosts.create(request.payload, request)
        }),
        json({
            method: 'POST',
            path: `${base}/validate`,
            id: 'hosts.validate',
            ui: { role: 'hidden' },
            fails: ['CONFLICT', ...changes],
            access: 'hosts:read',
            effect: 'read',
            summary: 'Try a new host without creating it',
            description: 'The same body and errors as creating; tells whether it would reload the engine',
            validate: { payload: hostCreate },
            returns: joi.object({ reload: joi.boolean().required() }),
            handler: (request) => hosts.validate(request.payload, request)
        }),
        json({
            method: 'POST',
            path: `${base}/batch`,
            id: 'hosts.batch',
            ui: { role: 'hidden' },
            fails: ['NOT_FOUND', 'VERSION_STALE', ...changes],
            access: 'hosts:write',
            effect: 'destructive',
            summary: 'Enable, disable or delete several hosts',
            description:
                'All or nothing, in one apply. Answers the hosts as they are now, null after a removal',
            validate: { payload: hostBatch },
            returns: joi.array().items(hostView).allow(null),
            handler: (request) => hosts.batch(request.payload, request)
        })
    ];
}

/** One host. */
function hostRoutesById(hosts: Hosts): Route[] {
    return [
        json({
            method: 'GET',
            path: `${base}/{id}`,
            id: 'hosts.get',
            access: 'hosts:read',
            summary: 'Read a host',
            validate: { params: hostParams },
            returns: hostView,
            handler: ({ params }) => reply.with(hosts.get(params.id), {})
        }),
        json({
            method: 'PUT',
            path: `${base}/{id}`,
            id: 'hosts.update',
            fails: changes,
            access: 'hosts:write',
            summary: 'Change a host',
            description:
                'Fields that are not sent keep their value, null clears an optional one, arrays and objects are replaced whole',
            validate: { params: hostParams, payload: hostUpdate },
            returns: hostView,
            handler: (request) => hosts.update(request.params.id, request.payload, request)
        }),
        json({
            method: 'DELETE',
            path: `${base}/{id}`,
            id: 'hosts.remove',
            fails: changes,
            access: 'hosts:write',
            summary: 'Remove a host',
            validate: { params: hostParams },
            returns: joi.valid(null),
            handler: (request) => hosts.remove(request.params.id, request)
        }),
        json({
            method: 'POST',
            path: `${base}/{id}/clone`,
            id: 'hosts.clone',
            ui: { title: 'Copy' },
            answers: [201],
            fails: ['VERSION_STALE', ...changes],
            access: 'hosts:write',
            summary: 'Copy a host under another name',
            validate: { params: hostParams, payload: hostClone },
            returns: hostView,
            handler: (request) => hosts.clone(request.params.id, request.payload.domain, request)
        })
    ];
}

/** How one host is served, without changing it. */
function inspectionRoutes(hosts: Hosts): Route[] {
    return [
        json({
            method: 'POST',
            path: `${base}/{id}/validate`,
            id: 'hosts.validateChange',
            ui: { role: 'hidden' },
            answers: [200],
            fails: ['CONFLICT', 'VERSION_STALE', ...changes],
            access: 'hosts:read',
            effect: 'read',
            isChange: true,
            summary: 'Try a change of a host without making it',
            description: 'The same body and errors as changing it; tells whether it would reload the engine',
            validate: { params: hostParams, payload: hostUpdate },
            returns: joi.object({ reload: joi.boolean().required() }),
            handler: (request) => hosts.validateChange(request.params.id, request.payload, request)
        }),
        json({
            method: 'GET',
            path: `${base}/{id}/preview`,
            id: 'hosts.preview',
            ui: { title: 'Engine configuration' },
            access: 'hosts:read',
            summary: 'Show the engine configuration that a host becomes',
            description: 'Masked unless the caller has `engine:secrets` and is fresh',
            validate: { params: hostParams },
            returns: joi.record(joi.any()),
            handler: (request) => hosts.preview(request.params.id, request)
        }),
        json({
            method: 'GET',
            path: `${base}/{id}/check`,
            id: 'hosts.check',
            access: 'hosts:read',
            summary: 'Try a host from its name to its upstream',
            validate: { params: hostParams },
            returns: joi.array().items(checkItem),
            handler: async (request) => reply.list(await hosts.check(request.params.id, request))
        }),
        json({
            method: 'POST',
            path: `${base}/{id}/access/check`,
            id: 'hosts.admission',
            ui: { title: 'Who gets in' },
            answers: [200],
            access: 'hosts:read',
            effect: 'read',
            summary: 'Tell who gets into a host, and why',
            description:
                'The rules of `access` in the order in which the engine applies them, for the request of an imaginary client. No request is sent',
            validate: { params: hostParams, payload: accessCheck },
            returns: accessVerdict,
            handler: (request) => hosts.checkAccess(request.params.id, request.payload, request)
        })
    ];
}
