/** `/api/certificates`: what is asked, by whom, and what is answered. */
import { joi, reply } from '@portico/sdk';
import { download, json, type Route } from '../http/route.ts';
import { certificateCreate, certificateDownload, certificateParams, certificateUpdate, certificateView } from './schema.ts';
import type { Certificates } from './service.ts';

const base = '/api/certificates';
/** How every change of what the engine serves can fail. */
const changes = ['ENGINE_REJECTED', 'ENGINE_UNAVAILABLE'] as const;

export function certificateRoutes(certificates: Certificates): Route[] {
    return [
        json({
            method: 'GET', path: base, id: 'certificates.list', access: 'certificates:read', summary: 'List certificates',
            returns: joi.array().items(certificateView),
            handler: () => reply.list(certificates.list()) as never
        }),
        json({
            method: 'POST', path: base, id: 'certificates.create', fails: changes, access: 'certificates:write', summary: 'Upload a certificate with its key',
            validate: { payload: certificateCreate }, returns: certificateView,
            handler: (request) => certificates.upload(request.payload, request) as never
        }),
        json({
            method: 'GET', path: `${base}/{id}`, id: 'certificates.get', access: 'certificates:read', summary: 'Read a certificate',
            validate: { params: certificateParams }, returns: certificateView,
            handler: ({ params }) => reply.with(certificates.get(params.id), {}) as never
        }),
        json({
            method: 'PUT', path: `${base}/{id}`, id: 'certificates.update', fails: changes, access: 'certificates:write', summary: 'Rename or replace a certificate',
            description: 'A certificate that hosts use is served anew by the time of the answer, and must still cover all their names',
            validate: { params: certificateParams, payload: certificateUpdate }, returns: certificateView,
            handler: (request) => certificates.update(request.params.id, request.payload, request) as never
        }),
        json({
            method: 'DELETE', path: `${base}/{id}`, id: 'certificates.remove', fails: changes, access: 'certificates:write', summary: 'Remove a certificate that no host uses',
            validate: { params: certificateParams },
            handler: (request) => certificates.remove(request.params.id, request)
        }),
        download({
            path: `${base}/{id}/download`, id: 'certificates.download', fails: ['STEP_UP_REQUIRED'], access: 'certificates:read', summary: 'Download the chain as PEM',
            description: 'With the permission `certificates:secrets` and a fresh session the key follows the chain',
            validate: { params: certificateParams, query: certificateDownload },
            handler: (request) => certificates.download(request.params.id, request.query.key, request)
        })
    ];
}
