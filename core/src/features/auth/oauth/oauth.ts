/**
 * The panel as an OAuth 2.1 authorization server for its own protected resources: raw routes of plugins that say `oauth: true`. Clients are
 * public and prove themselves by PKCE; tokens are good for one resource.
 */
import type { Call } from '../../../platform/call.ts';
import { fail, type Invalid } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import type { Route } from '../../../server/http/route.ts';
import type { Pace } from '../login/pace.ts';
import { entryOf } from '../record.ts';
import type { OAuthClient, OAuthClients, Registration } from './clients.ts';
import { type Form, type Grants, scopesOf, type TokenAnswer } from './grants.ts';
import { isRegistered, redirectTo } from './redirect.ts';
import { OAuthRefusal, type RefusalCode } from './refusal.ts';

/** The parameters of an authorization request (RFC 6749, section 4.1.1; RFC 7636; RFC 8707), as the panel's page hands them on. */
export interface AuthorizationRequest {
    readonly response_type?: string | undefined;
    readonly client_id: string;
    readonly redirect_uri: string;
    readonly scope?: string | undefined;
    readonly state?: string | undefined;
    readonly code_challenge?: string | undefined;
    readonly code_challenge_method?: string | undefined;
    readonly resource?: string | undefined;
}

/** What a user is asked to agree to. */
export interface AuthorizationView {
    readonly client: { readonly id: string; readonly name: string };
    /** Where the answer goes. */
    readonly redirectUri: string;
    readonly resource: { readonly path: string; readonly title: string };
    readonly permissions: readonly {
        readonly name: string;
        readonly title: string;
        readonly dangerous: boolean;
        /** The user has it, and so can give it. */
        readonly allowed: boolean;
    }[];
}

/** A permission as users know it. */
export interface NamedPermission {
    readonly name: string;
    readonly title: string;
    readonly dangerous?: boolean;
}

/** What {@link OAuth} needs. */
export interface OAuthDependencies {
    readonly clients: OAuthClients;
    readonly grants: Grants;
    readonly recorder: Recorder;
    /** Slows those down who are not logged in. */
    readonly pace: Pace;
    /** The same for registrations, which leave a row behind. */
    readonly registrations: Pace;
    readonly mayRegister: () => boolean;
    /** The protected resource at a path; null when there is none. */
    readonly resource: (path: string) => Route | null;
    readonly permissions: () => readonly NamedPermission[];
    /** The panel's origin, as a client that sent this `Host` sees it. */
    readonly origin: (host: string | undefined) => string;
}

/** An authorization request that was found to be right. */
interface Checked {
    readonly client: OAuthClient;
    readonly redirectUri: string;
    readonly challenge: string;
    readonly scopes: readonly string[];
    readonly path: string;
    readonly route: Route;
    /** Sends the browser back to the client. */
    readonly back: (answer: Readonly<Record<string, string>>) => string;
}

const challengeForm = /^[\w-]{43}$/;

/** The authorization server of the panel (RFC 6749 with PKCE): it registers clients, asks users, and issues tokens for protected resources. */
export class OAuth {
    readonly clients: OAuthClients;
    readonly grants: Grants;
    readonly #in: OAuthDependencies;

    constructor(dependencies: OAuthDependencies) {
        this.#in = dependencies;
        this.clients = dependencies.clients;
        this.grants = dependencies.grants;
    }

    /** Whether clients may register themselves. */
    get mayRegister(): boolean {
        return this.#in.mayRegister();
    }

    /** What the user would agree to. Changes nothing. @throws VALIDATION_FAILED 40001, see {@link authorize}; RATE_LIMITED 42900 */
    async preview(
        call: Call,
        request: AuthorizationRequest,
        host: string | undefined
    ): Promise<AuthorizationView> {
        const { client, redirectUri, scopes, path, route } = await this.#check(call, request, host);
        const known = new Map(this.#in.permissions().map((permission) => [permission.name, permission]));
        return {
            client: { id: client.id, name: client.name },
            redirectUri,
            resource: { path, title: route.summary },
            permissions: scopes.map((name) => ({
                name,
                title: known.get(name)?.title ?? name,
                dangerous: known.get(name)?.dangerous === true,
                allowed: call.actor.can(name)
            }))
        };
    }

    /**
     * Gives the client what it asks for, or tells it that the user did not. The answer is where the browser goes.
     *
     * @throws VALIDATION_FAILED 40001. `data.redirect` is then where the client learns of it; it is absent where the client or its redirect URI
     * is wrong, since the browser must not be sent there (RFC 6749, section 4.1.2.1). FORBIDDEN 40300 for a permission that the giver lacks;
     * RATE_LIMITED 42900
     */
    async authorize(
        call: Call,
        { deny, ...request }: AuthorizationRequest & { readonly deny?: boolean | undefined },
        host: string | undefined
    ): Promise<{ readonly redirect: string }> {
        const { client, redirectUri, challenge, scopes, path, back } = await this.#check(call, request, host);
        if (deny === true) {
            return { redirect: back({ error: 'access_denied' }) };
        }
        return this.grants.give(
            call,
            { client, permissions: scopes, resource: path, redirectUri, challenge },
            (code) => ({ redirect: back({ code }) })
        );
    }

    /** The token endpoint (RFC 6749, section 3.2). @throws OAuthRefusal; RATE_LIMITED 42900 */
    async token(call: Call, form: Form, host: string | undefined): Promise<TokenAnswer> {
        this.#in.pace.step(call.ip);
        return this.#recorded(call, 'token', async () => {
            const target = this.#target(form['resource'], host);
            switch (form['grant_type']) {
                case 'authorization_code':
                    return this.grants.exchange(call, form, target);
                case 'refresh_token':
                    return this.grants.refresh(call, form, target);
                default:
                    throw new OAuthRefusal(
                        'unsupported_grant_type',
                        'grant_type must be authorization_code or refresh_token'
                    );
            }
        });
    }

    /** The revocation endpoint (RFC 7009). @throws OAuthRefusal; RATE_LIMITED 42900 */
    async revoke(call: Call, form: Form): Promise<void> {
        this.#in.pace.step(call.ip);
        await this.#recorded(call, 'revoke', () => this.grants.revoke(call, form));
    }

    /** The registration endpoint (RFC 7591). @throws NOT_FOUND 40400 while the setting is off; OAuthRefusal; RATE_LIMITED 42900 */
    async register(call: Call, metadata: () => Promise<unknown>): Promise<Registration> {
        if (!this.mayRegister) {
            throw fail.NOT_FOUND(null, { message: 'Clients cannot register themselves at this panel' });
        }
        this.#in.registrations.step(call.ip);
        return this.clients.register(call, await metadata());
    }

    /** Metadata of a protected resource (RFC 9728, section 2); null when there is none at this path. */
    describeResource(path: string, host: string | undefined): object | null {
        const route = this.#in.resource(path);
        if (route === null) {
            return null;
        }
        const origin = this.#in.origin(host);
        return {
            resource: `${origin}${path}`,
            authorization_servers: [origin],
            // A client asks for all of these. What could give the panel away is to be asked for by name.
            scopes_supported: this.#in
                .permissions()
                .filter(({ dangerous }) => dangerous !== true)
                .map(({ name }) => name),
            bearer_methods_supported: ['header'],
            resource_name: route.summary
        };
    }

    /** Metadata of the authorization server (RFC 8414, section 2). */
    describe(host: string | undefined): object {
        const issuer = this.#in.origin(host);
        const at = (name: string): string => `${issuer}/api/auth/oauth/${name}`;
        return {
            issuer,
            authorization_endpoint: `${issuer}/oauth/authorize`,
            token_endpoint: at('token'),
            revocation_endpoint: at('revoke'),
            ...(this.mayRegister ? { registration_endpoint: at('register') } : {}),
            response_types_supported: ['code'],
            response_modes_supported: ['query'],
            grant_types_supported: ['authorization_code', 'refresh_token'],
            token_endpoint_auth_methods_supported: ['none'],
            revocation_endpoint_auth_methods_supported: ['none'],
            code_challenge_methods_supported: ['S256'],
            authorization_response_iss_parameter_supported: true,
            client_id_metadata_document_supported: true
        };
    }

    /** Puts a refusal on record. */
    async #recorded<T>(call: Call, action: string, work: () => Promise<T>): Promise<T> {
        try {
            return await work();
        } catch (error) {
            if (error instanceof OAuthRefusal) {
                await this.#in.recorder.refused(entryOf(call, { action, resource: 'grants', code: 40101 }));
            }
            throw error;
        }
    }

    async #check(call: Call, request: AuthorizationRequest, host: string | undefined): Promise<Checked> {
        this.#in.pace.step(call.ip); // the document of a client is fetched for it
        const client = await this.clients.find(call.actor.id ?? 0, request.client_id);
        const { redirect_uri: redirectUri, state } = request;
        if (!isRegistered(client.redirectUris, redirectUri)) {
            throw fail.VALIDATION_FAILED({
                errors: [{ path: 'redirect_uri', message: 'redirect_uri is not one of the client' }]
            });
        }
        const iss = this.#in.origin(host);
        const back = (answer: Readonly<Record<string, string>>): string =>
            redirectTo(redirectUri, { ...answer, state, iss });
        const refuse = (error: RefusalCode, wrong: Invalid): never => {
            throw fail.VALIDATION_FAILED({
                errors: [wrong],
                redirect: back({ error, error_description: wrong.message })
            });
        };
        if (request.response_type !== 'code') {
            refuse('unsupported_response_type', {
                path: 'response_type',
                message: 'response_type must be code'
            });
        }
        const { code_challenge: challenge = '', code_challenge_method: method } = request;
        if (method !== 'S256') {
            refuse('invalid_request', {
                path: 'code_challenge_method',
                message: 'code_challenge_method must be S256'
            });
        }
        if (!challengeForm.test(challenge)) {
            refuse('invalid_request', {
                path: 'code_challenge',
                message: 'code_challenge must be a SHA-256 in base64url'
            });
        }
        const path = request.resource === undefined ? null : this.#pathOf(request.resource, iss);
        const route = path === null ? null : this.#in.resource(path);
        if (path === null || route === null) {
            return refuse('invalid_target', {
                path: 'resource',
                message: 'resource must be the address of a protected resource of this panel'
            });
        }
        const scopes = scopesOf(request.scope);
        const known = new Set(this.#in.permissions().map(({ name }) => name));
        const strange = scopes.find((scope) => !known.has(scope));
        if (scopes.length === 0 || strange !== undefined) {
            refuse('invalid_scope', {
                path: 'scope',
                message:
                    strange === undefined
                        ? 'scope must name permissions'
                        : `scope names ${strange}, which is no permission`
            });
        }
        return { client, redirectUri, challenge, scopes, path, route, back };
    }

    /** The path of the `resource` that a client names at the token endpoint. @throws OAuthRefusal `invalid_target` */
    #target(resource: string | undefined, host: string | undefined): string | undefined {
        const path = resource === undefined ? undefined : this.#pathOf(resource, this.#in.origin(host));
        if (path === null) {
            throw new OAuthRefusal('invalid_target', 'resource is no address of this panel');
        }
        return path;
    }

    /** The path of an address of this panel; null for all others: a token that is asked for by another server's address would be sent there. */
    #pathOf(resource: string, origin: string): string | null {
        const url = URL.parse(resource);
        return url?.origin === origin && url.search === '' && !resource.includes('#') && url.username === ''
            ? url.pathname
            : null;
    }
}
