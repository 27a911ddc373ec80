/** The routes of providers. */
import { joi, reply } from '@portico/sdk';

import { testProvider } from '../providers/checks.ts';
import { presets, presetSchema } from '../providers/presets.ts';
import { changedProvider, newProvider, providerSchema, testSchema } from '../providers/schema.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Provider')
        .meta({ ui: { ref: 'ai.providers' } })
});
/** How long an address of this machine is asked whether a model answers there. */
const probeMs = 1_500;

/** Declares `/presets` and `/providers`. */
export function registerProviderRoutes(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/presets',
        id: 'presets',
        access: 'read',
        summary: 'Services and programs that a provider can be made of',
        returns: joi.array().items(presetSchema),
        ui: { title: 'Presets', order: 9, label: 'title' },
        handler: () => reply.list(presets, { total: presets.length })
    });
    registerList(ctx, services);
    registerOne(ctx, services);
    registerQuestions(ctx, services);
}

function registerList(ctx: Ctx, { providers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/providers',
        id: 'providers',
        access: 'manage',
        summary: 'Providers',
        ui: { title: 'Providers', order: 5, label: 'name', empty: 'No provider yet' },
        returns: joi.array().items(providerSchema),
        async handler() {
            const all = await providers.list();
            return reply.list(all, { total: all.length });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/providers',
        id: 'createProvider',
        access: 'manage',
        summary: 'Set up a provider',
        description: 'The first one is the default.',
        answers: 'made',
        ui: { title: 'New provider' },
        audit: { action: 'create', resource: 'provider' },
        validate: { payload: newProvider },
        returns: providerSchema,
        async handler({ payload, audit }) {
            const made = await providers.create(payload, { audit });
            return reply.created(`/api/plugins/${ctx.name}/providers/${made.id}`, made);
        }
    });
}

function registerOne(ctx: Ctx, { providers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/providers/{id}',
        id: 'provider',
        access: 'manage',
        summary: 'One provider',
        validate: { params },
        returns: providerSchema,
        handler: async ({ params: { id } }) => reply.with(await providers.get(id), {})
    });
    ctx.route({
        method: 'PUT',
        path: '/providers/{id}',
        id: 'changeProvider',
        access: 'manage',
        summary: 'Change a provider',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'provider' },
        validate: { params, payload: changedProvider },
        returns: providerSchema,
        handler: async ({ params: { id }, payload, ifMatch, audit }) =>
            reply.with(await providers.update(id, payload, { ifMatch, audit }), {})
    });
    ctx.route({
        method: 'DELETE',
        path: '/providers/{id}',
        id: 'removeProvider',
        access: 'manage',
        summary: 'Remove a provider',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this provider and its key?' },
        audit: { action: 'delete', resource: 'provider' },
        validate: { params },
        returns: joi.valid(null),
        async handler({ params: { id }, ifMatch, audit }) {
            await providers.remove(id, { ifMatch, audit });
            return reply.with(null, {});
        }
    });
}

function registerQuestions(ctx: Ctx, { providers, models }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/providers/{id}/test',
        id: 'testProvider',
        access: 'manage',
        summary: 'Test a provider',
        description: 'It is asked for its models, for an answer, for a call of a function, and for a vector.',
        timeoutSeconds: 300,
        answers: 'done',
        ui: { title: 'Test', role: 'action' },
        audit: { action: 'test', resource: 'provider' },
        validate: { params },
        returns: testSchema,
        handler: async ({ params: { id }, signal }) => testProvider(models, await providers.open(id), signal)
    });
    ctx.route({
        method: 'GET',
        path: '/providers/{id}/models',
        id: 'models',
        access: 'manage',
        summary: 'Models of a provider',
        ui: { title: 'Models', role: 'list', label: 'id' },
        validate: { params },
        returns: joi.array().items(joi.object({ id: joi.string().required().label('Model') })),
        async handler({ params: { id }, signal }) {
            const ids = await models.list(await providers.open(id), signal);
            return reply.list(
                ids.map((each) => ({ id: each })),
                { total: ids.length }
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/providers/discover',
        id: 'discover',
        access: 'manage',
        effect: 'read',
        summary: 'Find models on this machine',
        description:
            'Asks the ports that programs for local models use by default. An address must be granted to be asked.',
        answers: 'done',
        ui: { title: 'Find local ones', role: 'action' },
        returns: joi.array().items(
            joi.object({
                baseUrl: joi.string().required().label('Address'),
                models: joi.array().items(joi.string()).required().label('Models')
            })
        ),
        async handler({ signal }) {
            const found = await Promise.all(
                presets
                    .filter(({ local }) => local)
                    .map(async ({ baseUrl, type }) => {
                        const timed = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
                        const at = { baseUrl, type, apiKey: null, headers: {} };
                        return models.list(at, timed).then(
                            (ids) => ({ baseUrl, models: ids }),
                            () => null
                        );
                    })
            );
            return found.filter((each) => each !== null);
        }
    });
}
