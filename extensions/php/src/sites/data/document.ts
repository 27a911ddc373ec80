/** Sites as exports and backups hold them: what a site is made of, without its files. */
import { joi } from '@portico/sdk';

import { changed, type DirectiveValues } from '../../config/directives.ts';
import { checkPool, type Pool, poolSchema } from '../../config/pool.ts';
import type { SslMode, Template } from '../../entities.ts';
import type { Services } from '../../services.ts';
import type { Site } from '../site.ts';
import type { SiteDatabase } from './database.ts';

/** A site in a document. */
export interface SiteDocument {
    readonly name: string;
    readonly domain: string;
    readonly aliases: readonly string[];
    readonly release: string;
    readonly root: string;
    readonly template: Template;
    readonly ssl: boolean;
    readonly sslMode: SslMode;
    readonly extraPaths: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly values: DirectiveValues;
    readonly pool: Pool;
    /** The database that was made beside it; how to reach it is in `env`. */
    readonly database: SiteDatabase | null;
}

const documentSchema = joi
    .object({
        name: joi
            .string()
            .pattern(/^[a-z][a-z0-9-]{0,24}$/)
            .required(),
        domain: joi.string().max(255).required(),
        aliases: joi.array().items(joi.string().max(255)).max(50).required(),
        release: joi
            .string()
            .pattern(/^\d{1,2}\.\d{1,2}$/)
            .required(),
        root: joi.string().max(200).required(),
        template: joi.valid('empty', 'php', 'wordpress', 'laravel').required(),
        ssl: joi.boolean().required(),
        sslMode: joi.valid('auto', 'internal').required(),
        extraPaths: joi.array().items(joi.string().max(500)).max(20).required(),
        env: joi.record(joi.string()).required(),
        values: joi.record(joi.string()).required(),
        pool: poolSchema.required(),
        database: joi
            .object({
                serverId: joi.number().integer().required(),
                name: joi.string().max(63).required(),
                account: joi.string().max(400).allow(null).required()
            })
            .allow(null)
            .default(null)
    })
    .unknown(true);

/** What a site is made of. */
export async function documentOf(
    { configurations }: Pick<Services, 'configurations'>,
    site: Site
): Promise<SiteDocument> {
    const {
        name,
        domain,
        aliases,
        release,
        root,
        template,
        ssl,
        sslMode,
        extraPaths,
        values,
        pool,
        database
    } = site;
    const env = await configurations.environment(site);
    return {
        name,
        domain,
        aliases,
        release,
        root,
        template,
        ssl,
        sslMode,
        extraPaths,
        env,
        values,
        pool,
        database
    };
}

/** Reads a site of a document, which another version may have written. @throws TypeError when it is none */
export function readDocument(data: unknown): SiteDocument {
    const { error, value } = documentSchema.required().validate(data);
    if (error !== undefined) {
        throw new TypeError(`The site cannot be read: ${error.message}`);
    }
    return value as SiteDocument;
}

/** Makes a site of a document, or brings the site of that name to it. */
export async function restoreSite(
    services: Services,
    document: SiteDocument,
    signal: AbortSignal
): Promise<Site> {
    const { changes, creation, locks, store, switches } = services;
    const { name, release, template, values, pool, database, ...input } = document;
    checkPool(pool);
    const wanted = changed({}, values);
    const existing = (await store.all()).find((each) => each.name === name);
    const site = existing ?? (await creation.begin({ ...input, name, release, template }));
    using _lock = locks.take(site.id, 'a restore');
    let now =
        existing === undefined
            ? (await creation.finish(site, { signal, log: () => undefined, actor: null })).site
            : await changes.update(site, input);
    if (existing !== undefined && now.release !== release) {
        now = await switches.run(
            now,
            { release, percent: 0, observeSeconds: 0, maxErrors: 0, path: '/' },
            signal,
            () => undefined
        );
    }
    now = await store.change(now.id, { database: database === null ? null : JSON.stringify(database) });
    now = await changes.setPool(now, pool);
    const removed = Object.fromEntries(Object.keys(now.values).map((directive) => [directive, null]));
    return await changes.setDirectives(now, { ...removed, ...wanted });
}
