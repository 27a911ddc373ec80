/** The routes of silences. */
import { errors, joi, pages, reply } from '@portico/sdk';

import { parseSeriesName } from '../../sampling/metrics.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { changedSilence, newSilence, silenceSchema, toSilenceView } from '../../silences/schema.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Silence')
        .meta({ ui: { ref: 'monitoring.silences' } })
});

/** Declares `/silences` and `/silences/{id}`. */
export function registerSilenceRoutes(ctx: Ctx, { monitor }: Services): void {
    const { silences } = monitor;
    const view = (row: Parameters<typeof toSilenceView>[0]) => toSilenceView(row, monitor.now());
    ctx.route({
        method: 'GET',
        path: '/silences',
        id: 'silences',
        access: 'read',
        summary: 'Spans in which alerts are not told',
        ui: { title: 'Silences', order: 8, label: 'reason', empty: 'No silence' },
        returns: joi.array().items(silenceSchema),
        description: 'Newest first. Those that were over 30 days ago are forgotten.',
        validate: { query: joi.object({ ...pages.query() }) },
        async handler({ query }) {
            const { rows, page } = pages.ordered(silences.list(), query);
            return reply.list(rows.map(view), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/silences',
        id: 'createSilence',
        access: 'write',
        summary: 'Silence alerts for a while',
        answers: 'made',
        ui: { title: 'New silence' },
        returns: silenceSchema,
        audit: { action: 'create', resource: 'silence' },
        description:
            'An alert that the silence covers is recorded and not told, and its action is not called. One that still fires at the end is told then.',
        validate: { payload: newSilence },
        async handler({ payload, actor, audit }) {
            await checkTarget(monitor, payload);
            const made = view(await silences.create(payload, actor.username));
            audit({ resourceId: made.id, after: made });
            return reply.created(`/api/plugins/${ctx.name}/silences/${made.id}`, made);
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/silences/{id}',
        id: 'changeSilence',
        access: 'write',
        summary: 'Change a silence',
        answers: 'done',
        ui: { title: 'Change' },
        returns: silenceSchema,
        audit: { action: 'update', resource: 'silence' },
        validate: { params, payload: changedSilence },
        async handler({ params: { id }, payload, ifMatch, audit }) {
            audit({ resourceId: id, before: view(silences.get(id)) });
            await checkTarget(monitor, payload);
            const after = view(await silences.update(id, payload, ifMatch));
            audit({ after });
            return reply.with(after, {});
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/silences/{id}',
        id: 'removeSilence',
        access: 'write',
        summary: 'End a silence',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'End this silence? Alerts that fire are told.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'silence' },
        validate: { params },
        async handler({ params: { id }, ifMatch, audit }) {
            audit({ resourceId: id });
            audit({ before: view(await silences.remove(id, ifMatch)) });
            return reply.with(null, {});
        }
    });
}

/** A silence of what there is not would cover nothing. @throws VALIDATION_FAILED 40001 */
async function checkTarget(
    { rules }: Services['monitor'],
    {
        ruleId,
        metric
    }: { readonly ruleId?: number | null | undefined; readonly metric?: string | null | undefined }
): Promise<void> {
    const isRule =
        ruleId === null || ruleId === undefined || (await rules.list(false)).some(({ id }) => id === ruleId);
    const faults = [
        ...(isRule ? [] : [{ path: 'ruleId', message: `There is no rule ${ruleId}` }]),
        ...(metric === null || metric === undefined || parseSeriesName(metric) !== null
            ? []
            : [{ path: 'metric', message: 'metric must be one that GET metrics/catalogue lists' }])
    ];
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}
