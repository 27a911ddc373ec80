/** Routes of the policies and of services by name. */
import { joi, pages, reply } from '@portico/sdk';

import { knownServices } from '../draft/objects/known-services.ts';
import { changePolicy, createService, removeService } from '../draft/objects/services.ts';
import { changedPolicy, newService, objectName } from '../draft/schema.ts';
import { policyView, serviceView } from '../draft/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Registers `/policy` and the routes below `/services`. */
export function registerPolicyRoutes(ctx: Ctx, services: Services): void {
    registerPolicy(ctx, services);
    registerServices(ctx, services);
}

function registerPolicy(ctx: Ctx, { draft }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/policy',
        id: 'policy',
        access: 'read',
        summary: 'What happens to packets that no rule of the draft matches',
        ui: { title: 'Policies', role: 'card', order: 2 },
        returns: policyView,
        handler: async () => (await draft.model()).policy
    });
    ctx.route({
        method: 'PUT',
        path: '/policy',
        id: 'updatePolicy',
        access: 'write',
        summary: 'Change the policies of the draft',
        answers: 'done',
        ui: { title: 'Change policies' },
        returns: policyView,
        audit: { action: 'update', resource: 'policy' },
        validate: { payload: changedPolicy },
        async handler({ payload, audit }) {
            const change = await changePolicy(draft, payload);
            audit(change);
            return change.after;
        }
    });
}

function registerServices(ctx: Ctx, { draft }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/services',
        id: 'services',
        access: 'read',
        summary: 'Services by name',
        ui: { title: 'Services', order: 6, label: 'name' },
        returns: joi.array().items(serviceView),
        validate: { query: joi.object({ ...pages.query(500), q: joi.string().max(100).label('Text') }) },
        async handler({ query }) {
            const { services } = await draft.model();
            const all = [
                ...services.map((each) => ({ ...each, builtIn: false })),
                ...[...knownServices.values()].map((each) => ({ ...each, builtIn: true }))
            ].filter(({ name, ports }) => [name, ...ports].some((text) => text.includes(query.q ?? '')));
            const { rows, page } = pages.ordered(all, query);
            return reply.list(
                rows.map(({ name, ports, builtIn }) => ({ name, ports: [...ports], builtIn })),
                page
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/services',
        id: 'createService',
        access: 'write',
        summary: 'Name ports in the draft',
        answers: 'made',
        ui: { title: 'New service' },
        returns: serviceView,
        audit: { action: 'create', resource: 'service' },
        validate: { payload: newService },
        async handler({ payload, audit }) {
            const made = await createService(draft, payload);
            audit({ resourceId: made.name, after: made });
            return reply.created(`/api/plugins/${ctx.name}/services/${made.name}`, {
                name: made.name,
                ports: [...made.ports],
                builtIn: false
            });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/services/{name}',
        id: 'removeService',
        access: 'write',
        summary: 'Remove a service of your own from the draft',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this service?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'service' },
        validate: { params: joi.object({ name: objectName.required().label('Name') }) },
        async handler({ params, audit }) {
            audit({ resourceId: params.name, before: await removeService(draft, params.name) });
            return null;
        }
    });
}
