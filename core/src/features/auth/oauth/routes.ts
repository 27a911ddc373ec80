/** `/api/auth/oauth` and `/.well-known/oauth-*`: how clients of protected resources find the panel, are let in by users, and get tokens. */
import { isFailure, joi } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { parseJson } from '../../../server/http/request/input/json.ts';
import { http, json, type Route } from '../../../server/http/route.ts';
import type { OAuth } from './oauth.ts';
import { OAuthRefusal } from './refusal.ts';
import {
    authorization,
    authorizationRequest,
    client,
    clientParams,
    clientRequest,
    preview,
    redirect
} from './schema.ts';

const resourcePrefix = '/.well-known/oauth-protected-resource';
const raw = 'OAuth clients read the forms of RFC 6749, RFC 7591, RFC 8414 and RFC 9728';

/** The routes of the authorization server. */
export function oauthRoutes(oauth: OAuth): Route[] {
    return [...metadata(oauth), ...endpoints(oauth), ...authorizations(oauth), ...clients(oauth)];
}

function metadata(oauth: OAuth): Route[] {
    const access = { public: 'A client reads it to learn where to ask for a token' };
    return [
        http({
            methods: ['GET', 'HEAD'],
            path: `${resourcePrefix}/{path*}`,
            id: 'auth.oauth.resource',
            summary: 'Read the metadata of a protected resource',
            description: 'RFC 9728. The path is that of the resource.',
            access,
            raw,
            maxBytes: 0,
            validate: { params: joi.object({ path: joi.string().max(4096).required() }) },
            handler(request) {
                const path = new URL(request.url).pathname.slice(resourcePrefix.length);
                const document = oauth.describeResource(path, hostOf(request));
                if (document === null) {
                    throw fail.NOT_FOUND();
                }
                return Response.json(document);
            }
        }),
        http({
            methods: ['GET', 'HEAD'],
            path: '/.well-known/oauth-authorization-server',
            id: 'auth.oauth.server',
            summary: 'Read the metadata of the authorization server',
            description: 'RFC 8414.',
            access,
            raw,
            maxBytes: 0,
            handler: (request) => Response.json(oauth.describe(hostOf(request)))
        })
    ];
}

function endpoints(oauth: OAuth): Route[] {
    const form = { methods: ['POST'], raw, maxBytes: 16 * 1024, audit: false } as const;
    return [
        http({
            ...form,
            path: '/api/auth/oauth/token',
            id: 'auth.oauth.token',
            summary: 'Exchange a code or a refresh token for an access token',
            description:
                'RFC 6749, sections 4.1.3 and 6, as a form. A code lasts 60 s and is good once. A refresh token is spent by this; for 30 s the same token gets the same pair again, unless the new one was used; after that it ends its grant.',
            access: { public: 'The code or the refresh token is the credential, and is checked here' },
            handler: (request, call) =>
                answered(async () => oauth.token(call, await formOf(request), hostOf(request)))
        }),
        http({
            ...form,
            path: '/api/auth/oauth/revoke',
            id: 'auth.oauth.revoke',
            summary: 'End the grant of a token',
            description: 'RFC 7009, as a form.',
            access: { public: 'The token is the credential, and is checked here' },
            handler: (request, call) =>
                answered(async () => {
                    await oauth.revoke(call, await formOf(request));
                    return {};
                })
        }),
        http({
            ...form,
            maxBytes: 64 * 1024,
            path: '/api/auth/oauth/register',
            id: 'auth.oauth.register',
            summary: 'Register a client, as the client itself',
            description:
                'RFC 7591, as JSON. 40400 unless an admin allowed it with the setting `panel.oauthRegistration`.',
            access: {
                public: 'A client has no token yet; what it registers may do nothing until a user authorizes it'
            },
            handler: (request, call) =>
                answered(
                    () =>
                        oauth.register(call, async () => {
                            try {
                                return parseJson(await request.bytes(), form.maxBytes);
                            } catch (error) {
                                throw isFailure(error)
                                    ? new OAuthRefusal('invalid_client_metadata', error.message)
                                    : error;
                            }
                        }),
                    201
                )
        })
    ];
}

function authorizations(oauth: OAuth): Route[] {
    const own = { method: 'POST', access: 'authenticated', ownAccount: true, sessionOnly: true } as const;
    return [
        json({
            ...own,
            path: '/api/auth/oauth/authorize/validate',
            id: 'auth.oauth.preview',
            summary: 'See what a client would be authorized to do',
            description:
                'The same body and errors as the authorization. `data.redirect` of 40001 is where the browser takes the error to the client; without it, the browser must not be sent there.',
            effect: 'read',
            validate: { payload: authorizationRequest },
            returns: preview,
            handler: (call) => oauth.preview(call, call.payload, call.headers['host'])
        }),
        json({
            ...own,
            path: '/api/auth/oauth/authorize',
            id: 'auth.oauth.authorize',
            answers: [200],
            summary: 'Authorize a client, or refuse it',
            description:
                'The parameters of RFC 6749, section 4.1.1, with PKCE (S256) and `resource` (RFC 8707). `scope` names permissions that one has oneself; to give less than the client asked for, send less. The browser goes to `redirect`.',
            stepUp: true,
            secret: true,
            validate: { payload: authorization },
            returns: redirect,
            handler: (call) => {
                call.audit({ resource: 'grants', ...(call.payload.deny === true ? { action: 'deny' } : {}) });
                return oauth.authorize(call, call.payload, call.headers['host']);
            }
        })
    ];
}

function clients({ clients: service }: OAuth): Route[] {
    const own = { access: 'authenticated', ownAccount: true } as const;
    return [
        json({
            ...own,
            method: 'GET',
            path: '/api/auth/oauth/clients',
            id: 'auth.oauth.clients.list',
            summary: "List one's OAuth clients; with `settings:read` also those that registered themselves",
            returns: joi.array().items(client),
            handler: (call) => service.list(call)
        }),
        json({
            ...own,
            method: 'POST',
            path: '/api/auth/oauth/clients',
            id: 'auth.oauth.clients.create',
            answers: [201],
            summary: 'Register an OAuth client that one alone may authorize',
            sessionOnly: true,
            validate: { payload: clientRequest },
            returns: client,
            handler: (call) => service.create(call, call.payload)
        }),
        json({
            ...own,
            method: 'GET',
            path: '/api/auth/oauth/clients/{clientId}',
            id: 'auth.oauth.clients.read',
            summary: 'Read an OAuth client',
            validate: { params: clientParams },
            returns: client,
            handler: (call) => service.get(call, call.params.clientId)
        }),
        json({
            ...own,
            method: 'DELETE',
            path: '/api/auth/oauth/clients/{clientId}',
            id: 'auth.oauth.clients.remove',
            fails: ['FORBIDDEN'],
            summary: 'Remove an OAuth client, and end what was granted to it',
            description: 'For one that registered itself: `settings:write`. The grants of all users end.',
            sessionOnly: true,
            validate: { params: clientParams },
            returns: joi.valid(null),
            handler: async (call) => {
                await service.remove(call, call.params.clientId);
                return null;
            }
        })
    ];
}

/** Answers a client in the form of its protocol. What is the panel's own fault stays the panel's own failure. */
async function answered(work: () => Promise<object>, status = 200): Promise<Response> {
    try {
        return Response.json(await work(), { status });
    } catch (error) {
        const refusal = error instanceof OAuthRefusal ? error : null;
        if (refusal === null) {
            throw error;
        }
        return Response.json(
            { error: refusal.error, error_description: refusal.message },
            { status: refusal.status }
        );
    }
}

/** @throws OAuthRefusal `invalid_request`; `invalid_client` for a client that shows a secret, which none has here */
async function formOf(request: Request): Promise<Readonly<Record<string, string>>> {
    const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
    if (type !== 'application/x-www-form-urlencoded') {
        throw new OAuthRefusal('invalid_request', 'The body must be application/x-www-form-urlencoded');
    }
    const fields = [...new URLSearchParams(await request.text())];
    const form = Object.fromEntries(fields);
    if (Object.keys(form).length !== fields.length) {
        throw new OAuthRefusal('invalid_request', 'A parameter is there twice');
    }
    return form;
}

function hostOf(request: Request): string | undefined {
    return request.headers.get('host') ?? undefined;
}
