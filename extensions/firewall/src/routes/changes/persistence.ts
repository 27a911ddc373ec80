/** Routes of the boot file. */
import { joi } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const view = joi.object({
    enabled: joi.boolean().required().label('Kept'),
    file: joi.string().required().label('File'),
    loadedAtBoot: joi.boolean().required().label('Loaded at boot'),
    how: joi.string().required().label('Loaded by'),
    remedy: joi.string().allow(null).required().label('What helps')
});

/** Declares the routes below `/persistence`. */
export function registerPersistenceRoutes(ctx: Ctx, { persistence }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/persistence',
        id: 'persistence',
        access: 'read',
        summary: 'Whether the rules are loaded at boot',
        ui: { title: 'At boot', role: 'card', order: 9 },
        returns: view,
        handler: () => persistence.state()
    });
    ctx.route({
        method: 'PUT',
        path: '/persistence',
        id: 'setPersistence',
        access: 'apply',
        summary: 'Keep the applied rules in a file that is loaded at boot, or not',
        answers: 'done',
        ui: { title: 'Change' },
        returns: view,
        audit: { action: 'update', resource: 'persistence' },
        validate: { payload: joi.object({ enabled: joi.boolean().required().label('Keep') }) },
        async handler({ payload, audit }) {
            audit({ after: payload });
            await persistence.enable(payload.enabled);
            return persistence.state();
        }
    });
}
