/** Routes of updates, and of the revisions that an app can go back to. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { consent, difference, installedParams, lang } from './schemas.ts';

/** Registers the routes of updates and revisions. */
export function registerUpdateRoutes(ctx: Ctx, services: Services): void {
    registerUpdates(ctx, services);
    registerHistory(ctx, services);
}

const updatesSchema = joi.typed<unknown>(
    joi.array().items(
        joi.object({
            name: joi
                .string()
                .required()
                .label('App')
                .meta({ ui: { column: 1 } }),
            from: joi
                .string()
                .required()
                .label('From')
                .meta({ ui: { column: 2 } }),
            to: joi
                .string()
                .required()
                .label('To')
                .meta({ ui: { column: 3 } }),
            changelog: joi
                .string()
                .allow('')
                .required()
                .label('Changes')
                .meta({ media: 'text/html', ui: { column: false } }),
            diff: difference
                .allow(null)
                .required()
                .label('What is new')
                .meta({ ui: { column: false } }),
            needsConsent: joi
                .boolean()
                .required()
                .label('Exposes more')
                .meta({ ui: { column: 4 } }),
            auto: joi
                .boolean()
                .required()
                .label('By itself')
                .meta({ ui: { column: 5 } }),
            why: joi
                .string()
                .allow(null)
                .required()
                .label('Why not')
                .meta({ ui: { column: 6 } })
        })
    )
);

function registerUpdates(ctx: Ctx, { updates, apps }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/updates',
        id: 'updates',
        access: 'read',
        summary: 'Updates that wait',
        ui: { title: 'Updates', order: 3, label: 'name', empty: 'All apps are up to date' },
        returns: updatesSchema,
        timeoutSeconds: 120,
        validate: { query: joi.object({ lang }) },
        handler: ({ query, actor }) => updates.list(query.lang, actor)
    });
    ctx.route({
        method: 'POST',
        path: '/installed/{name}/update',
        id: 'updateApp',
        access: 'run',
        summary: 'Update an app',
        description:
            'To what its own source offers. It is judged by its health, and taken back with its data when it is not healthy. Where it exposes more, it needs the `consent` of the plan, and the permission to change apps.',
        answers: 'task',
        ui: { title: 'Update', role: 'action' },
        returns: taskSchema,
        audit: { action: 'update', resource: 'app' },
        validate: {
            params: installedParams,
            payload: joi
                .object({
                    version: joi
                        .string()
                        .max(64)
                        .label('Version')
                        .description('Refused when the source has another one'),
                    backup: joi
                        .boolean()
                        .default(true)
                        .label('Back its data up before')
                        .description('Without it, data do not go back'),
                    consent
                })
                .default({ backup: true })
        },
        async handler({ params: { name }, payload, actor, audit }) {
            audit({ resourceId: name, after: { version: payload.version, backup: payload.backup } });
            return reply.accepted(await apps.update(name, payload, actor));
        }
    });
}

const historySchema = joi.array().items(
    joi.object({
        revision: joi
            .number()
            .required()
            .label('Revision')
            .meta({ ui: { column: 1 } }),
        version: joi
            .string()
            .required()
            .label('Version')
            .meta({ ui: { column: 2 } }),
        at: joi
            .string()
            .isoDate()
            .required()
            .label('Time')
            .meta({ ui: { column: 3 } }),
        by: joi
            .string()
            .allow(null)
            .required()
            .label('By')
            .meta({ ui: { column: 4 } }),
        because: joi
            .string()
            .required()
            .label('Because')
            .meta({ ui: { column: 5 } }),
        backup: joi
            .number()
            .allow(null)
            .required()
            .label('Backup')
            .description('Of its data, as they were at its end')
            .meta({ ui: { column: 6 } })
    })
);

function registerHistory(ctx: Ctx, { store, apps }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/installed/{name}/history',
        id: 'history',
        access: 'read',
        summary: 'Revisions of an app, newest first',
        ui: { title: 'History' },
        returns: historySchema,
        validate: { params: installedParams },
        async handler({ params: { name } }) {
            await store.get(name);
            const [rows, backups] = await Promise.all([store.history(name), store.backups(name)]);
            return rows.map(({ revision, version, setAt, setBy, because }) => ({
                ...{ revision, version, because, by: setBy, at: new Date(setAt).toISOString() },
                backup: backups.find((each) => each.revision === revision)?.id ?? null
            }));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/installed/{name}/rollback',
        id: 'rollbackApp',
        access: 'write',
        summary: 'Take an app back to a revision',
        description:
            'With the data that it had then, or with those of now. What is there now is backed up before.',
        answers: 'task',
        ui: { title: 'Take back' },
        returns: taskSchema,
        audit: { action: 'rollback', resource: 'app' },
        validate: {
            params: installedParams,
            payload: joi.object({
                revision: joi.number().integer().min(1).required().label('Revision'),
                data: joi.boolean().default(true).label('With its data')
            })
        },
        async handler({ params: { name }, payload, actor, audit }) {
            audit({ resourceId: name, after: payload });
            return reply.accepted(await apps.rollback(name, payload, actor));
        }
    });
}
