/** Projects, connections and groups of variables in exports of the panel. The core seals what a plugin gives. */
import { isFailure, joi } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import type { Project } from '../deployments/store.ts';
import { GroupEntity, type GroupRow } from '../entities.ts';
import type { Variable } from '../env/variables.ts';
import type { ConnectionInput } from '../git/connections.ts';
import { checkProject } from '../projects/checks.ts';
import { readProject } from '../projects/shapes.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const item = 'projects';
const leftOut = [
    'releases and deployments: a project that comes back is deployed anew',
    'shared folders: they belong into a backup',
    'hooks, keys of hosts and previews: they are made anew'
];

const variable = joi.object({
    name: joi.string().required(),
    value: joi.string().allow('').required(),
    secret: joi.boolean().required(),
    build: joi.boolean().required(),
    run: joi.boolean().required(),
    preview: joi.boolean().required()
});
const vars = joi.array().items(variable).max(500).required();
const exported = joi.object({
    connections: joi
        .array()
        .items(
            joi
                .object({
                    name: joi.string().required(),
                    kind: joi.valid('key', 'token', 'github-app').required(),
                    host: joi.string().required()
                })
                .unknown(true)
        )
        .max(1_000)
        .required(),
    groups: joi
        .array()
        .items(joi.object({ name: joi.string().required(), vars }))
        .max(1_000)
        .required(),
    projects: joi
        .array()
        .items(
            joi.object({
                /** As POST `/projects` takes it, with names instead of numbers of this machine. */
                project: joi.object({}).unknown(true).required(),
                connection: joi.string().allow(null).required(),
                groups: joi.array().items(joi.string()).required(),
                vars,
                crons: joi.array().items(joi.object({}).unknown(true)).max(1_000).required()
            })
        )
        .max(10_000)
        .required()
});

interface ExportedProject {
    readonly project: Readonly<Record<string, unknown>>;
    readonly connection: string | null;
    readonly groups: readonly string[];
    readonly vars: readonly Variable[];
    readonly crons: readonly object[];
}
interface Exported {
    readonly connections: readonly ConnectionInput[];
    readonly groups: readonly { readonly name: string; readonly vars: readonly Variable[] }[];
    readonly projects: readonly ExportedProject[];
}

/** Taps that take part in exports and imports. */
export function registerExportHooks(ctx: Ctx, services: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        { name: item, data: { ...(await collect(ctx, services)) }, leftOut }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const { error, value } = exported.required().validate(given.data);
        if (error !== undefined) {
            return [{ item, ok: false, message: error.message }];
        }
        const problems = await new Restoration(ctx, services).run(value as Exported, mode);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}

async function groupRows(ctx: Ctx): Promise<readonly GroupRow[]> {
    return ctx.db.read((em) => findRows(em, GroupEntity, {}));
}

async function collect(ctx: Ctx, services: Services): Promise<Exported> {
    const { store, connections, variables, crons } = services;
    const known = await connections.all();
    const groups = await groupRows(ctx);
    const projects = (await store.projects()).map(async ({ id, name, config }) => ({
        project: { name, ...config, source: { ...config.source, connection: null }, envGroups: [] },
        connection: known.find((each) => each.id === config.source.connection)?.name ?? null,
        groups: config.envGroups.flatMap((group) => groups.find((each) => each.id === group)?.name ?? []),
        vars: await variables.read(`project:${id}`),
        crons: (await crons.list(id)).map(({ name: called, schedule, timezone, command, ...rest }) => ({
            ...{ name: called, schedule, timezone, command },
            ...{ timeoutSeconds: rest.timeoutSeconds, enabled: rest.enabled }
        }))
    }));
    return {
        connections: await Promise.all(known.map((each) => connections.exported(each))),
        groups: await Promise.all(
            groups.map(async ({ id, name }) => ({ name, vars: await variables.read(`group:${id}`) }))
        ),
        projects: await Promise.all(projects)
    };
}

/** Brings back what an export holds. Twice is as once: what is there gets what the document says. */
class Restoration {
    readonly #ctx: Ctx;
    readonly #services: Services;
    readonly #problems: string[] = [];

    constructor(ctx: Ctx, services: Services) {
        this.#ctx = ctx;
        this.#services = services;
    }

    async run(given: Exported, mode: 'merge' | 'replace'): Promise<readonly string[]> {
        if (mode === 'replace') {
            await this.#removeOthers(given);
        }
        for (const connection of given.connections) {
            await this.#attempt(connection.name, () => this.#connection(connection));
        }
        for (const { name, vars: values } of given.groups) {
            await this.#attempt(name, () => this.#group(name, values));
        }
        for (const each of given.projects) {
            await this.#attempt(String(each.project['name']), () => this.#project(each));
        }
        return this.#problems;
    }

    async #removeOthers({ projects }: Exported): Promise<void> {
        const { store, queue, changes, previews, crons } = this.#services;
        const names = new Set(projects.map(({ project }) => project['name']));
        for (const { id, name } of (await store.projects()).filter((each) => !names.has(each.name))) {
            await this.#attempt(name, async () => {
                await previews.removeAll(id);
                await crons.removeAll(id);
                await queue.drain(id);
                await queue.hold(id, () => changes.remove(id, true));
            });
        }
    }

    async #connection(input: ConnectionInput): Promise<void> {
        const { connections } = this.#services;
        const before = (await connections.all()).find(({ name }) => name === input.name);
        await (before === undefined ? connections.add(input) : connections.replace(before, input));
    }

    async #group(name: string, values: readonly Variable[]): Promise<void> {
        const before = (await groupRows(this.#ctx)).find((each) => each.name === name);
        const id =
            before?.id ??
            (await this.#ctx.db.write(async (em) => {
                const entity = em.create(GroupEntity, { version: 1, name });
                await em.flush();
                return entity.id;
            }));
        await this.#services.variables.replace(`group:${id}`, values);
    }

    async #project({ project, connection, groups, vars: values, crons }: ExportedProject): Promise<void> {
        const { connections, store, variables } = this.#services;
        const known = (await connections.all()).find(({ name }) => name === connection)?.id ?? null;
        const rows = await groupRows(this.#ctx);
        const input = readProject({
            ...project,
            source: { ...(project['source'] as object), connection: known },
            envGroups: groups.flatMap((name) => rows.find((each) => each.name === name)?.id ?? [])
        });
        const before = (await store.projects()).find(({ name }) => name === input.name);
        await checkProject(this.#services, input, before);
        const made =
            before === undefined
                ? await store.addProject(input)
                : await store.configure(before.id, input, before.version);
        await variables.replace(`project:${made.id}`, values);
        await this.#crons(made, crons);
    }

    async #crons(project: Project, given: readonly object[]): Promise<void> {
        const { crons } = this.#services;
        await crons.removeAll(project.id);
        for (const cron of given) {
            await crons.add(project.id, crons.read(cron));
        }
    }

    async #attempt(name: string, work: () => Promise<unknown>): Promise<void> {
        try {
            await work();
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            this.#problems.push(`${name}: ${error.message}`);
        }
    }
}
