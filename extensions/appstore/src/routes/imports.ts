/** Routes of what comes from elsewhere: single files of other panels, and templates of projects. */
import { createFailure, errors, joi, pages, reply } from '@portico/sdk';

import { inLanguage } from '../catalogue/texts.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { importApp } from '../sources/imports.ts';
import { allTemplates } from '../sources/templates.ts';
import { appFields, lang, sourceName } from './schemas.ts';

const mostImportBytes = 6 * 1_048_576;

/** Registers the routes of imports and templates. */
export function registerImportRoutes(ctx: Ctx, services: Services): void {
    registerImport(ctx, services);
    registerTemplates(ctx, services);
}

function registerImport(ctx: Ctx, { sources, catalogue, files }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/import',
        id: 'import',
        access: 'write',
        summary: 'Take an app of another panel over',
        description:
            'It becomes an unsigned app of the source `local`. What cannot be carried out is named (42256).',
        answers: 'made',
        maxBytes: mostImportBytes,
        ui: { title: 'Import' },
        returns: joi.object({
            ...appFields,
            warnings: joi.array().items(joi.string()).required().label('Warnings')
        }),
        audit: { action: 'import', resource: 'app' },
        validate: {
            payload: joi.object({
                kind: joi
                    .choice({ runtipi: 'App of Runtipi', casaos: 'App of CasaOS', compose: 'Compose file' })
                    .required()
                    .label('Kind'),
                name: joi.string().min(1).max(63).required().label('Name'),
                files: joi
                    .record(joi.string().allow('').max(1_048_576))
                    .required()
                    .label('Files')
                    .description(
                        'Texts by their names, such as docker-compose.yml, config.json, metadata/description.md'
                    )
            })
        },
        async handler({ payload, audit }) {
            const { id, warnings } = await importApp({ sources, files }, payload);
            audit({ resourceId: id, after: { kind: payload.kind } });
            const { key, row, about, source } = await catalogue.get('local', id);
            const { language } = ctx.settings;
            return reply.created(`/api/plugins/${ctx.name}/apps/${key}`, {
                ...{ key, source: source.name, id: row.id, version: row.version, signed: false },
                title: inLanguage(about.title, language) || row.id,
                tagline: inLanguage(about.tagline, language),
                categories: [...about.categories],
                architectures: [...about.architectures],
                website: about.website,
                icon: row.icon !== null,
                available: true,
                why: null,
                installed: [],
                warnings: [...warnings]
            });
        }
    });
}

const templatesSchema = joi.array().items(
    joi.object({
        key: joi
            .string()
            .required()
            .label('Key')
            .meta({ ui: { column: false } }),
        source: joi
            .string()
            .required()
            .label('Source')
            .meta({ ui: { column: 3 } }),
        id: joi
            .string()
            .required()
            .label('Template')
            .meta({ ui: { column: false } }),
        title: joi
            .string()
            .allow('')
            .required()
            .label('Title')
            .meta({ ui: { column: 1 } }),
        description: joi
            .string()
            .allow('')
            .required()
            .label('What it is')
            .meta({ ui: { column: 2 } })
    })
);

function registerTemplates(ctx: Ctx, { sources }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/templates',
        id: 'templates',
        access: 'read',
        summary: 'Templates of projects',
        ui: { title: 'Templates', order: 7, label: 'title', empty: 'No source has templates' },
        returns: templatesSchema,
        validate: { query: joi.object({ ...pages.query(), lang }) },
        async handler({ query }) {
            const all = (await allTemplates(sources)).map(({ source, template }) => ({
                key: `${source.name}/${template.id}`,
                source: source.name,
                id: template.id,
                title: inLanguage(template.title, query.lang, ctx.settings.language),
                description: inLanguage(template.description, query.lang, ctx.settings.language)
            }));
            const { rows, page } = pages.sorted(all, query, ({ key }) => key);
            return reply.list([...rows], page);
        }
    });
    registerUse(ctx, sources);
}

function registerUse(ctx: Ctx, sources: Services['sources']): void {
    ctx.route({
        method: 'POST',
        path: '/templates/{source}/{id}',
        id: 'useTemplate',
        access: 'write',
        summary: 'Make a project of a template',
        description: 'In the plugin `deploy`; 50307 without it.',
        answers: 'made',
        ui: { title: 'Use' },
        returns: joi.object({ project: joi.number().required().label('Project') }),
        audit: { action: 'create', resource: 'project' },
        validate: {
            params: joi.object({
                source: sourceName.required(),
                id: joi.string().max(63).required().label('Template')
            }),
            payload: joi.object({
                name: joi
                    .string()
                    .pattern(/^[a-z][a-z0-9-]{0,39}$/, 'small letters, digits and -')
                    .required()
                    .label('Name'),
                domain: joi
                    .string()
                    .domain({ tlds: false })
                    .max(253)
                    .label('Domain')
                    .meta({ ui: { widget: 'host' } })
            })
        },
        async handler({ params, payload: { name, domain }, actor, audit }) {
            const found = (await allTemplates(sources)).find(
                ({ source, template }) => source.name === params.source && template.id === params.id
            );
            if (found === undefined) {
                throw errors.notFound('There is no such template');
            }
            const { deploy } = ctx.plugins;
            if (deploy === undefined) {
                throw createFailure({
                    code: 50307,
                    reason: 'PARTNER_UNAVAILABLE',
                    message: 'The plugin deploy does not run',
                    data: { plugin: 'deploy' }
                });
            }
            audit({ resourceId: name, after: params });
            const host = domain === undefined ? {} : { host: { domain } };
            const project = { ...found.template.project, name, ...host };
            const { id } = await deploy.createProject({ project }, { actor });
            return reply.created(`/api/plugins/deploy/projects/${id}`, { project: id });
        }
    });
}
