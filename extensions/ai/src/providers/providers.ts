/** The providers that the admin set up. */
import { errors, type Request, requireVersion } from '@portico/sdk';
import { type EntityManager, findRow, findRows } from '@portico/sdk/db';

import { ProviderEntity, type ProviderRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Endpoint } from './model.ts';
import type { ChangedProvider, NewProvider, Provider } from './schema.ts';

/** What a write of the API brings beside its body. */
export type Write = Pick<Request, 'ifMatch' | 'audit'>;

/** Keeps the providers; their keys and headers are sealed. */
export class Providers {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** All, newest first. */
    async list(): Promise<Provider[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, ProviderEntity, {}, { orderBy: { id: 'desc' } })
        );
        return rows.map(viewOf);
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Provider> {
        return viewOf(await this.#ctx.db.read((em) => find(em, id)));
    }

    /** Makes one. The first one is the default. */
    async create(given: NewProvider, { audit }: Pick<Write, 'audit'>): Promise<Provider> {
        const sealed = await this.#seal(given);
        const view = await this.#ctx.db.write(async (em) => {
            const isFirst = (await em.count(ProviderEntity, {})) === 0;
            const { apiKey: _key, headers: _headers, prices, ...fields } = given;
            const row = em.create(ProviderEntity, {
                ...fields,
                version: 1,
                apiKey: null,
                headers: null,
                headerNames: '[]',
                ...sealed,
                priceInput: prices?.input ?? null,
                priceOutput: prices?.output ?? null,
                isDefault: isFirst || given.isDefault
            });
            await em.flush();
            await keepOneDefault(em, row as ProviderRow);
            return viewOf(row as ProviderRow);
        });
        audit({ resourceId: view.id, after: view });
        return view;
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async update(id: number, given: ChangedProvider, { ifMatch, audit }: Write): Promise<Provider> {
        const sealed = await this.#seal(given);
        const { before, after } = await this.#ctx.db.write(async (em) => {
            const row = await find(em, id);
            const seen = viewOf(row);
            requireVersion(row, ifMatch, given.version);
            const { apiKey: _key, headers: _headers, prices, version: _version, ...fields } = given;
            const set = Object.entries(fields).filter(([, value]) => value !== undefined);
            Object.assign(row, Object.fromEntries(set), sealed, { version: row.version + 1 });
            if (prices !== undefined) {
                Object.assign(row, {
                    priceInput: prices?.input ?? null,
                    priceOutput: prices?.output ?? null
                });
            }
            // There is always a default: it moves, and is never taken away.
            row.isDefault = seen.isDefault || given.isDefault === true;
            await em.flush();
            await keepOneDefault(em, row);
            return { before: seen, after: viewOf(row) };
        });
        audit({ resourceId: id, before, after });
        return after;
    }

    /** Removes one. The newest of the others becomes the default where it was. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, { ifMatch, audit }: Write): Promise<void> {
        const before = await this.#ctx.db.write(async (em) => {
            const row = await find(em, id);
            requireVersion(row, ifMatch);
            const seen = viewOf(row);
            await em.nativeDelete(ProviderEntity, { id });
            const next = seen.isDefault
                ? await em.findOne(ProviderEntity, {}, { orderBy: { id: 'desc' } })
                : null;
            if (next !== null) {
                next.isDefault = true;
                next.version += 1;
            }
            return seen;
        });
        audit({ resourceId: id, before });
    }

    /** What answers a conversation: the provider that it names, else the default, else any that is enabled. @throws NO_PROVIDER 50350 */
    async choose(id: number | null): Promise<Endpoint> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, ProviderEntity, { enabled: true }, { orderBy: { isDefault: 'desc', id: 'desc' } })
        );
        const row = rows.find((each) => each.id === id) ?? rows[0];
        if (row === undefined) {
            throw fail.NO_PROVIDER();
        }
        return this.#open(row);
    }

    /** One provider with its secrets, also a disabled one. @throws NOT_FOUND 40400 */
    async open(id: number): Promise<Endpoint> {
        return this.#open(await this.#ctx.db.read((em) => find(em, id)));
    }

    async #open(row: ProviderRow): Promise<Endpoint> {
        const { secrets } = this.#ctx;
        return {
            id: row.id,
            name: row.name,
            type: row.type,
            baseUrl: row.baseUrl.replace(/\/+$/, ''),
            apiKey: row.apiKey === null ? null : await secrets.open(row.apiKey),
            headers:
                row.headers === null
                    ? {}
                    : (JSON.parse(await secrets.open(row.headers)) as Record<string, string>),
            model: row.model,
            embeddingModel: row.embeddingModel,
            maxOutputTokens: row.maxOutputTokens,
            prices: viewOf(row).prices
        };
    }

    async #seal({
        apiKey,
        headers
    }: Pick<ChangedProvider, 'apiKey' | 'headers'>): Promise<Partial<ProviderRow>> {
        const { secrets } = this.#ctx;
        const names = Object.keys(headers ?? {});
        return {
            ...(apiKey === undefined ? {} : { apiKey: apiKey === null ? null : await secrets.seal(apiKey) }),
            ...(headers === undefined
                ? {}
                : {
                      headers: names.length === 0 ? null : await secrets.seal(JSON.stringify(headers)),
                      headerNames: JSON.stringify(names)
                  })
        };
    }
}

async function find(em: EntityManager, id: number): Promise<ProviderRow> {
    const row = await findRow(em, ProviderEntity, { id });
    if (row === null) {
        throw errors.notFound('There is no such provider');
    }
    return row;
}

async function keepOneDefault(em: EntityManager, row: ProviderRow): Promise<void> {
    if (row.isDefault) {
        await em.execute('update providers set is_default = 0 where id <> ?', [row.id]);
    }
}

function viewOf(row: ProviderRow): Provider {
    return {
        id: row.id,
        version: row.version,
        name: row.name,
        type: row.type,
        baseUrl: row.baseUrl,
        apiKeySet: (row.apiKey ?? null) !== null,
        headerNames: JSON.parse(row.headerNames) as string[],
        model: row.model,
        embeddingModel: row.embeddingModel ?? null,
        maxOutputTokens: row.maxOutputTokens ?? null,
        prices:
            (row.priceInput ?? null) === null || (row.priceOutput ?? null) === null
                ? null
                : { input: row.priceInput as number, output: row.priceOutput as number },
        isDefault: row.isDefault,
        enabled: row.enabled
    };
}
