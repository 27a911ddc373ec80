/** Routes of a site's walls: the score, and owners of files. */
import { joi, messageOf, reply, taskSchema } from '@portico/sdk';

import { fail } from '../errors.ts';
import { scoreSandbox } from '../sandbox/score.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { acceptTask } from '../task-replies.ts';
import { siteParams, takeSite } from './params.ts';

const shownEntries = 1_000;

const scoreSchema = joi.object({
    score: joi.number().integer().min(0).max(100).required().label('Score').description('Of 100'),
    checks: joi
        .array()
        .items(
            joi.object({
                id: joi.string().required().label('Attempt'),
                weight: joi.number().integer().required().label('Weight'),
                ok: joi.boolean().required().label('Held'),
                evidence: joi.string().required().label('What came of it'),
                remedy: joi.string().label('What helps')
            })
        )
        .required()
        .label('Attempts')
});

const entrySchema = joi.object({
    path: joi
        .string()
        .required()
        .label('Path')
        .meta({ ui: { column: 1 } }),
    problem: joi
        .choice({ owner: 'Wrong owner', mode: 'Wrong mode', link: 'Leads out of the site' })
        .required()
        .label('Problem')
        .meta({ ui: { column: 2 } }),
    evidence: joi
        .string()
        .required()
        .label('What was found')
        .meta({ ui: { column: 3 } })
});

/** Registers the routes of walls. */
export function registerSandboxRoutes(ctx: Ctx, services: Services): void {
    registerScore(ctx, services);
    registerOwners(ctx, services);
}

function registerScore(ctx: Ctx, { releases, store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/sandbox',
        id: 'sandbox',
        access: 'read',
        summary: 'How well a site is walled off',
        description: 'Each check is an attempt, made now, as the account of the site or by a script in it.',
        ui: { title: 'Walls', role: 'card' },
        timeoutSeconds: 60,
        validate: { params: siteParams },
        returns: scoreSchema,
        async handler({ params }) {
            const site = await store.get(params.id);
            const all = await store.all();
            return scoreSandbox(
                ctx,
                releases,
                site,
                all.filter(({ phase }) => phase === 'ready')
            ).catch((error: unknown) => {
                throw error instanceof Error && 'reason' in error
                    ? error
                    : fail.SITE_DOWN({ why: messageOf(error) });
            });
        }
    });
}

function registerOwners(ctx: Ctx, services: Services): void {
    const { owners, store } = services;
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/files-owner',
        id: 'filesOwner',
        access: 'read',
        summary: 'Files of a site with the wrong owner or mode',
        description: `The first ${shownEntries}; the header X-Total-Count says how many there are.`,
        ui: { title: 'Owners of files', label: 'path', empty: 'All files are as they should be' },
        timeoutSeconds: 300,
        validate: { params: siteParams },
        returns: joi.array().items(entrySchema),
        async handler({ params, signal }) {
            const { entries, total } = await owners.list(await store.get(params.id), shownEntries, signal);
            return reply.list(entries, { total });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/files-owner',
        id: 'repairFiles',
        access: 'write',
        summary: 'Make owners and modes of files right',
        description: 'Links that lead out of the site are named in the log of the task, and stay.',
        answers: 'task',
        ui: { title: 'Make them right', role: 'action' },
        audit: { action: 'repair-files', resource: 'site' },
        validate: { params: siteParams },
        returns: taskSchema,
        async handler({ params, actor, audit }) {
            const lock = await takeSite(services, params.id, 'a repair of its files');
            const site = await store.get(params.id);
            audit({ resourceId: site.id });
            return acceptTask(
                ctx,
                {
                    kind: 'repair-files',
                    title: `Make the files of ${site.name} right`,
                    access: 'write',
                    actor,
                    resource: site.name,
                    lock
                },
                ({ signal, log }) => owners.repair(site, signal, log)
            );
        }
    });
}
