/** Routes of the releases of PHP, and of what sites can be set up with. */
import { joi } from '@portico/sdk';

import { directives } from '../config/directives.ts';
import { poolSchema } from '../config/pool.ts';
import { presets } from '../config/presets.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { supportOf } from '../versions/end-of-life.ts';

const versionSchema = joi.object({
    release: joi
        .string()
        .required()
        .label('Release')
        .meta({ ui: { column: 1 } }),
    version: joi
        .string()
        .required()
        .label('Version')
        .meta({ ui: { column: 2 } }),
    fpm: joi
        .string()
        .required()
        .label('PHP-FPM')
        .meta({ ui: { column: false } }),
    cli: joi
        .string()
        .label('Command line')
        .meta({ ui: { column: false } }),
    status: joi
        .choice({ supported: 'Supported', security: 'Security fixes only', ended: 'No more fixes' })
        .required()
        .label('Support')
        .meta({ ui: { column: 3, tones: { supported: 'good', security: 'warning', ended: 'bad' } } }),
    endOfLife: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Fixes until')
        .description('Null where it is not known')
        .meta({ ui: { column: 4 } }),
    sites: joi
        .number()
        .integer()
        .required()
        .label('Sites')
        .meta({ ui: { column: 5 } })
});

/** Registers the routes of releases. */
export function registerVersionRoutes(ctx: Ctx, services: Services): void {
    registerVersions(ctx, services);
    registerPresets(ctx);
    registerDirectives(ctx);
}

function registerVersions(ctx: Ctx, { releases, store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/versions',
        id: 'versions',
        access: 'read',
        summary: 'List the releases of PHP on this machine',
        ui: { title: 'PHP releases', order: 2, label: 'release', empty: 'No PHP-FPM is installed' },
        returns: joi.array().items(versionSchema),
        async handler() {
            const [all, sites] = [await releases.list(), await store.all()];
            return all.map(({ cli, ...release }) => {
                const { status, endOfLife } = supportOf(release.release, new Date());
                return {
                    ...release,
                    ...(cli === null ? {} : { cli }),
                    status,
                    endOfLife,
                    sites: sites.filter((site) => site.release === release.release).length
                };
            });
        }
    });
}

function registerPresets(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/presets',
        id: 'presets',
        access: 'read',
        summary: 'Workers and directives that suit a use',
        ui: { title: 'Presets', order: 3, label: 'title' },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Name')
                    .meta({ ui: { column: false } }),
                title: joi
                    .string()
                    .required()
                    .label('Use')
                    .meta({ ui: { column: 1 } }),
                description: joi
                    .string()
                    .required()
                    .label('Description')
                    .meta({ ui: { column: 2 } }),
                pool: poolSchema
                    .required()
                    .label('Workers')
                    .meta({ ui: { column: false } }),
                values: joi
                    .record(joi.string())
                    .required()
                    .label('Directives')
                    .meta({ ui: { column: false } })
            })
        ),
        handler: () => presets.map((preset) => ({ ...preset, values: { ...preset.values } }))
    });
}

function registerDirectives(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/directives',
        id: 'directives',
        access: 'read',
        summary: 'The directives that a site may set',
        ui: { title: 'Directives', order: 4, label: 'name' },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Directive')
                    .meta({ ui: { column: 1 } }),
                type: joi
                    .choice({
                        boolean: 'On or Off',
                        integer: 'Whole number',
                        bytes: 'Size',
                        choice: 'One of several',
                        text: 'Text'
                    })
                    .required()
                    .label('Type')
                    .meta({ ui: { column: 2 } }),
                min: joi
                    .number()
                    .label('Least')
                    .meta({ ui: { column: 4 } }),
                max: joi
                    .number()
                    .label('Most')
                    .meta({ ui: { column: 5 } }),
                values: joi
                    .array()
                    .items(joi.string())
                    .label('Choices')
                    .meta({ ui: { column: false } }),
                default: joi
                    .string()
                    .required()
                    .label('Default')
                    .meta({ ui: { column: 3 } })
            })
        ),
        handler: () =>
            directives.map(({ form: _form, values, ...directive }) => ({
                ...directive,
                ...(values === undefined ? {} : { values: [...values] })
            }))
    });
}
