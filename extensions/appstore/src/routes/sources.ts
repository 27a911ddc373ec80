/** Routes of sources. */
import { joi, pages, reply, taskSchema } from '@portico/sdk';

import { isSigned, keyIdOf, sourceState } from '../apps/catalogue.ts';
import type { SourceRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { sourceName, sourceSchema } from './schemas.ts';

const params = joi.object({ name: sourceName.required() });
const kind = joi
    .choice({ portico: 'Signed catalogue', runtipi: 'Repository of Runtipi', casaos: 'Repository of CasaOS' })
    .label('Kind');
const url = joi
    .string()
    .max(500)
    .uri({ scheme: ['https', 'http'] })
    .label('Address')
    .example('https://apps.example.org');
const publicKey = joi
    .string()
    .max(100)
    .label('Public key')
    .description('The line that minisign made for the publisher; it is pinned');
const branch = joi
    .string()
    .max(200)
    .pattern(/^(?!-)(?!.*(\.\.|\/\/|@\{|\.lock(\/|$)))[A-Za-z0-9._/-]+(?<![/.])$/, 'a branch')
    .label('Branch')
    .description('Of a repository; default: its own')
    .meta({ ui: { advanced: true } });
const acceptUnsigned = joi
    .boolean()
    .label('Accept unsigned apps')
    .description('Of a kind without signatures: nothing proves who wrote its apps');
const enabled = joi.boolean().label('Enabled');

/** Registers the routes of sources. */
export function registerSourceRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerWrites(ctx, services);
    ctx.route({
        method: 'POST',
        path: '/sources/{name}/sync',
        id: 'syncSource',
        access: 'run',
        summary: 'Ask a source for what it offers now',
        answers: 'task',
        ui: { title: 'Sync', role: 'action' },
        returns: taskSchema,
        audit: { action: 'sync', resource: 'source' },
        validate: { params },
        async handler({ params: { name }, actor, audit }) {
            audit({ resourceId: name });
            return reply.accepted(await services.syncs.begin(name, actor));
        }
    });
}

function registerReads(ctx: Ctx, { sources, machine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sources',
        id: 'sources',
        access: 'read',
        summary: 'Sources of apps',
        ui: { title: 'Sources', order: 4, label: 'name', empty: 'No source yet' },
        returns: joi.array().items(sourceSchema),
        validate: { query: joi.object(pages.query()) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await sources.list(), query, ({ name }) => name);
            return reply.list(
                rows.map((row) => viewOf(row, machine.now())),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/sources/{name}',
        id: 'source',
        access: 'read',
        summary: 'One source',
        returns: sourceSchema,
        validate: { params },
        handler: async ({ params: { name } }) => viewOf(await sources.get(name), machine.now())
    });
}

function registerWrites(ctx: Ctx, { sources, machine }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/sources',
        id: 'createSource',
        access: 'write',
        summary: 'Add a source',
        description: 'It offers nothing until it was synced.',
        answers: 'made',
        ui: { title: 'New source', primary: true },
        returns: sourceSchema,
        audit: { action: 'create', resource: 'source' },
        validate: {
            payload: joi.object({
                name: sourceName.required(),
                kind: kind.required(),
                url: url.required(),
                publicKey,
                branch,
                acceptUnsigned: acceptUnsigned.default(false),
                enabled: enabled.default(true)
            })
        },
        async handler({ payload, audit }) {
            const row = await sources.create(payload);
            audit({ resourceId: row.name, after: payload });
            return reply.created(`/api/plugins/${ctx.name}/sources/${row.name}`, viewOf(row, machine.now()));
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/sources/{name}',
        id: 'updateSource',
        access: 'write',
        summary: 'Change a source',
        description: 'Its address, kind and key never change.',
        answers: 'done',
        ui: { title: 'Change' },
        returns: sourceSchema,
        audit: { action: 'update', resource: 'source' },
        validate: {
            params,
            payload: joi.object({ kind, url, publicKey, branch, acceptUnsigned, enabled })
        },
        async handler({ params: { name }, payload, ifMatch, audit }) {
            audit({ resourceId: name, after: payload });
            return viewOf(await sources.update(name, payload, ifMatch), machine.now());
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/sources/{name}',
        id: 'removeSource',
        access: 'write',
        summary: 'Remove a source',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this source?' },
        returns: joi.any(),
        audit: { action: 'delete', resource: 'source' },
        validate: { params },
        async handler({ params: { name }, audit }) {
            audit({ resourceId: name });
            await sources.remove(name);
            return null;
        }
    });
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

function viewOf(row: SourceRow, now: number) {
    const { name, version, url: address, publicKey: line, commit, sequence, apps, lastError } = row;
    return {
        ...{ name, version, url: address, publicKey: line, commit, sequence, apps, lastError },
        kind: row.kind as 'portico' | 'runtipi' | 'casaos' | 'local',
        branch: row.branch,
        acceptUnsigned: row.acceptUnsigned,
        enabled: row.enabled,
        signed: isSigned(row),
        keyId: keyIdOf(row),
        state: sourceState(row, now),
        expiresAt: timeOf(row.expiresAt),
        lastSyncAt: timeOf(row.lastSyncAt)
    };
}
