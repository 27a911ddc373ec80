/** The routes of exports: where metrics are sent. */
import { joi, pages, reply } from '@portico/sdk';

import type { Exports, ExportStatus, SeenExport } from '../exports/exports.ts';
import { changedExport, exportSchema, type ExportView, newExport } from '../exports/schema.ts';
import { maskHeaders } from '../headers.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Export')
        .meta({ ui: { ref: 'monitoring.exports' } })
});

/** Declares `/exports` and everything below it. */
export function registerExportRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services.exports);
    registerChanges(ctx, services.exports);
    registerTest(ctx, services);
}

function registerReads(ctx: Ctx, exports: Exports): void {
    ctx.route({
        method: 'GET',
        path: '/exports',
        id: 'exports',
        access: 'export',
        summary: 'Where metrics are sent',
        ui: { title: 'Exports', order: 11, label: 'url', empty: 'Metrics are sent nowhere' },
        returns: joi.array().items(exportSchema),
        validate: { query: joi.object({ ...pages.query() }) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(exports.list(), query, ({ id }) => id);
            const statuses = await exports.statuses();
            return reply.list(
                rows.map((each) => viewOf(each, statuses.get(each.id))),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/exports/{id}',
        id: 'export',
        access: 'export',
        summary: 'One export',
        returns: exportSchema,
        validate: { params },
        handler: async ({ params: { id } }) => reply.with(await view(exports, exports.get(id)), {})
    });
}

function registerChanges(ctx: Ctx, exports: Exports): void {
    ctx.route({
        method: 'POST',
        path: '/exports',
        id: 'createExport',
        access: 'export',
        summary: 'Send metrics to another system',
        answers: 'made',
        ui: { title: 'New export' },
        returns: exportSchema,
        audit: { action: 'create', resource: 'export' },
        description:
            'Addresses of private networks need a grant. What cannot be sent waits for an hour, 16 MiB at most.',
        validate: { payload: newExport },
        async handler({ payload, audit }) {
            const made = await view(exports, await exports.create(payload));
            audit({ resourceId: made.id, after: made });
            return reply.created(`/api/plugins/${ctx.name}/exports/${made.id}`, made);
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/exports/{id}',
        id: 'changeExport',
        access: 'export',
        summary: 'Change an export',
        answers: 'done',
        ui: { title: 'Change' },
        returns: exportSchema,
        audit: { action: 'update', resource: 'export' },
        validate: { params, payload: changedExport },
        async handler({ params: { id }, payload, ifMatch, audit }) {
            audit({ resourceId: id, before: await view(exports, exports.get(id)) });
            const after = await view(exports, await exports.update(id, payload, ifMatch));
            audit({ after });
            return reply.with(after, {});
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/exports/{id}',
        id: 'removeExport',
        access: 'export',
        summary: 'Send metrics there no more',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this export, with what waits to be sent?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'export' },
        validate: { params },
        async handler({ params: { id }, ifMatch, audit }) {
            audit({ resourceId: id });
            const before = await view(exports, exports.get(id));
            await exports.remove(id, ifMatch);
            audit({ before });
            return reply.with(null, {});
        }
    });
}

function registerTest(ctx: Ctx, { exports, monitor, tries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/exports/{id}/test',
        id: 'testExport',
        access: 'export',
        summary: 'Send the newest sample now',
        answers: 'done',
        ui: { title: 'Test' },
        returns: joi.object({
            ok: joi.boolean().required().label('Taken'),
            status: joi
                .number()
                .integer()
                .allow(null)
                .required()
                .label('Status')
                .description('Null without an answer'),
            message: joi.string().required().label('What was answered')
        }),
        audit: { action: 'test', resource: 'export' },
        validate: { params },
        async handler({ params: { id }, actor, signal, audit }) {
            audit({ resourceId: id });
            tries.take(actor);
            const { ok, status, message } = await exports.test(id, monitor.sample, signal);
            return { ok, status, message };
        }
    });
}

async function view(exports: Exports, seen: SeenExport): Promise<ExportView> {
    return viewOf(seen, (await exports.statuses()).get(seen.id));
}

function viewOf(
    { id, version, createdAt, updatedAt, fields }: SeenExport,
    status: ExportStatus | undefined
): ExportView {
    const { headers, metrics, labels, ...rest } = fields;
    return {
        id,
        ...rest,
        headers: maskHeaders(headers),
        metrics: [...metrics],
        labels: { ...labels },
        lastSuccessAt: status?.lastSuccessAt == null ? null : new Date(status.lastSuccessAt).toISOString(),
        lastError: status?.lastError ?? null,
        queued: status?.queued ?? 0,
        dropped: status?.dropped ?? 0,
        version,
        createdAt: new Date(createdAt).toISOString(),
        updatedAt: new Date(updatedAt).toISOString()
    };
}
