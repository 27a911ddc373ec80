/** OAuth clients: those that a user registers, those that register themselves where an admin allows it, and those that a URL names. */
import { randomBytes } from 'node:crypto';

import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import { OauthClientEntity } from '../entities.ts';
import { entryOf } from '../record.ts';
import type { ApiTokens } from '../tokens/api-tokens.ts';
import { type DocumentSource, isClientUrl, readClientDocument, readMetadata } from './client-document.ts';
import { faultOfRedirect } from './redirect.ts';
import { OAuthRefusal } from './refusal.ts';

/** A client that asks for authorization. */
export interface OAuthClient {
    readonly id: string;
    readonly name: string;
    readonly redirectUris: readonly string[];
}

/** A client that is registered here, as the API shows it. */
export interface OAuthClientView {
    readonly clientId: string;
    readonly name: string;
    readonly redirectUris: readonly string[];
    /** Whether the client registered itself, so that every user may authorize it; otherwise only its owner may. */
    readonly selfRegistered: boolean;
    readonly createdAt: string;
    readonly version: number;
}

/** The answer of a registration (RFC 7591, section 3.2.1). */
export interface Registration {
    readonly client_id: string;
    readonly client_id_issued_at: number;
    readonly client_name: string;
    readonly redirect_uris: readonly string[];
    readonly token_endpoint_auth_method: 'none';
    readonly grant_types: readonly string[];
    readonly response_types: readonly string[];
}

/** What {@link OAuthClients} needs. */
export interface OAuthClientsDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly recorder: Recorder;
    readonly apiTokens: ApiTokens;
    readonly outbound: DocumentSource;
}

interface Row {
    readonly id: string;
    readonly user_id: number | null;
    readonly name: string;
    readonly redirect_uris: string;
    readonly created_at: number;
}

interface Stored extends OAuthClient {
    readonly userId: number | null;
    readonly createdAt: number;
}

const mostOfOneUser = 50;
const mostSelfRegistered = 500;
/** A client that registered itself is authorized within minutes, or not at all. */
const unusedMs = 24 * 3600_000;

/** The clients of the OAuth server. */
export class OAuthClients {
    readonly #in: OAuthClientsDependencies;
    readonly #one;
    readonly #all;

    constructor(dependencies: OAuthClientsDependencies) {
        this.#in = dependencies;
        this.#one = dependencies.db.prepare<[string], Row>('select * from auth_oauth_clients where id = ?');
        this.#all = dependencies.db.prepare<[], Row>(
            'select * from auth_oauth_clients order by created_at, id'
        );
    }

    /** The client that asks a user for authorization. A URL is read anew each time. @throws VALIDATION_FAILED 40001 for the path `client_id` */
    async find(userId: number, id: string): Promise<OAuthClient> {
        if (isClientUrl(id)) {
            const { name, redirectUris } = await readClientDocument(this.#in.outbound, id);
            return { id, name: name ?? new URL(id).host, redirectUris };
        }
        const client = this.#stored(id);
        if (client === undefined || (client.userId !== null && client.userId !== userId)) {
            throw invalid({
                path: 'client_id',
                message: 'client_id names no client that is registered here'
            });
        }
        return client;
    }

    /** False for an id that was registered here and is no more. */
    mayExist(id: string): boolean {
        return isClientUrl(id) || this.#one.get(id) !== undefined;
    }

    /** One's own clients; with `settings:read` also those that registered themselves. */
    list({ actor }: Call): OAuthClientView[] {
        const { skipped } = this.#in.db;
        return this.#all
            .all()
            .filter((row) => row.user_id === actor.id || (row.user_id === null && actor.can('settings:read')))
            .map((row) => skipped.read('auth_oauth_clients', row.id, () => viewOf(storedOf(row))))
            .filter((view) => view !== undefined);
    }

    /** @throws NOT_FOUND 40400, also for another user's */
    get(call: Call, id: string): OAuthClientView {
        const view = this.list(call).find(({ clientId }) => clientId === id);
        if (view === undefined) {
            throw fail.NOT_FOUND();
        }
        return view;
    }

    /** Registers a client that its maker alone may authorize. @throws VALIDATION_FAILED 40001 */
    async create(
        call: Call,
        { name, redirectUris }: { readonly name: string; readonly redirectUris: readonly string[] }
    ): Promise<Reply<OAuthClientView>> {
        const faults = redirectUris.flatMap((uri, at) => {
            const fault = faultOfRedirect(uri);
            return fault === null
                ? []
                : [{ path: `redirectUris.${at}`, message: `redirectUris.${at} ${fault}` }];
        });
        if (faults.length > 0) {
            throw invalid(...faults);
        }
        return this.#in.db.write(async (tx) => {
            const userId = call.actor.id ?? 0;
            if ((await tx.em.count(OauthClientEntity, { userId })) >= mostOfOneUser) {
                throw invalid({ path: 'name', message: `There are ${mostOfOneUser} clients already` });
            }
            const view = viewOf(await this.#add(tx, { userId, name, redirectUris }));
            return call.complete(tx, {
                action: 'create',
                resource: 'oauth-clients',
                resourceId: view.clientId,
                before: null,
                after: view,
                reply: reply.created(`/api/auth/oauth/clients/${view.clientId}`, view)
            });
        });
    }

    /** Registers a client that asks for itself (RFC 7591). Those that no user authorized within a day go. @throws OAuthRefusal */
    async register(call: Call, metadata: unknown): Promise<Registration> {
        const { db, clock, apiTokens, recorder } = this.#in;
        const { name, redirectUris } = readMetadata(metadata);
        const client = await db.write(async (tx) => {
            const all = await tx.em.find(OauthClientEntity, { userId: null });
            const unused = all.filter(
                ({ id, createdAt }) =>
                    createdAt < clock.now() - unusedMs && apiTokens.grants({ clientId: id }).length === 0
            );
            await tx.em.nativeDelete(OauthClientEntity, { id: { $in: unused.map(({ id }) => id) } });
            if (all.length - unused.length >= mostSelfRegistered) {
                return null;
            }
            const made = await this.#add(tx, {
                userId: null,
                name: name ?? 'A client without a name',
                redirectUris
            });
            await recorder.record(
                tx,
                entryOf(call, { action: 'register', resource: 'oauth-clients', code: 0, after: viewOf(made) })
            );
            return made;
        });
        if (client === null) {
            throw new OAuthRefusal('temporarily_unavailable', 'Too many clients have registered themselves');
        }
        return {
            client_id: client.id,
            client_id_issued_at: Math.floor(client.createdAt / 1000),
            client_name: client.name,
            redirect_uris: client.redirectUris,
            token_endpoint_auth_method: 'none',
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code']
        };
    }

    /** Removes a client, and ends what was granted to it. @throws NOT_FOUND 40400, FORBIDDEN 40300 for one that registered itself */
    async remove(call: Call, id: string): Promise<void> {
        const { db, apiTokens } = this.#in;
        await db.write(async (tx) => {
            const before = this.get(call, id);
            if (before.selfRegistered && !call.actor.can('settings:write')) {
                throw fail.FORBIDDEN({ permission: 'settings:write' });
            }
            await apiTokens.end(tx, apiTokens.grants({ clientId: id }));
            await tx.em.nativeDelete(OauthClientEntity, { id });
            await call.complete(tx, {
                action: 'delete',
                resource: 'oauth-clients',
                resourceId: id,
                before,
                after: null,
                reply: null
            });
        });
    }

    /** Removes the clients of a user who is removed. */
    async removeOf(tx: Transaction, userId: number): Promise<void> {
        await tx.em.nativeDelete(OauthClientEntity, { userId });
    }

    #stored(id: string): Stored | undefined {
        const row = this.#one.get(id);
        return row === undefined
            ? undefined
            : this.#in.db.skipped.read('auth_oauth_clients', id, () => storedOf(row));
    }

    async #add(tx: Transaction, client: Pick<Stored, 'userId' | 'name' | 'redirectUris'>): Promise<Stored> {
        const row = {
            ...client,
            id: `pc_${randomBytes(16).toString('base64url')}`,
            redirectUris: [...client.redirectUris],
            createdAt: this.#in.clock.now()
        };
        await tx.em.insert(OauthClientEntity, row);
        return row;
    }
}

function storedOf({ id, user_id: userId, name, redirect_uris: uris, created_at: createdAt }: Row): Stored {
    return { id, userId, name, redirectUris: JSON.parse(uris) as string[], createdAt };
}

function viewOf({ id, userId, name, redirectUris, createdAt }: Stored): OAuthClientView {
    return {
        clientId: id,
        name,
        redirectUris,
        selfRegistered: userId === null,
        createdAt: new Date(createdAt).toISOString(),
        version: 1
    };
}
