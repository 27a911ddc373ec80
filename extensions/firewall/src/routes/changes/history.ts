/** Routes of what was applied before. */
import { joi } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { stateOf, stateView } from '../state.ts';

/** Registers the routes below `/history`. */
export function registerHistoryRoutes(ctx: Ctx, services: Services): void {
    const { store } = services;
    ctx.route({
        method: 'GET',
        path: '/history',
        id: 'history',
        access: 'read',
        summary: 'What was applied, newest first',
        ui: { title: 'History', order: 8, label: 'version', empty: 'Nothing was applied yet' },
        returns: joi.array().items(
            joi.object({
                version: joi
                    .number()
                    .integer()
                    .required()
                    .label('Version')
                    .meta({ ui: { column: 1 } }),
                at: joi
                    .string()
                    .isoDate()
                    .required()
                    .label('At')
                    .meta({ ui: { column: 2 } }),
                by: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('By')
                    .meta({ ui: { column: 3 } }),
                outcome: joi
                    .choice({
                        confirmed: 'Confirmed',
                        reverted: 'Reverted',
                        expired: 'Not confirmed in time'
                    })
                    .required()
                    .label('Outcome')
                    .meta({
                        ui: {
                            column: 4,
                            tones: { confirmed: 'good', reverted: 'warning', expired: 'warning' }
                        }
                    })
            })
        ),
        handler: async () =>
            (await store.history()).map(({ at, ...entry }) => ({ ...entry, at: new Date(at).toISOString() }))
    });
    ctx.route({
        method: 'POST',
        path: '/history/{version}/restore',
        id: 'restoreVersion',
        access: 'write',
        summary: 'Take an applied version back into the draft',
        answers: 'done',
        ui: { title: 'Restore', role: 'action', confirm: 'Replace the draft by this version?' },
        returns: stateView,
        audit: { action: 'restore', resource: 'firewall' },
        validate: {
            params: joi.object({ version: joi.number().integer().min(1).required().label('Version') })
        },
        async handler({ params, audit }) {
            audit({ resourceId: params.version });
            const model = await store.historic(params.version);
            if (model === null) {
                throw fail.NO_VERSION({ version: params.version });
            }
            await services.draft.change(() => ({ model, result: null }));
            return stateOf(services);
        }
    });
}
