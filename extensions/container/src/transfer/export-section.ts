/** Stacks, exceptions and logins in exports of the panel. The core seals what a plugin gives. */
import { joi, type Value } from '@portico/sdk';

import { refusedRules } from '../policy/judge.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const item = 'containers';
const text = joi.string().allow('').required();
const documentSchema = joi.object({
    stacks: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required(),
                description: text,
                compose: text,
                env: text,
                autoUpdate: joi
                    .object({
                        mode: joi.valid('off', 'check', 'apply').required(),
                        everyHours: joi.number().integer().required()
                    })
                    .required()
            })
        )
        .required(),
    exceptions: joi
        .array()
        .items(
            joi.object({
                subject: joi.string().required(),
                allow: joi
                    .array()
                    .items(
                        joi.object({
                            rule: joi.valid(...refusedRules).required(),
                            service: joi.string().allow(null).required(),
                            detail: text
                        })
                    )
                    .required(),
                reason: joi.string().required(),
                by: joi.string().allow(null).required()
            })
        )
        .required(),
    registries: joi
        .array()
        .items(
            joi.object({
                server: joi.string().required(),
                username: joi.string().required(),
                password: joi.string().required()
            })
        )
        .required()
});
type ContainerDocument = Value<typeof documentSchema>;

/** Taps that take part in exports and imports. */
export function registerExportHooks(ctx: Ctx, services: Services): void {
    ctx.hooks.tap('export.collect', async () => [
        {
            name: item,
            data: await collect(ctx, services),
            leftOut: [
                'what is in volumes: it belongs into a backup',
                'containers, networks and images without a stack',
                'older revisions and hooks of stacks',
                'stacks that plugins made: those plugins have them'
            ]
        }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const { value, error } = documentSchema.required().validate(given.data);
        if (error !== undefined) {
            throw new TypeError(`The exported stacks cannot be read: ${error.message}`);
        }
        const problems = await restore(services, value as ContainerDocument, mode);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}

async function collect(ctx: Ctx, { store, exceptions, registries }: Services): Promise<ContainerDocument> {
    const rows = (await store.list()).filter(({ owner }) => owner === null);
    const stacks = await Promise.all(
        rows.map(async ({ name, description, revision, autoUpdate, autoHours }) => {
            const { compose, env } = await store.revision(name, revision);
            const mode = autoUpdate as 'off' | 'check' | 'apply';
            return { name, description, compose, env, autoUpdate: { mode, everyHours: autoHours } };
        })
    );
    const logins = await Promise.all(
        (await registries.list()).map(async ({ server, username, password }) => ({
            server,
            username,
            password: await ctx.secrets.open(password)
        }))
    );
    return {
        stacks,
        exceptions: (await exceptions.list()).map(({ subject, allow, reason, by }) => ({
            subject,
            allow: allow.map(({ rule, service = null, detail }) => ({
                rule,
                service: service ?? null,
                detail
            })),
            reason,
            by
        })),
        registries: logins
    };
}

/** A stack that comes back does not run before a person has it deployed: what it exposes here wants consent here. */
async function restore(
    { store, exceptions, registries }: Services,
    { stacks, ...given }: ContainerDocument,
    mode: 'merge' | 'replace'
): Promise<readonly string[]> {
    const problems: string[] = [];
    for (const { name, description, compose, env, autoUpdate } of stacks) {
        const row = await store.find(name);
        if (row === null) {
            const first = { compose, env, by: null, because: 'imported', images: {}, exposed: [] };
            await store.create({ name, description, owner: null, autoUpdate }, first);
            continue;
        }
        const now = await store.revision(name, row.revision);
        if (row.owner !== null || now.compose !== compose || now.env !== env) {
            problems.push(`${name} is there and differs: deploy it with the source of the document`);
        }
    }
    if (mode === 'replace') {
        const subjects = new Set(given.exceptions.map(({ subject }) => subject));
        for (const { subject } of await exceptions.list()) {
            if (!subjects.has(subject)) {
                await exceptions.remove(subject);
            }
        }
    }
    for (const { subject, allow, reason, by } of given.exceptions) {
        await exceptions.set({ subject, allow, reason, by });
    }
    const known = await registries.list();
    for (const login of given.registries) {
        const there = known.find(({ server }) => server === login.server);
        await (there === undefined ? registries.create(login) : registries.update(there.id, login));
    }
    const servers = new Set(given.registries.map(({ server }) => server));
    for (const { id, server } of mode === 'replace' ? known : []) {
        if (!servers.has(server)) {
            await registries.remove(id);
        }
    }
    return problems;
}
