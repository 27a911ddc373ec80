/** Routes that switch a site to another release. */
import { errors, joi, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { releaseSchema } from '../sites/creation/input.ts';
import { switchWork } from '../sites/views.ts';
import { acceptTask } from '../task-replies.ts';
import { siteParams, takeSite } from './params.ts';

const switchSchema = joi.object({
    state: joi
        .choice({
            none: 'There was none',
            starting: 'Is being started',
            observing: 'Is observed',
            done: 'Has taken over',
            reverted: 'Went back',
            cancelled: 'Was cancelled'
        })
        .required()
        .label('State')
        .meta({
            ui: {
                tones: {
                    starting: 'busy',
                    observing: 'busy',
                    done: 'good',
                    reverted: 'bad',
                    cancelled: 'warning'
                }
            }
        }),
    from: joi.string().required().label('From'),
    to: joi.string().required().label('To'),
    percent: joi.number().integer().required().label('Share of the requests').unit('percent'),
    requests: joi
        .number()
        .integer()
        .required()
        .label('Requests')
        .description('That the new release answered'),
    errors: joi
        .number()
        .integer()
        .required()
        .label('Failed')
        .description('Answers with a status of 500 and above'),
    evidence: joi.string().label('Why it went back')
});

/** Registers the routes of switches. */
export function registerSwitchRoutes(ctx: Ctx, services: Services): void {
    registerBegin(ctx, services);
    registerReading(ctx, services);
}

function registerBegin(ctx: Ctx, services: Services): void {
    const { releases, store, switches } = services;
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/switch',
        id: 'switchSite',
        access: 'write',
        summary: 'Switch a site to another release by canary',
        description:
            'The new release serves a share of the requests beside the old one. When more of them fail than before, a worker dies, or `path` is not answered as before, all requests go back and the task fails (42252); else it takes over.',
        answers: 'task',
        ui: { title: 'Switch', role: 'action' },
        audit: { action: 'switch', resource: 'site' },
        validate: {
            params: siteParams,
            payload: joi.object({
                release: releaseSchema().required(),
                percent: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(100)
                    .default(10)
                    .label('Share of the requests')
                    .unit('percent'),
                observeSeconds: joi
                    .number()
                    .integer()
                    .min(5)
                    .max(3_600)
                    .default(60)
                    .label('Observe for')
                    .unit('second'),
                maxErrors: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(1_000_000)
                    .default(0)
                    .label('Most failed requests')
                    .description('Beyond what fails at the rate of the old release'),
                path: joi
                    .string()
                    .pattern(/^\/[!-~]{0,2000}$/)
                    .default('/')
                    .label('Path')
                    .description('Must be answered as before')
            })
        },
        returns: taskSchema,
        async handler({ params, payload, actor, audit }) {
            await releases.get(payload.release);
            const lock = await takeSite(services, params.id, switchWork);
            const site = await store.get(params.id);
            if (site.release === payload.release) {
                lock[Symbol.dispose]();
                throw errors.invalid([
                    { path: 'release', message: `The site has PHP ${site.release} already` }
                ]);
            }
            audit({ resourceId: site.id, before: { release: site.release }, after: payload });
            return acceptTask(
                ctx,
                {
                    kind: 'switch-site',
                    title: `Switch ${site.name} to PHP ${payload.release}`,
                    access: 'write',
                    actor,
                    resource: site.name,
                    lock
                },
                async ({ signal, log }) => {
                    const { id, release } = await switches.run(site, payload, signal, log);
                    return { siteId: id, release };
                }
            );
        }
    });
}

function registerReading(ctx: Ctx, { store, switches }: Services): void {
    const view = async (id: number) => {
        const { release } = await store.get(id);
        const row = await switches.find(id);
        if (row === null) {
            return { state: 'none' as const, from: release, to: release, percent: 0, requests: 0, errors: 0 };
        }
        const { state, from, to, percent, requests, errors: failed, evidence } = row;
        return {
            state,
            from,
            to,
            percent,
            requests,
            errors: failed,
            ...(evidence === null ? {} : { evidence })
        };
    };
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/switch',
        id: 'siteSwitch',
        access: 'read',
        summary: 'The newest switch of a site',
        ui: { title: 'Switch', role: 'card' },
        validate: { params: siteParams },
        returns: switchSchema,
        handler: ({ params }) => view(params.id)
    });
    ctx.route({
        method: 'DELETE',
        path: '/sites/{id}/switch',
        id: 'cancelSwitch',
        access: 'write',
        summary: 'Take a switch back',
        description: 'All requests go to the old release at once.',
        answers: 'done',
        ui: { title: 'Take it back', role: 'action', confirm: 'Send all requests to the old release again?' },
        audit: { action: 'cancel-switch', resource: 'site' },
        timeoutSeconds: 300,
        validate: { params: siteParams },
        returns: switchSchema,
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            await switches.cancel(params.id);
            return view(params.id);
        }
    });
}
