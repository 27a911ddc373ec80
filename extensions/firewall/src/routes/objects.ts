/** Routes of the zones, sets and translations of the draft. All three work alike. */
import { type AnySchema, joi, pages, type PluginRoute, reply, type RouteUi } from '@portico/sdk';

import type { Kind, Kinds, Sent } from '../draft/objects/objects.ts';
import { changedNat, changedSet, changedZone, newNat, newSet, newZone } from '../draft/schema.ts';
import { natView, type SetView, setView, zoneView } from '../draft/views.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './id-params.ts';

type Listed = Exclude<Kind, 'rules'>;

/** What sets one kind of objects apart. */
interface ObjectRoutes<K extends Listed> {
    readonly kind: K;
    /** Singular, for ids of operations and the audit. */
    readonly one: string;
    readonly title: string;
    readonly summary: string;
    readonly ui: RouteUi;
    readonly created: AnySchema;
    readonly changed: AnySchema;
    readonly view: AnySchema;
    show(object: Kinds[K]): Promise<object>;
    /** Runs when an object came or was changed. */
    onChange?(object: Kinds[K]): Promise<void>;
}

/** Registers the routes below `/zones`, `/sets` and `/nat`. */
export function registerObjectRoutes(ctx: Ctx, services: Services): void {
    const { contents, lists } = services;
    register(ctx, services, {
        kind: 'zones',
        one: 'Zone',
        title: 'zone',
        summary: 'Zones of the draft',
        ui: { title: 'Zones', order: 3, label: 'name', empty: 'No zone yet' },
        created: newZone,
        changed: changedZone,
        view: zoneView,
        show: async (zone) => zone
    });
    register(ctx, services, {
        kind: 'sets',
        one: 'Set',
        title: 'set',
        summary: 'Sets of addresses of the draft',
        ui: { title: 'Sets', order: 4, label: 'name', empty: 'No set yet' },
        created: newSet,
        changed: changedSet,
        view: setView,
        async show(set): Promise<SetView> {
            const { count, skipped, updatedAt, error } = await contents.state(set.id);
            return {
                ...set,
                countries: [...set.countries],
                elements: count,
                skipped,
                updatedAt: updatedAt === null ? null : new Date(updatedAt).toISOString(),
                error
            };
        },
        onChange: async (set) => {
            if (set.source !== 'manual') {
                lists.refreshSoon(set.id);
            }
        }
    });
    register(ctx, services, {
        kind: 'nat',
        one: 'Nat',
        title: 'translation',
        summary: 'Translations of addresses of the draft',
        ui: { title: 'NAT', order: 5, label: 'to', empty: 'No translation yet' },
        created: newNat,
        changed: changedNat,
        view: natView,
        show: async (nat) => nat
    });
}

function register<K extends Listed>(ctx: Ctx, services: Services, routes: ObjectRoutes<K>): void {
    registerReads(ctx, services, routes);
    registerChanges(ctx, services, routes);
}

/** The routes of three kinds share one declaration; each kind's own schemas state the shapes. */
type AnyRoute = PluginRoute<typeof idParams, undefined, AnySchema, AnySchema>;

function registerReads<K extends Listed>(
    ctx: Ctx,
    { draft, objects }: Services,
    routes: ObjectRoutes<K>
): void {
    const { kind, one, summary, ui, view, show } = routes;
    ctx.route({
        method: 'GET',
        path: `/${kind}`,
        id: kind,
        access: 'read',
        summary,
        ui,
        returns: joi.array().items(view),
        validate: { query: joi.object({ ...pages.query(200), q: joi.string().max(100).label('Text') }) },
        async handler({ query }) {
            const all = (await draft.model())[kind] as readonly Kinds[K][];
            const text = query.q?.toLowerCase() ?? '';
            const { rows, page } = pages.ordered(
                all.filter((each) => JSON.stringify(each).toLowerCase().includes(text)),
                query
            );
            return reply.list(await Promise.all(rows.map(show)), page);
        }
    });
    const route: AnyRoute = {
        method: 'GET',
        path: `/${kind}/{id}`,
        id: `get${one}`,
        access: 'read',
        summary: `One ${routes.title} of the draft`,
        returns: view,
        validate: { params: idParams },
        handler: async ({ params }) => show(await objects.get(kind, params.id))
    };
    ctx.route(route);
}

function registerChanges<K extends Listed>(ctx: Ctx, { objects }: Services, routes: ObjectRoutes<K>): void {
    const { kind, one, title, created, changed, view, show, onChange } = routes;
    ctx.route({
        method: 'POST',
        path: `/${kind}`,
        id: `create${one}`,
        access: 'write',
        summary: `Make a ${title} in the draft`,
        answers: 'made',
        ui: { title: `New ${title}` },
        returns: view,
        audit: { action: 'create', resource: title },
        validate: { payload: created },
        async handler({ payload, audit }) {
            // The schema of this kind let it through.
            const object = await objects.create(kind, payload as Sent<K>);
            audit({ resourceId: object.id, after: object });
            await onChange?.(object);
            return reply.created(`/api/plugins/${ctx.name}/${kind}/${object.id}`, await show(object));
        }
    });
    const update: AnyRoute = {
        method: 'PUT',
        path: `/${kind}/{id}`,
        id: `update${one}`,
        access: 'write',
        summary: `Change a ${title} of the draft`,
        answers: 'done',
        ui: { title: 'Change' },
        returns: view,
        audit: { action: 'update', resource: title },
        validate: { params: idParams, payload: changed },
        async handler({ params, payload, ifMatch, audit }) {
            audit({ resourceId: params.id });
            const { before, after } = await objects.update(kind, params.id, payload as Sent<K>, ifMatch);
            audit({ before, after });
            await onChange?.(after);
            return show(after);
        }
    };
    ctx.route(update);
    ctx.route({
        method: 'DELETE',
        path: `/${kind}/{id}`,
        id: `remove${one}`,
        access: 'write',
        summary: `Remove a ${title} from the draft`,
        answers: 'done',
        ui: { title: 'Remove', confirm: `Remove this ${title} from the draft?` },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: title },
        validate: { params: idParams },
        async handler({ params, ifMatch, audit }) {
            audit({ resourceId: params.id, before: await objects.remove(kind, params.id, ifMatch) });
            return null;
        }
    });
}
