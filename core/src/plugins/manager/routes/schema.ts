/** The wire shape of plugins. */
import { manifestSchema } from '@portico/registry';
import { joi, type Value } from '@portico/sdk';
import type Joi from 'joi';

import type { Capabilities } from '../../runtime/generation/generation.ts';
import { released, service, versions } from './detail.ts';

// `joi` of the SDK types only what plugins may use; `extract` belongs to joi itself.
const manifest = manifestSchema as unknown as Joi.ObjectSchema;
/** What a registry is asked for is one line of plain text. */
const printable = /^[\x20-\x7e]+$/;
const range = () => joi.string().description('A semver range');
const time = () => joi.string().allow(null).required();

/** The plugin that a path names. */
export const pluginParams = joi.object({
    name: joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,63}$/)
        .required()
});

/** Query of the list. */
export const pluginQuery = joi.object({
    available: joi
        .string()
        .valid('true', 'false')
        .description('`true`: what the npm registry offers instead of what is there')
});

/** Query of a change. */
export const pluginUpdateQuery = joi.object({
    cascade: joi
        .string()
        .valid('true', 'false')
        .description('`true`: what requires the plugin is disabled before it')
});

/** Body of a change. Fields that can only be read may be sent back; they are ignored. */
export const pluginUpdate = joi.object({
    enabled: joi
        .boolean()
        .description('`true` also tries again what failed, and takes a plugin out of quarantine'),
    settings: joi
        .record(joi.any())
        .description(
            'What is not named stays, null takes a setting back to its default, and `{ "set": true }` keeps a secret'
        ),
    grants: joi.typed<Capabilities>(
        manifest.extract('capabilities').description('What it may of what it asks for. Needs a fresh session')
    ),
    adopt: joi
        .boolean()
        .valid(true)
        .description(
            'Takes over the record, the settings and the data of another package that had this name. Needs a fresh session'
        ),
    version: joi
        .string()
        .pattern(printable)
        .max(100)
        .description(
            'Another version than the present one: upgrades or rolls back, as a task. A version, a range or a tag of the registry. Needs a fresh session'
        ),
    force: joi
        .boolean()
        .description(
            'With `version`: requests that do not end within 8 s are cut. With `enabled: false`: requests that are under way are cut'
        ),
    restoreData: joi
        .boolean()
        .valid(true)
        .description(
            'With `version`: goes back to the data as that version left them, and gives up every change since. Needs a fresh session'
        ),
    dryRun: joi.boolean().valid(true).description('With `version`: only says what the change would do'),
    name: joi.any(),
    package: joi.any(),
    title: joi.any(),
    icon: joi.any(),
    contributes: joi.any(),
    state: joi.any(),
    origin: joi.any(),
    sdk: joi.any(),
    requires: joi.any(),
    optional: joi.any(),
    permissions: joi.any(),
    capabilities: joi.any(),
    health: joi.any(),
    bootMs: joi.any(),
    failure: joi.any(),
    quarantinedAt: joi.any(),
    deprecations: joi.any(),
    available: joi.any(),
    adoptable: joi.any(),
    settingsSchema: joi.any(),
    released: joi.any(),
    refused: joi.any(),
    services: joi.any(),
    versions: joi.any()
});

const flag = (described: string) => joi.string().valid('true', 'false').description(described);

/** Body of an install from the registry. */
export const pluginInstall = joi.object({
    package: joi.string().pattern(printable).max(214).required(),
    version: joi
        .string()
        .pattern(printable)
        .max(100)
        .description('A version, a range or a tag; default: the newest that works with this panel'),
    integrity: joi
        .string()
        .pattern(printable)
        .max(200)
        .description('What the archive must be, as `sha512-…`'),
    enabled: joi
        .boolean()
        .description(
            'Default true: a plugin that asks for no more than it is granted runs at once, another one stays disabled'
        ),
    grants: joi.typed<Capabilities>(
        manifest.extract('capabilities').description('What it may of what it asks for. Needs a fresh session')
    ),
    dryRun: joi
        .boolean()
        .valid(true)
        .description(
            'Only says what the install would do. The package is fetched and looked at, and nothing of it stays'
        )
});

/** Query of an install from an archive, which has no other body. */
export const pluginInstallQuery = joi.object({
    enabled: flag('For an archive: as `enabled` in the body'),
    integrity: joi
        .string()
        .pattern(printable)
        .max(200)
        .description('For an archive: what it must be, as `sha512-…`'),
    dryRun: flag('For an archive: as `dryRun` in the body')
});

/** Query of an uninstall. */
export const pluginRemoveQuery = joi.object({
    purge: flag('`true`: its data are deleted, too'),
    cascade: flag('`true`: what requires the plugin is disabled before it'),
    force: flag('`true`: requests that are under way are cut')
});

const health = joi
    .object({
        state: joi
            .string()
            .valid('ok', 'degraded', 'failed')
            .required()
            .description('The worst of its checks'),
        at: joi.string().required(),
        checks: joi
            .array()
            .items(
                joi.object({
                    name: joi.string().required(),
                    state: joi.string().valid('ok', 'degraded', 'failed').required(),
                    evidence: joi.string().allow('', null).required(),
                    remedy: joi.record(joi.any()).allow(null).required()
                })
            )
            .required()
    })
    .allow(null)
    .required()
    .description('As of its last look; null when it was never asked');

const common = {
    name: joi.string().required(),
    package: joi.string().allow(null).required().description('null: its package.json cannot be read'),
    version: joi.string().allow(null).required(),
    title: joi.string().required(),
    icon: joi.string().allow(null).required(),
    contributes: joi
        .object({
            group: joi
                .string()
                .allow(null)
                .required()
                .description('Heading that its entry in the navigation stands under'),
            pages: joi
                .array()
                .items(
                    joi.object({
                        id: joi.string().required(),
                        title: joi.string().required(),
                        icon: joi.string().allow(null).required(),
                        access: joi.string().required().description('The permission that it needs'),
                        place: joi.string().valid('nav', 'tab', 'dashboard', 'host').required(),
                        uses: joi
                            .array()
                            .items(joi.string())
                            .required()
                            .description('Operations of others that it calls'),
                        path: joi.string().required().description('What a frame without an origin shows')
                    })
                )
                .required(),
            locales: joi
                .record(joi.string())
                .required()
                .description('Where its texts in other languages are, by language tag')
        })
        .required()
        .description('What it brings for the pages'),
    state: joi
        .string()
        .valid('discovered', 'resolved', 'loaded', 'mounted', 'running', 'disabled', 'failed', 'quarantined')
        .required(),
    enabled: joi.boolean().required(),
    origin: joi
        .string()
        .valid('lock', 'data', 'folder', 'node_modules')
        .allow(null)
        .required()
        .description('Where it was found; null: its package is gone'),
    sdk: range().allow(null).required(),
    requires: joi.record(range()).required(),
    optional: joi.record(range()).required(),
    permissions: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required(),
                title: joi.string().required(),
                roles: joi.array().items(joi.string()).required()
            })
        )
        .required(),
    capabilities: joi
        .object({
            asked: joi.record(joi.any()).required(),
            granted: joi.record(joi.any()).required(),
            missing: joi
                .record(joi.any())
                .allow(null)
                .required()
                .description('What it asks for and was not granted')
        })
        .required(),
    health,
    bootMs: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .description('From the import to running, milliseconds'),
    failure: joi
        .object({
            stage: joi.string().valid('discovered', 'resolved', 'loaded', 'mounted', 'running').required(),
            code: joi.string().required(),
            message: joi.string().allow('').required(),
            at: joi.string().required()
        })
        .allow(null)
        .required(),
    quarantinedAt: time().description(
        'It failed three times within an hour, and waits until an admin enables it again'
    ),
    deprecations: joi
        .array()
        .items(
            joi.object({
                member: joi.string().required(),
                removedIn: joi.string().allow(null).required(),
                count: joi.number().integer().required().description('Uses since it started')
            })
        )
        .required()
        .description('What it uses and that will go: members of the SDK, and routes that it calls'),
    available: joi
        .string()
        .allow(null)
        .required()
        .description('A newer version that works with this panel, as of the last look into the registry'),
    adoptable: joi
        .string()
        .allow(null)
        .required()
        .description('Another package that had this name, and whose record it can take over by `adopt`')
};

/** A plugin in a list. */
export const pluginView = joi.object(common);

/** A plugin with its settings. */
export const pluginDetail = joi.object({
    ...common,
    settings: joi.record(joi.any()).required().description('Secrets are `{ "set": true }`'),
    settingsSchema: joi
        .record(joi.any())
        .allow(null)
        .required()
        .description('JSON Schema; null before its code was loaded, and where it has none'),
    refused: joi
        .array()
        .items(
            joi.object({
                capability: joi.string().required(),
                count: joi.number().integer().required(),
                at: joi.string().required()
            })
        )
        .required()
        .description('Capabilities that it used without having them, since it started'),
    services: joi
        .array()
        .items(service)
        .allow(null)
        .required()
        .description(
            'Programs that it keeps running, also while it is disabled; null when what keeps them does not answer'
        ),
    released,
    versions
});

/** A package that the npm registry offers. */
export const offerView = joi.object({
    package: joi.string().required(),
    name: joi.string().allow(null).required().description('null: its manifest cannot be read'),
    title: joi.string().required(),
    version: joi
        .string()
        .allow(null)
        .required()
        .description('The newest version that works with this panel; null: none does'),
    latest: joi.string().required(),
    conflict: joi.string().allow(null).required().description('Why `version` is not `latest`'),
    installed: joi.string().allow(null).required().description('The version that is there'),
    upgrade: joi.boolean().required()
});

/** Value of a change. */
export type PluginUpdate = Omit<Value<typeof pluginUpdate>, 'grants'> & {
    readonly grants?: Capabilities | undefined;
};
/** Value of a plugin in a list. */
export type PluginView = Value<typeof pluginView>;
/** Value of a plugin with its settings. */
export type PluginDetail = Value<typeof pluginDetail>;
