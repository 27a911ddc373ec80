/** `/api/dns-providers`. */
import { joi, reply } from '@portico/sdk';

import { json, type Route } from '../../server/http/route.ts';
import {
    providerCreate,
    providerParams,
    providerTest,
    providerUpdate,
    providerView,
    testView,
    typeView
} from './schema.ts';
import type { DnsProviders } from './service.ts';

const base = '/api/dns-providers';
/** A provider may take its time until every name server knows. */
const testSeconds = 240;

/** What every change of a row declares: all of it is in one transaction. */
const change = { access: 'dns:write', rehearses: true } as const;

/** The routes under `/api/dns-providers`. */
export function dnsProviderRoutes(providers: DnsProviders): Route[] {
    return [
        json({
            method: 'GET',
            path: base,
            id: 'dnsProviders.list',
            access: 'dns:read',
            summary: 'List DNS providers',
            returns: joi.array().items(providerView),
            handler: () => reply.list(providers.list())
        }),
        json({
            method: 'POST',
            path: base,
            id: 'dnsProviders.create',
            fails: ['CONFLICT', 'TOOL_MISSING'],
            ...change,
            summary: 'Add a DNS provider',
            validate: { payload: providerCreate },
            returns: providerView,
            handler: (request) => providers.create(request.payload, request)
        }),
        json({
            method: 'GET',
            path: `${base}/types`,
            id: 'dnsProviders.types',
            access: 'dns:read',
            summary: 'List the types of DNS providers, with the fields of each',
            description:
                '`rfc2136` needs no other program. The others are those that the command `lego` knows; without it the message says how to get it',
            returns: joi.array().items(typeView),
            handler: () => providers.types()
        }),
        json({
            method: 'GET',
            path: `${base}/{id}`,
            id: 'dnsProviders.get',
            access: 'dns:read',
            summary: 'Read a DNS provider',
            validate: { params: providerParams },
            returns: providerView,
            handler: ({ params }) => reply.with(providers.get(params.id), {})
        }),
        json({
            method: 'PUT',
            path: `${base}/{id}`,
            id: 'dnsProviders.update',
            fails: ['CONFLICT', 'TOOL_MISSING'],
            ...change,
            summary: 'Change a DNS provider',
            validate: { params: providerParams, payload: providerUpdate },
            returns: providerView,
            handler: (request) => providers.update(request.params.id, request.payload, request)
        }),
        json({
            method: 'DELETE',
            path: `${base}/{id}`,
            id: 'dnsProviders.remove',
            fails: ['IN_USE'],
            ...change,
            summary: 'Remove a DNS provider that no certificate uses',
            validate: { params: providerParams },
            returns: joi.valid(null),
            handler: (request) => providers.remove(request.params.id, request)
        }),
        json({
            method: 'POST',
            path: `${base}/{id}/test`,
            id: 'dnsProviders.test',
            fails: ['TOOL_MISSING'],
            access: 'dns:write',
            summary: 'Write, look up and remove a TXT record',
            description: 'Answers 200 with the result of each step; `ok` says whether all went well',
            validate: { params: providerParams, payload: providerTest },
            returns: testView,
            timeoutSeconds: testSeconds,
            handler: (request) => providers.test(request.params.id, request.payload.domain, request)
        })
    ];
}
