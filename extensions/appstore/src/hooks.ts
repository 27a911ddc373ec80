/** The hooks of the core that the plugin taps. */
import { isFailure, joi } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { localSource, type NewSource } from './sources/sources.ts';

const item = 'sources';
const leftOut = ['installed apps and their data: they are stacks and volumes of this machine'];

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

/** Takes part in exports and imports of the panel: sources with their pinned keys. */
export function registerHooks(ctx: Ctx, { sources }: Services): void {
    ctx.hooks.tap('export.collect', async () => {
        const rows = (await sources.list()).filter(({ name }) => name !== localSource);
        const data = {
            sources: rows.map(({ name, kind, url, publicKey, branch, acceptUnsigned, enabled }) => ({
                ...{ name, kind, url, acceptUnsigned, enabled },
                ...(publicKey === null ? {} : { publicKey }),
                ...(branch === null ? {} : { branch })
            }))
        };
        return [{ name: item, data, leftOut }];
    });
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const { error, value } = exported.required().validate(given.data);
        if (error !== undefined) {
            return [{ item, ok: false, message: error.message }];
        }
        const problems = await restore(value.sources as NewSource[], mode, sources);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
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
