/** Logins of registries. A password goes to its own registry alone, by the engine. */
import { errors } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import type { Engine } from '../engine/engine.ts';
import { RegistryEntity, type RegistryRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { parseReference } from './reference.ts';

/** A registry as answers show it. */
export interface RegistryView {
    readonly id: number;
    readonly server: string;
    readonly username: string;
    readonly passwordSet: boolean;
}

/** Who logs in to a registry, as the engine takes it. */
export interface Login {
    readonly username: string;
    readonly password: string;
    /** The registry, by the name that the engine compares. */
    readonly serveraddress: string;
}

/** Names by which Docker Hub is known. */
const hub = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com']);

/** Keeps the logins at image registries, sealed, and finds the one for an image. */
export class Registries {
    readonly #ctx: Ctx;
    readonly #engine: Engine;

    constructor(ctx: Ctx, engine: Engine) {
        this.#ctx = ctx;
        this.#engine = engine;
    }

    async list(): Promise<readonly RegistryRow[]> {
        return this.#ctx.db.read((em) => findRows(em, RegistryEntity, {}, { orderBy: { server: 'asc' } }));
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RegistryRow> {
        const row = await this.#ctx.db.read((em) => findRow(em, RegistryEntity, { id }));
        if (row === null) {
            throw errors.notFound('There is no registry of that number');
        }
        return row;
    }

    /** @throws CONFLICT 40900 */
    async create(input: {
        readonly server: string;
        readonly username: string;
        readonly password: string;
    }): Promise<RegistryView> {
        const row = {
            ...input,
            server: serverOf(input.server),
            password: await this.#ctx.secrets.seal(input.password)
        };
        const id = await this.#ctx.db.write(async (em) => {
            if ((await em.count(RegistryEntity, { server: row.server })) > 0) {
                throw errors.conflict('server');
            }
            return em.insert(RegistryEntity, row);
        });
        return viewOf({ ...row, id });
    }

    async update(
        id: number,
        change: { readonly username?: string | undefined; readonly password?: string | undefined }
    ): Promise<RegistryView> {
        const row = await this.get(id);
        const next = {
            username: change.username ?? row.username,
            password:
                change.password === undefined ? row.password : await this.#ctx.secrets.seal(change.password)
        };
        await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(RegistryEntity, { id }, next)));
        return viewOf({ ...row, ...next });
    }

    async remove(id: number): Promise<RegistryView> {
        const row = await this.get(id);
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(RegistryEntity, { id })));
        return viewOf(row);
    }

    /** Logs in once. @throws REGISTRY_FAILED 50250 with what the registry says */
    async test(id: number): Promise<{ readonly ok: true }> {
        const row = await this.get(id);
        try {
            await this.#engine.call('POST', '/auth', { body: await this.#loginOf(row), patienceMs: 30_000 });
        } catch (error) {
            const { code, data, message } = error as {
                code?: number;
                data?: { engine?: string };
                message: string;
            };
            const why = data?.engine ?? message;
            throw code === 42254
                ? fail.REGISTRY_FAILED(
                      { message: why },
                      { message: `The login to ${row.server} failed: ${why}` }
                  )
                : error;
        }
        return { ok: true };
    }

    /** The login that is kept for the registry of an image; null where there is none. */
    async loginFor(image: string): Promise<Login | null> {
        const registry = serverOf(parseReference(image)?.registry ?? '');
        const row = (await this.list()).find(({ server }) => server === registry);
        return row === undefined ? null : this.#loginOf(row);
    }

    /** The header by which the engine logs in to the registry of an image; none where no login is kept for it. */
    async headersFor(image: string): Promise<Readonly<Record<string, string>>> {
        const login = await this.loginFor(image);
        return login === null ? {} : { 'x-registry-auth': encode(login) };
    }

    /** The header by which the engine logs in to the registries that the file of a build names, to each with its own login. */
    async headersForBuild(): Promise<Readonly<Record<string, string>>> {
        const logins = await Promise.all(
            (await this.list()).map(async (row) => {
                const login = await this.#loginOf(row);
                return [login.serveraddress, login] as const;
            })
        );
        return logins.length === 0 ? {} : { 'x-registry-config': encode(Object.fromEntries(logins)) };
    }

    async #loginOf({ server, username, password }: RegistryRow): Promise<Login> {
        return {
            username,
            password: await this.#ctx.secrets.open(password),
            serveraddress: server === 'docker.io' ? 'https://index.docker.io/v1/' : server
        };
    }
}

/** JSON as both engines read it in a header: Podman takes the alphabet of URLs alone, and wants the padding. */
const encode = (data: object): string =>
    Buffer.from(JSON.stringify(data)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');

/** A registry without its password. */
export function viewOf({ id, server, username }: Omit<RegistryRow, 'password'>): RegistryView {
    return { id, server, username, passwordSet: true };
}

const serverOf = (text: string): string => {
    const plain = text
        .replace(/^https?:\/\//, '')
        .replace(/\/.*$/, '')
        .toLowerCase();
    return hub.has(plain) ? 'docker.io' : plain;
};
