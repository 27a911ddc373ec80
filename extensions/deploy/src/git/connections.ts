/** How repositories of a host are reached: by tokens, deploy keys and GitHub Apps. Secrets are sealed at rest. */
import { createSign } from 'node:crypto';

import { errors, joi } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { ConnectionEntity, type ConnectionRow } from '../entities.ts';
import { DeploymentFailed, uniqueName } from '../errors.ts';
import type { ProjectConfig } from '../projects/schema.ts';
import type { Folders } from '../releases/folders.ts';
import type { Ctx } from '../settings.ts';
import type { Credentials } from './credentials.ts';
import { apiOf, type ForgeAccess, type ForgeKind, forgeOfHost } from './forges.ts';
import type { Remote } from './git.ts';
import { makeKey } from './keys.ts';
import { type Address, hostOf, parseAddress } from './remote/address.ts';

/** How a host is shown who asks. */
export type ConnectionKind = 'key' | 'token' | 'github-app';

/** What may be shown of a connection. */
export interface ConnectionConfig {
    readonly kind: ConnectionKind;
    /** With the port that the addresses have. */
    readonly host: string;
    readonly username: string | null;
    readonly appId: string | null;
    readonly installationId: string | null;
    readonly forge: ForgeKind | null;
    readonly apiUrl: string | null;
    readonly publicKey: string | null;
}

/** The secrets of a connection to a git server, as they are sealed. */
export interface ConnectionSecrets {
    readonly token?: string;
    readonly privateKey?: string;
}

/** A connection as it is said. */
export interface ConnectionInput
    extends Partial<Omit<ConnectionConfig, 'kind' | 'host' | 'publicKey'>>, ConnectionSecrets {
    readonly name: string;
    readonly kind: ConnectionKind;
    readonly host: string;
}

/** A connection as it is kept. */
export interface Connection {
    readonly id: number;
    readonly version: number;
    readonly name: string;
    readonly config: ConnectionConfig;
    readonly sealed: string;
}

const appMinutes = 9;
const skewSeconds = 60;
const tokenSchema = joi.object({ token: joi.string().max(1_000).required() }).unknown(true);

/** Keeps connections, and says what opens a repository. */
export class Connections {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** All connections. */
    async all(): Promise<readonly Connection[]> {
        const rows = await this.#ctx.db.read((em) => findRows(em, ConnectionEntity, {}));
        return rows.map(connectionOf);
    }

    /** One connection. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Connection> {
        const row = await this.#ctx.db.read((em) => findRow(em, ConnectionEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no connection ${id}`);
        }
        return connectionOf(row);
    }

    /** Adds a connection; makes the key where none was given. @throws VALIDATION_FAILED 40001, CONFLICT 40900 */
    async add(input: ConnectionInput): Promise<Connection> {
        const { config, secrets } = await this.#complete(input, {});
        const sealed = await this.#ctx.secrets.seal(JSON.stringify(secrets));
        return uniqueName(async () => {
            const row = await this.#ctx.db.write(async (em) => {
                const entity = em.create(ConnectionEntity, {
                    version: 1,
                    name: input.name,
                    config: JSON.stringify(config),
                    secrets: sealed
                });
                await em.flush();
                return { ...entity } as ConnectionRow;
            });
            return connectionOf(row);
        });
    }

    /** Replaces a connection; secrets that are left out stay. @throws VALIDATION_FAILED 40001, CONFLICT 40900 */
    async replace(before: Connection, input: ConnectionInput): Promise<Connection> {
        // A secret never goes to another host than the one that it was given for.
        const { host, kind, apiUrl } = before.config;
        const stays = input.host === host && input.kind === kind && (input.apiUrl ?? null) === apiUrl;
        const { config, secrets } = await this.#complete(input, stays ? await this.#secrets(before) : {});
        const sealed = await this.#ctx.secrets.seal(JSON.stringify(secrets));
        const version = before.version + 1;
        await uniqueName(() =>
            this.#ctx.db.write((em) =>
                em.nativeUpdate(
                    ConnectionEntity,
                    { id: before.id },
                    { name: input.name, config: JSON.stringify(config), secrets: sealed, version }
                )
            )
        );
        if (input.host !== before.config.host) {
            await this.forgetHostKey(before.id);
        }
        return this.get(before.id);
    }

    /** Removes a connection. */
    async remove(id: number): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(ConnectionEntity, { id }));
        await this.#folders.remove(`connections/${id}`);
    }

    /** The key of the host as it was pinned at the first use; null before that. */
    async hostKey(id: number): Promise<string | null> {
        const file = await this.#folders.files.open(`connections/${id}/known_hosts`).catch(() => null);
        if (file === null) {
            return null;
        }
        try {
            return (await file.readFile('utf8')).trim() || null;
        } finally {
            await file.close();
        }
    }

    /** Lets the next use pin the key of the host anew. */
    async forgetHostKey(id: number): Promise<void> {
        await this.#folders.remove(`connections/${id}/known_hosts`);
    }

    /** Refuses a connection that is none of the repository's host. @throws VALIDATION_FAILED 40001 */
    async check({ connection }: ProjectConfig['source'], address: Address): Promise<void> {
        if (connection === null) {
            return;
        }
        const found = await this.get(connection).catch(() => null);
        if (found?.config.host.toLowerCase() !== hostOf(address)) {
            throw errors.invalid([
                { path: 'source.connection', message: `It is no connection for ${hostOf(address)}` }
            ]);
        }
        if ((found.config.kind === 'key') !== (address.scheme === 'ssh')) {
            throw errors.invalid([
                { path: 'source.connection', message: 'Keys are for ssh, tokens and apps for https' }
            ]);
        }
    }

    /** Where the repository of a project is, and what opens it. @throws REPOSITORY_REFUSED 42250, VALIDATION_FAILED 40001 */
    async remote(source: Pick<ProjectConfig['source'], 'url' | 'connection'>): Promise<Remote> {
        const address = parseAddress(source.url);
        await this.check(source as ProjectConfig['source'], address);
        const credentials =
            source.connection === null ? null : await this.#credentials(await this.get(source.connection));
        return { address, credentials };
    }

    /** How the API of a connection's forge is reached. @throws VALIDATION_FAILED 40001 for a key, and where no forge is named; DeploymentFailed FETCH_FAILED */
    async forge(connection: Connection): Promise<ForgeAccess> {
        const { kind, forge, host, apiUrl } = connection.config;
        if (forge === null || kind === 'key') {
            throw errors.invalid([
                { path: 'connection', message: 'It must be a token or an app, and say which forge it is for' }
            ]);
        }
        const { token = '', privateKey = '' } = await this.#secrets(connection);
        return {
            kind: forge,
            api: (apiUrl ?? apiOf(forge, host)).replace(/\/+$/, ''),
            token: kind === 'token' ? token : await this.#installationToken(connection, privateKey),
            isApp: kind === 'github-app'
        };
    }

    /** How the API of a project's forge is reached; null where nothing says which forge it is. */
    async forgeOf({
        url,
        connection
    }: Pick<ProjectConfig['source'], 'url' | 'connection'>): Promise<ForgeAccess | null> {
        if (connection !== null) {
            const found = await this.get(connection);
            if (found.config.forge !== null && found.config.kind !== 'key') {
                return this.forge(found);
            }
        }
        const { host } = parseAddress(url);
        const kind = forgeOfHost(host);
        return kind === null ? null : { kind, api: apiOf(kind, host), token: null, isApp: false };
    }

    async #credentials(connection: Connection): Promise<Credentials> {
        const { kind, username } = connection.config;
        const { token = '', privateKey = '' } = await this.#secrets(connection);
        if (kind === 'key') {
            await this.#folders.prepare();
            await this.#folders.files.createFolder('connections', { mode: 0o711, parents: true });
            const folder = await this.#folders.own(`connections/${connection.id}`);
            return { kind, privateKey, knownHosts: this.#folders.absolute(`${folder}/known_hosts`) };
        }
        return kind === 'token'
            ? { kind, username: username ?? 'oauth2', token }
            : {
                  kind: 'token',
                  username: 'x-access-token',
                  token: await this.#installationToken(connection, privateKey)
              };
    }

    /** A token of the installation of a GitHub App, good for an hour. @throws DeploymentFailed FETCH_FAILED */
    async #installationToken({ config }: Connection, privateKey: string): Promise<string> {
        const now = Math.floor(Date.now() / 1_000);
        const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
        const claims = { iat: now - skewSeconds, exp: now + appMinutes * 60, iss: config.appId };
        const head = `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}`;
        const signature = createSign('RSA-SHA256').update(head).sign(privateKey, 'base64url');
        const api = config.apiUrl ?? apiOf('github', config.host);
        const answer = await this.#ctx.fetch(
            `${api}/app/installations/${config.installationId}/access_tokens`,
            {
                method: 'POST',
                redirect: 'error',
                headers: {
                    authorization: `Bearer ${head}.${signature}`,
                    accept: 'application/vnd.github+json'
                }
            }
        );
        const { error, value } = tokenSchema.validate(await answer.json().catch(() => null)) as {
            error?: Error;
            value: { token: string };
        };
        if (!answer.ok || error !== undefined) {
            throw new DeploymentFailed(
                'FETCH_FAILED',
                `GitHub gave the app no token: it answered ${answer.status}`
            );
        }
        return value.token;
    }

    /** A connection with its secrets, for exports. */
    async exported(connection: Connection): Promise<ConnectionInput> {
        const { publicKey: _publicKey, ...config } = connection.config;
        return { name: connection.name, ...config, ...(await this.#secrets(connection)) };
    }

    async #secrets({ sealed }: Connection): Promise<ConnectionSecrets> {
        return JSON.parse(await this.#ctx.secrets.open(sealed)) as ConnectionSecrets;
    }

    async #complete(
        { kind, host, username, appId, installationId, forge, apiUrl, token, privateKey }: ConnectionInput,
        kept: ConnectionSecrets
    ): Promise<{ readonly config: ConnectionConfig; readonly secrets: ConnectionSecrets }> {
        const missing = (path: string): Error => errors.invalid([{ path, message: `A ${kind} needs it` }]);
        const config = {
            kind,
            host: host.toLowerCase(),
            username: username ?? null,
            appId: appId ?? null,
            installationId: installationId ?? null,
            forge: forge ?? (kind === 'github-app' ? 'github' : forgeOfHost(host.toLowerCase())),
            apiUrl: apiUrl ?? null,
            publicKey: null
        };
        if (kind === 'token') {
            const secret = token ?? kept.token;
            if (secret === undefined) {
                throw missing('token');
            }
            return { config, secrets: { token: secret } };
        }
        const secret = privateKey ?? kept.privateKey;
        if (kind === 'github-app') {
            const absent = [
                ['appId', config.appId],
                ['installationId', config.installationId],
                ['privateKey', secret]
            ].find(([, value]) => value === null || value === undefined);
            if (absent !== undefined) {
                throw missing(String(absent[0]));
            }
            return { config, secrets: { privateKey: secret as string } };
        }
        const key = await makeKey(this.#ctx, this.#folders, secret ?? null);
        return { config: { ...config, publicKey: key.publicKey }, secrets: { privateKey: key.privateKey } };
    }
}

function connectionOf({ id, version, name, config, secrets }: ConnectionRow): Connection {
    return { id, version, name, config: JSON.parse(config) as ConnectionConfig, sealed: secrets };
}
