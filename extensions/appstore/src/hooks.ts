/** The hooks of the core that the plugin taps. */
import { isFailure, joi } from '@portico/sdk';

import { collectApps, restoreApps } from './install/export-section.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { localSource, type NewSource } from './sources/sources.ts';

const item = 'sources';
const appsItem = 'apps';
const leftOut = ['data of apps: they belong into a backup', 'older revisions of apps, and what waits'];

const exported = joi.object({
    sources: joi
        .array()
        .items(
            joi.object({
                name: joi.string().max(40).required(),
                kind: joi.valid('portico', 'runtipi', 'casaos').required(),
                url: joi.string().max(500).required(),
                publicKey: joi.string().max(100),
                branch: joi.string().max(200),
                acceptUnsigned: joi.boolean().required(),
                enabled: joi.boolean().required()
            })
        )
        .max(1_000)
        .required()
});

/** Takes part in exports and imports of the panel: sources with their pinned keys, and installed apps. */
export function registerHooks(ctx: Ctx, services: Services): void {
    const { sources } = services;
    ctx.hooks.tap('export.collect', async () => {
        const rows = (await sources.list()).filter(({ name }) => name !== localSource);
        const data = {
            sources: rows.map(({ name, kind, url, publicKey, branch, acceptUnsigned, enabled }) => ({
                ...{ name, kind, url, acceptUnsigned, enabled },
                ...(publicKey === null ? {} : { publicKey }),
                ...(branch === null ? {} : { branch })
            }))
        };
        return [
            { name: item, data },
            { name: appsItem, data: await collectApps(services), leftOut }
        ];
    });
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const outcomes: { item: string; ok: boolean; message?: string }[] = [];
        const tell = (name: string, problems: readonly string[]): void => {
            outcomes.push(
                problems.length === 0
                    ? { item: name, ok: true }
                    : { item: name, ok: false, message: `Not restored: ${problems.join('; ')}` }
            );
        };
        const given = items.find(({ name }) => name === item);
        if (given !== undefined) {
            const { error, value } = exported.required().validate(given.data);
            tell(
                item,
                error === undefined
                    ? await restore(value.sources as NewSource[], mode, sources)
                    : [error.message]
            );
        }
        // After the sources: an app belongs to the key of its own.
        const apps = items.find(({ name }) => name === appsItem);
        if (apps !== undefined) {
            tell(appsItem, await restoreApps(apps.data, services));
        }
        return outcomes;
    });
}

/** Twice is as once: what is there as it was given stays. A pinned source is never replaced by one with another key. */
async function restore(
    given: readonly NewSource[],
    mode: 'merge' | 'replace',
    sources: Services['sources']
): Promise<readonly string[]> {
    const problems: string[] = [];
    const attempt = async (name: string, work: () => Promise<unknown>): Promise<void> => {
        try {
            await work();
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            problems.push(`${name}: ${error.message}`);
        }
    };
    const before = (await sources.list()).filter(({ name }) => name !== localSource);
    if (mode === 'replace') {
        const kept = new Set(given.map(({ name }) => name));
        for (const { name } of before.filter((each) => !kept.has(each.name))) {
            await attempt(name, () => sources.remove(name));
        }
    }
    for (const { name, ...rest } of given) {
        await attempt(name, () =>
            before.some((each) => each.name === name)
                ? sources.update(name, rest, null)
                : sources.create({ name, ...rest })
        );
    }
    return problems;
}
