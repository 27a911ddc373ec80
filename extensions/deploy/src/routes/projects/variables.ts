/** Routes of variables, of projects and of groups that projects share. */
import { errors, joi, pages, reply } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { GroupEntity, type GroupRow, VariablesEntity } from '../../entities.ts';
import { variableViews } from '../../env/variables.ts';
import { uniqueName } from '../../errors.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { nothing, projectParams, versionOf } from '../params.ts';

const flag = (label: string, value: boolean) => joi.boolean().default(value).label(label);
const common = {
    name: joi
        .string()
        .pattern(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/)
        .required()
        .label('Name'),
    secret: flag('Secret', false).description('Its value is never shown'),
    build: flag('For builds', true),
    run: flag('For programs', true),
    preview: flag('For previews', true)
};
const text = () =>
    joi
        .string()
        .allow('', null)
        .max(65_536)
        .pattern(/^[^\0]*$/)
        .label('Value');
const given = {
    vars: joi
        .array()
        .items(
            joi.object({
                ...common,
                value: text().description('Left out: that of a secret stays'),
                set: joi.readOnly(joi.valid(true)).label('Has a value')
            })
        )
        .max(500)
        .unique('name')
        .required()
        .label('Variables')
};
const shown = {
    vars: joi
        .array()
        .items(
            joi.object({
                ...common,
                value: text().required(),
                set: joi.valid(true).required().label('Has a value')
            })
        )
        .required()
        .label('Variables')
};
const groupName = () =>
    joi
        .string()
        .pattern(/^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$/)
        .label('Name')
        .meta({ ui: { column: 1 } });
const groupSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    name: groupName().required(),
    ...shown
});
const groupParams = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Group')
        .meta({ ui: { ref: 'deploy.envGroups' } })
});

/** Declares the routes of variables of projects and of groups. */
export function registerVariableRoutes(ctx: Ctx, services: Services): void {
    registerProject(ctx, services);
    registerGroupReading(ctx, services);
    registerGroupWriting(ctx, services);
    registerGroupRemoval(ctx, services);
}

function registerProject(ctx: Ctx, { store, variables }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/projects/{id}/env',
        id: 'env',
        access: 'write',
        summary: 'Variables of a project, without the values of secrets',
        ui: { title: 'Variables', role: 'card' },
        validate: { params: projectParams },
        returns: joi.object(shown),
        async handler({ params }) {
            await store.project(params.id);
            return { vars: variableViews(await variables.read(`project:${params.id}`)) };
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/projects/{id}/env',
        id: 'setEnv',
        access: 'write',
        summary: 'Replace the variables of a project',
        description: 'The list is replaced whole. They count for the next deployment.',
        answers: 'done',
        ui: { title: 'Variables' },
        audit: { action: 'update', resource: 'variables' },
        validate: { params: projectParams, payload: joi.object(given) },
        returns: joi.object(shown),
        async handler({ params, payload, audit }) {
            await store.project(params.id);
            audit({ resourceId: params.id, after: { names: payload.vars.map(({ name }) => name) } });
            return { vars: variableViews(await variables.replace(`project:${params.id}`, payload.vars)) };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/env/clone',
        id: 'cloneEnv',
        access: 'write',
        summary: 'Copy the variables of another project',
        description: 'Secrets too; none of them is shown.',
        answers: 'done',
        ui: { title: 'Copy variables', role: 'action' },
        audit: { action: 'clone', resource: 'variables' },
        validate: {
            params: projectParams,
            payload: joi.object({
                from: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('From')
                    .meta({ ui: { ref: 'deploy.projects' } })
            })
        },
        returns: joi.object(shown),
        async handler({ params, payload, audit }) {
            await store.project(params.id);
            await store.project(payload.from);
            audit({ resourceId: params.id, after: { from: payload.from } });
            return {
                vars: variableViews(await variables.clone(`project:${payload.from}`, `project:${params.id}`))
            };
        }
    });
}

async function viewOf({ variables }: Services, { id, version, name }: GroupRow) {
    return { id, version, name, vars: variableViews(await variables.read(`group:${id}`)) };
}

/** @throws NOT_FOUND 40400 */
async function groupOf(ctx: Ctx, id: number): Promise<GroupRow> {
    const row = await ctx.db.read((em) => findRow(em, GroupEntity, id));
    if (row === null) {
        throw errors.notFound(`There is no group ${id}`);
    }
    return row;
}

function registerGroupReading(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/env-groups',
        id: 'envGroups',
        access: 'write',
        summary: 'Groups of variables that projects share',
        ui: { title: 'Groups of variables', label: 'name', order: 4, empty: 'No group yet' },
        validate: { query: joi.object(pages.query()) },
        returns: joi.array().items(groupSchema),
        async handler({ query }) {
            const all = await ctx.db.read((em) => findRows(em, GroupEntity, {}));
            const { rows, page } = pages.sorted(all, query, ({ name }) => name);
            return reply.list(await Promise.all(rows.map((row) => viewOf(services, row))), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/env-groups/{id}',
        id: 'envGroup',
        access: 'write',
        summary: 'One group of variables',
        validate: { params: groupParams },
        returns: groupSchema,
        handler: async ({ params }) => viewOf(services, await groupOf(ctx, params.id))
    });
}

function registerGroupWriting(ctx: Ctx, services: Services): void {
    const { variables } = services;
    ctx.route({
        method: 'POST',
        path: '/env-groups',
        id: 'createEnvGroup',
        access: 'write',
        summary: 'Make a group of variables',
        answers: 'made',
        ui: { title: 'New group', role: 'action' },
        audit: { action: 'create', resource: 'variables' },
        validate: { payload: joi.object({ name: groupName().required(), ...given }) },
        returns: groupSchema,
        async handler({ payload, audit }) {
            const sealed = await variables.sealed(null, payload.vars);
            const row = await uniqueName(() =>
                ctx.db.write(async (em) => {
                    const entity = em.create(GroupEntity, { version: 1, name: payload.name });
                    await em.flush();
                    await em.upsert(VariablesEntity, { owner: `group:${entity.id}`, sealed });
                    return { ...entity } as GroupRow;
                })
            );
            audit({ resourceId: row.id, after: { name: row.name } });
            return reply.created(
                `/api/plugins/${ctx.name}/env-groups/${row.id}`,
                await viewOf(services, row)
            );
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/env-groups/{id}',
        id: 'updateEnvGroup',
        access: 'write',
        summary: 'Change a group of variables',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'variables' },
        validate: {
            params: groupParams,
            payload: joi.object({ name: groupName(), vars: given.vars.optional() })
        },
        returns: groupSchema,
        async handler({ params, payload, audit, ...request }) {
            const before = await groupOf(ctx, params.id);
            const version = versionOf(before, request) + 1;
            audit({ resourceId: before.id });
            const name = payload.name ?? before.name;
            const owner = `group:${before.id}` as const;
            const sealed = payload.vars === undefined ? null : await variables.sealed(owner, payload.vars);
            await uniqueName(() =>
                ctx.db.write(async (em) => {
                    await em.nativeUpdate(GroupEntity, { id: before.id }, { name, version });
                    if (sealed !== null) {
                        await em.upsert(VariablesEntity, { owner, sealed });
                    }
                })
            );
            return viewOf(services, { ...before, name, version });
        }
    });
}

function registerGroupRemoval(ctx: Ctx, { store }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/env-groups/{id}',
        id: 'deleteEnvGroup',
        access: 'write',
        summary: 'Remove a group of variables',
        answers: 'done',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this group?' },
        audit: { action: 'delete', resource: 'variables' },
        validate: { params: groupParams },
        returns: nothing,
        async handler({ params, audit }) {
            const group = await groupOf(ctx, params.id);
            const users = (await store.projects()).filter(({ config }) =>
                config.envGroups.includes(group.id)
            );
            if (users.length > 0) {
                const names = users.map(({ name }) => name);
                throw errors.inUse(names, `Projects have this group: ${names.join(', ')}`);
            }
            audit({ resourceId: group.id, before: { name: group.name } });
            await ctx.db.write(async (em) => {
                await em.nativeDelete(VariablesEntity, { owner: `group:${group.id}` });
                await em.nativeDelete(GroupEntity, { id: group.id });
            });
            return null;
        }
    });
}
