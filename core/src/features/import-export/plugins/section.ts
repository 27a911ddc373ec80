/**
 * The plugins of a document, each with its version, its settings and its own data. A plugin that is not
 * installed here is listed, and its part is kept until it is installed. Grants are never exported: consent belongs to the admin who gave it.
 */
import { joi, type Value } from '@portico/sdk';

import type { Incoming, Reading, Section } from '../../../engine/section.ts';
import { joiOf } from '../../../platform/validation.ts';
import type { MovedPlugin, PluginCatalogue } from '../ports.ts';
import { readContribution } from './contributions.ts';
import { followPlugins } from './follow.ts';
import type { KeptPlugins } from './kept.ts';
import { planPlugins, type ReadPlugin } from './plan.ts';
import type { Restorer } from './restorer.ts';

/** What {@link createPluginSection} works with. */
export interface PluginSectionOptions {
    readonly plugins: PluginCatalogue;
    readonly kept: KeptPlugins;
    readonly restorer: Restorer;
}

const shape = joi.object({
    name: joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,63}$/, 'plugin name')
        .required(),
    package: joi.string().max(214).required(),
    version: joi.string().max(64).required(),
    enabled: joi.boolean().required(),
    settings: joi.record(joi.any()).required()
});
type Written = Value<typeof shape>;

/** The name of a plugin's own data among the secrets of the section. */
export const dataPath = (name: string): string => `${name}/data`;

/** All plugins that belong to the panel, installed or not, by name. */
export function pluginsOfPanel({
    plugins,
    kept
}: Pick<PluginSectionOptions, 'plugins' | 'kept'>): readonly MovedPlugin[] {
    const known = plugins.list().filter(({ isDecided }) => isDecided);
    return [...known, ...kept.all().filter(({ name }) => !known.some((plugin) => plugin.name === name))].sort(
        (one, two) => (one.name < two.name ? -1 : 1)
    );
}

/** Makes the section `plugins` of an export document. */
export function createPluginSection({ plugins, kept, restorer }: PluginSectionOptions): Section {
    return {
        name: 'plugins',
        permissions: { read: 'plugins:read', write: 'plugins:manage', secrets: 'plugins:manage' },
        ready: () => plugins.ready(),
        collect: (sink) =>
            pluginsOfPanel({ plugins, kept }).map(
                ({ name, package: packageName, version, enabled, settings, secrets }) => {
                    if (Object.keys(secrets).length > 0) {
                        sink?.put(name, JSON.stringify(secrets));
                    }
                    return { name, package: packageName, version, enabled, settings };
                }
            ),
        async read(part, reading) {
            const { error } = joiOf(joi.array().items(shape).unique('name'))
                .required()
                .validate(part, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
            error?.details.forEach(({ path, message }) =>
                reading.faults.add([reading.path, ...path].join('.'), message)
            );
            await plugins.ready();
            const read =
                error === undefined
                    ? await Promise.all(
                          (part as readonly Written[]).map((written, at) =>
                              readOne(written, at, reading, plugins)
                          )
                      )
                    : [];
            return createIncoming(read, { plugins, kept, restorer }, reading);
        }
    };
}

async function readOne(
    written: Written,
    at: number,
    reading: Reading,
    plugins: PluginCatalogue
): Promise<ReadPlugin> {
    const { secrets, faults, path } = reading;
    const own = secrets?.json(written.name) ?? {};
    if (!isTexts(own)) {
        faults.add(`${path}.${at}`, 'its secret settings are damaged');
        return { plugin: { ...written, secrets: {} }, faults: [], data: null, revision: null };
    }
    const given = secrets?.json(dataPath(written.name));
    const data = given === undefined ? null : readContribution(given);
    if (given !== undefined && data?.package !== written.package) {
        faults.add(`${path}.${at}`, 'its own data is damaged');
    }
    const revision = plugins.find(written.name, written.package)?.revision ?? null;
    return { revision, ...(await plugins.prove({ ...written, secrets: own }, secrets === null)), data };
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
    return (
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        Object.values(value).every((each) => typeof each === 'string')
    );
}

function createIncoming(
    read: readonly ReadPlugin[],
    options: PluginSectionOptions,
    { call, mode, installPlugins }: Reading
): Incoming {
    const { plugins, kept, restorer } = options;
    const { id, username, tokenId, plugin: via } = call.actor;
    return {
        plan() {
            const { entries, changes, outcomes } = planPlugins(read, {
                plugins,
                kept: kept.all(),
                mode,
                installs: installPlugins
            });
            return {
                entries,
                outcomes,
                async commit(tx) {
                    for (const change of changes) {
                        if (change.action === 'store') {
                            await plugins.store(tx, change.plugin, change.revision);
                        } else if (change.action === 'keep') {
                            await kept.keep(tx, change.plugin);
                        } else {
                            await kept.forgetIn(tx, change.plugin.name);
                            await restorer.forget(tx, change.plugin.name);
                        }
                    }
                    for (const { plugin, data } of read) {
                        if (data !== null) {
                            await restorer.keep(tx, plugin.name, data, mode, {
                                actor: { id, username, tokenId, plugin: via },
                                requestId: call.id
                            });
                        }
                    }
                },
                follow: (run) =>
                    followPlugins({
                        read,
                        outcomes,
                        stored: changes.flatMap(({ action, plugin }) =>
                            action === 'store' ? [plugin.name] : []
                        ),
                        plugins,
                        restorer,
                        call,
                        run
                    })
            };
        }
    };
}
