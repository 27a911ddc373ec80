/** Routes of the catalogue. */
import { type Actor, errors, joi, pages, reply } from '@portico/sdk';

import { type Catalogue, isSigned, keyIdOf, type OfferedApp, unavailableBecause } from '../apps/catalogue.ts';
import type { AppDocument } from '../catalogue/app-document.ts';
import { fillForm } from '../catalogue/form.ts';
import { safeHtml } from '../catalogue/html.ts';
import { inLanguage } from '../catalogue/texts.ts';
import { planView } from '../install/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { appFields, appParams, lang, sourceName, wholeApp } from './schemas.ts';

/** Registers the routes of the catalogue. */
export function registerAppRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerOne(ctx, services);
    registerIcon(ctx, services);
    registerCategories(ctx, services.catalogue);
}

function registerList(ctx: Ctx, services: Services): void {
    const { catalogue } = services;
    ctx.route({
        method: 'GET',
        path: '/apps',
        id: 'apps',
        access: 'read',
        summary: 'Apps of all sources',
        ui: { title: 'Catalogue', order: 2, label: 'title', empty: 'No app: add a source, and sync it' },
        returns: joi.array().items(joi.object(appFields)),
        validate: {
            query: joi.object({
                ...pages.query(),
                q: joi
                    .string()
                    .allow('')
                    .max(200)
                    .label('Search')
                    .description('Words of the title or the text'),
                category: joi
                    .string()
                    .max(63)
                    .label('Category')
                    .meta({ ui: { ref: 'appstore.categories' } }),
                source: sourceName,
                lang
            })
        },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await catalogue.list(query), query, ({ key }) => key);
            const view = await viewer(ctx, services, query.lang);
            return reply.list(rows.map(view), page);
        }
    });
}

/** Makes views of apps; what all of them need is asked for once. */
async function viewer(ctx: Ctx, { planner, store, machine }: Services, language: string | undefined) {
    const [architecture, installed] = await Promise.all([planner.architecture(), store.list()]);
    const now = machine.now();
    return ({ key, row, about, source }: OfferedApp) => {
        const why = unavailableBecause({ key, row, about, source, words: '' }, { now, architecture });
        const inWords = (texts: typeof about.title): string =>
            inLanguage(texts, language, ctx.settings.language);
        return {
            ...{ key, source: source.name, id: row.id, version: row.version, signed: isSigned(source) },
            title: inWords(about.title) || row.id,
            tagline: inWords(about.tagline),
            categories: [...about.categories],
            architectures: [...about.architectures],
            website: about.website,
            icon: row.icon !== null,
            available: why === null,
            why,
            installed: installed
                .filter((each) => `${each.source}/${each.app}` === key)
                .map(({ name }) => name)
        };
    };
}

function registerOne(ctx: Ctx, services: Services): void {
    const { catalogue } = services;
    ctx.route({
        method: 'GET',
        path: '/apps/{source}/{app}',
        id: 'app',
        access: 'read',
        summary: 'One app, with its form and what it would come to',
        description:
            '`plan` is that of the default values; null where there is none, such as while no engine answers.',
        returns: wholeApp,
        validate: { params: appParams, query: joi.object({ lang }) },
        async handler({ params, query, actor }) {
            const offered = await catalogue.get(params.source, params.app);
            const view = (await viewer(ctx, services, query.lang))(offered);
            const document = await catalogue.document(offered);
            const text =
                document === null ? '' : inLanguage(document.description, query.lang, ctx.settings.language);
            return {
                ...view,
                description: { markdown: text, html: safeHtml(text) },
                form: document?.form ?? [],
                changelog: (document?.changelog ?? []).map((entry) => ({
                    version: entry.version,
                    html: safeHtml(inLanguage(entry.text, query.lang, ctx.settings.language))
                })),
                plan: document === null ? null : await preview(services, offered, document, actor)
            };
        }
    });
}

/** The plan of the default values, under the app's own id. */
async function preview(
    { planner, store }: Services,
    offered: OfferedApp,
    document: AppDocument,
    actor: Actor
) {
    const { values } = fillForm(document.form, {}, {});
    const reserved = await store.reservedPorts();
    const { source, row, key } = offered;
    try {
        const layout = {
            ...{ port: await planner.freePort(reserved), ports: {}, publish: [], limits: {} },
            ...{ domain: null, ssl: false, sslMode: null }
        };
        const plan = await planner.plan(
            {
                ...{ name: row.id.slice(0, 40), key, keyId: keyIdOf(source), document, values, layout },
                ...{ isSigned: isSigned(source), pinned: {}, exposed: null }
            },
            reserved,
            actor
        );
        return { ...planView(plan), consent: null };
    } catch {
        return null;
    }
}

function registerIcon(ctx: Ctx, { catalogue, files }: Services): void {
    ctx.download({
        path: '/apps/{source}/{app}/icon',
        id: 'icon',
        access: 'read',
        summary: 'The icon of an app',
        description: 'PNG, JPEG or WebP.',
        validate: { params: appParams },
        async handler({ params }) {
            const { row } = await catalogue.get(params.source, params.app);
            const file = row.icon === null ? null : await files.find(row.icon);
            if (file === null) {
                throw errors.notFound('The app has no icon');
            }
            const bytes = Buffer.from(file.body, 'base64');
            return {
                size: bytes.length,
                type: file.type,
                version: file.sha256,
                inline: true,
                open: ({ start, end }) => pieces(bytes.subarray(start, end ?? bytes.length))
            };
        }
    });
}

async function* pieces(bytes: Uint8Array): AsyncIterable<Uint8Array> {
    yield bytes;
}

function registerCategories(ctx: Ctx, catalogue: Catalogue): void {
    ctx.route({
        method: 'GET',
        path: '/categories',
        id: 'categories',
        access: 'read',
        summary: 'Categories that apps have',
        ui: { title: 'Categories', label: 'title', order: 6 },
        returns: joi.array().items(
            joi.object({
                id: joi.string().required().label('Category'),
                title: joi
                    .string()
                    .required()
                    .label('Title')
                    .meta({ ui: { column: 1 } }),
                count: joi
                    .number()
                    .required()
                    .label('Apps')
                    .meta({ ui: { column: 2 } })
            })
        ),
        validate: { query: joi.object({ lang }) },
        handler: ({ query }) => catalogue.categories(query.lang)
    });
}
