/** `/api/certificates`: what is asked, by whom, and what is answered. */
import { joi, reply } from '@portico/sdk';

import { taskView } from '../../server/http/answer/task-view.ts';
import { download, json, type Route } from '../../server/http/route.ts';
import {
    certificateCreate,
    certificateDownload,
    certificateParams,
    certificateUpdate,
    certificateView
} from './schema.ts';
import type { Certificates } from './service.ts';

const base = '/api/certificates';
/** How every change of what the engine serves can fail. */
const changes = ['ENGINE_REJECTED', 'ENGINE_UNAVAILABLE'] as const;

/** The routes under `/api/certificates`. */
export function certificateRoutes(certificates: Certificates): Route[] {
    return [...collectionRoutes(certificates), ...certificateRoutesById(certificates)];
}

/** The list, uploads and orders. */
function collectionRoutes(certificates: Certificates): Route[] {
    return [
        json({
            method: 'GET',
            path: base,
            id: 'certificates.list',
            access: 'certificates:read',
            summary: 'List certificates',
            returns: joi.array().items(certificateView),
            handler: async () => reply.list(await certificates.list())
        }),
        json({
            method: 'POST',
            path: base,
            id: 'certificates.create',
            fails: [...changes, 'TOOL_MISSING'],
            access: 'certificates:write',
            summary: 'Upload a certificate with its key, or order one',
            description:
                'An upload answers 201 with the certificate. With `source: acme` the answer is 202 with the task that orders it, whose result is the certificate; the records of the challenge are written by a DNS provider, so that wildcards can be ordered too',
            validate: { payload: certificateCreate },
            returns: joi.alternatives(certificateView, taskView),
            answers: [201, 202],
            handler: (request) => certificates.create(request.payload, request)
        })
    ];
}

/** One certificate. */
function certificateRoutesById(certificates: Certificates): Route[] {
    return [
        json({
            method: 'GET',
            path: `${base}/{id}`,
            id: 'certificates.get',
            access: 'certificates:read',
            summary: 'Read a certificate',
            validate: { params: certificateParams },
            returns: certificateView,
            handler: async ({ params }) => reply.with(await certificates.get(params.id), {})
        }),
        json({
            method: 'PUT',
            path: `${base}/{id}`,
            id: 'certificates.update',
            fails: [...changes, 'CONFLICT', 'TOOL_MISSING'],
            access: 'certificates:write',
            summary: 'Rename or replace a certificate',
            description:
                'A certificate that hosts use is served anew by the time of the answer, and must still cover all their names',
            validate: { params: certificateParams, payload: certificateUpdate },
            returns: certificateView,
            handler: (request) => certificates.update(request.params.id, request.payload, request)
        }),
        json({
            method: 'POST',
            path: `${base}/{id}/renew`,
            id: 'certificates.renew',
            fails: ['CONFLICT', 'IN_USE', 'TOOL_MISSING'],
            access: 'certificates:write',
            summary: 'Renew a certificate that a CA issued, now',
            description: 'The one that is there stays until the new one is proven served',
            validate: { params: certificateParams },
            returns: taskView,
            answers: [202],
            handler: (request) => certificates.renew(request.params.id, request)
        }),
        json({
            method: 'DELETE',
            path: `${base}/{id}`,
            id: 'certificates.remove',
            fails: [...changes, 'CONFLICT', 'IN_USE'],
            access: 'certificates:write',
            summary: 'Remove a certificate that no host uses',
            validate: { params: certificateParams },
            returns: joi.valid(null),
            handler: (request) => certificates.remove(request.params.id, request)
        }),
        download({
            path: `${base}/{id}/download`,
            id: 'certificates.download',
            fails: ['STEP_UP_REQUIRED', 'CONFLICT'],
            access: 'certificates:read',
            summary: 'Download the chain as PEM',
            description:
                'With the permission `certificates:secrets` and a fresh session the key follows the chain',
            validate: { params: certificateParams, query: certificateDownload },
            handler: (request) => certificates.download(request.params.id, request.query.key, request)
        })
    ];
}
