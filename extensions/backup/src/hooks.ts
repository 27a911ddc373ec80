/** The hooks of the core that the plugin taps: repositories and plans are part of exports and imports of the panel. */
import { joi } from '@portico/sdk';

import { PlanEntity, RepositoryEntity } from './entities.ts';
import { newPlan, type PlanInput } from './plans/input.ts';
import { connectionIn, uniquePlace } from './repositories/stored.ts';
import { hooksSchema, type PlanCommands } from './runs/commands.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import type { Connection, Secrets } from './targets/connection.ts';

const item = 'plans';

interface ExportedRepository {
    readonly name: string;
    readonly connection: Connection;
    readonly secrets: Secrets;
    readonly appendOnly: boolean;
    readonly uploadKiBps: number | null;
    readonly downloadKiBps: number | null;
}

interface ExportedPlan {
    readonly plan: PlanInput;
    /** Places of its repositories: the first, and those that it copies to. */
    readonly places: readonly string[];
    readonly commands: PlanCommands | null;
}

interface Document {
    readonly repositories: readonly ExportedRepository[];
    readonly plans: readonly ExportedPlan[];
}

const documentSchema = joi.object({
    repositories: joi
        .array()
        .items(
            joi.object({
                name: joi.string().max(100).required(),
                connection: joi.any().required(),
                secrets: joi.any().required(),
                appendOnly: joi.boolean().required(),
                uploadKiBps: joi.typed<number | null>(joi.number().integer().allow(null).required()),
                downloadKiBps: joi.typed<number | null>(joi.number().integer().allow(null).required())
            })
        )
        .max(50)
        .required(),
    plans: joi
        .array()
        .items(
            joi.object({
                plan: newPlan,
                places: joi.array().items(joi.string()).min(1).required(),
                commands: hooksSchema.allow(null).required()
            })
        )
        .max(200)
        .required()
});

/** Takes part in exports and imports. The core seals what a plugin gives, so passwords may be in it. */
export function registerHooks(ctx: Ctx, services: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        {
            name: item,
            data: await exported(ctx, services),
            leftOut: ['the history of runs and drills', 'what is in repositories']
        }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await restore(ctx, services, given.data, mode);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}

async function exported(ctx: Ctx, { repositories, plans }: Services): Promise<Document> {
    const rows = await repositories.list();
    const placeOf = (id: number): string => rows.find((row) => row.id === id)?.path ?? '';
    return {
        repositories: await Promise.all(
            rows.map(async (row) => ({
                name: row.name,
                connection: connectionIn(row),
                secrets: await repositories.secrets(row),
                appendOnly: Boolean(row.appendOnly),
                uploadKiBps: row.uploadKiBps,
                downloadKiBps: row.downloadKiBps
            }))
        ),
        plans: await Promise.all(
            (await plans.list()).map(async (plan) => {
                const { name, sources, excludes, tags, schedule, keep, check, drill } = plan;
                const { repositoryId, copyTo, retries, backoffSeconds, notifyOn, enabled, hooks } = plan;
                return {
                    plan: {
                        ...{ name, repositoryId, sources, excludes, tags, schedule, keep, check, drill },
                        ...{ retries, backoffSeconds, notifyOn, enabled }
                    },
                    places: [repositoryId, ...copyTo].map(placeOf),
                    commands:
                        hooks === null ? null : (JSON.parse(await ctx.secrets.open(hooks)) as PlanCommands)
                };
            })
        )
    };
}

/** Twice is as once: repositories are known by their place, plans by their name. Gives what went wrong. */
async function restore(
    ctx: Ctx,
    services: Services,
    data: unknown,
    mode: 'merge' | 'replace'
): Promise<readonly string[]> {
    const { value, error } = documentSchema.validate(data);
    if (error !== undefined) {
        return [error.message];
    }
    const { repositories, plans } = services;
    const document = value as Document;
    const problems: string[] = [];
    if (mode === 'replace') {
        await removeOthers(ctx, services, document);
    }
    for (const each of document.repositories) {
        await repositories
            .adopt(each)
            .catch((failure: unknown) => problems.push(`${each.name}: ${(failure as Error).message}`));
    }
    const rows = await repositories.list();
    for (const { plan, places, commands } of document.plans) {
        try {
            const ids = places.map((place) => rows.find((row) => row.path === place)?.id ?? 0);
            const [repositoryId = 0, ...copyTo] = ids;
            const known = (await plans.list()).find(({ name }) => name === plan.name);
            const input = { ...plan, repositoryId, copyTo };
            const stored =
                known === undefined ? await plans.create(input) : await plans.update(known.id, input, null);
            await plans.setHooks(stored.id, commands);
        } catch (failure) {
            problems.push(`${plan.name}: ${(failure as Error).message}`);
        }
    }
    return problems;
}

/** Takes away what a document does not have. What is in repositories stays. */
async function removeOthers(ctx: Ctx, { plans, repositories }: Services, document: Document): Promise<void> {
    const names = new Set(document.plans.map(({ plan }) => plan.name));
    for (const { id, name } of await plans.list()) {
        await (names.has(name) ? null : plans.remove(id));
    }
    const places = new Set(document.repositories.map((each) => uniquePlace(each.connection, each.secrets)));
    for (const { id, path } of await repositories.list()) {
        const inUse = await ctx.db.read((em) => em.count(PlanEntity, { repositoryId: id }));
        if (!places.has(path) && inUse === 0) {
            await ctx.db.write((em) => em.nativeDelete(RepositoryEntity, { id }));
        }
    }
}
