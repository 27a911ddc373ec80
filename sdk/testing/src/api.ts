/** The panel's own routes in a test, and those of other plugins: the test puts them there, and the panel's code lets the plugin call them. */
import {
    createHttpServer,
    type Gateway,
    type GuestSides,
    type HttpPorts,
    type HttpServer,
    json,
    type Permissions,
    type PluginGateway,
    type Route
} from '@portico/core/plugin-runtime';
import { type Actor, type ApiAnswer, type ApiCall, type Effect, joi } from '@portico/sdk';

/** A route of the panel, or of another plugin, that a test puts there. */
export interface PanelRoute {
    /** As in the catalogue: `hosts.list`. */
    readonly id: string;
    /** Default GET. */
    readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
    /** Whole, with parameters as `{name}`. Default: below `/api/`, made of the id. */
    readonly path?: string;
    readonly summary?: string;
    /** The plugin whose route it is; null: the panel's own. */
    readonly plugin?: string | null;
    /** `area:verb`; null: for every user who is logged in. Admins of the test have every one that a route names. */
    readonly permission?: string | null;
    readonly effect?: Effect;
    readonly stepUp?: boolean;
    /** What it answers: plain data, a reply, or a thrown failure. */
    handler?(call: {
        readonly actor: Actor;
        readonly params: object;
        readonly query: object;
        readonly payload: unknown;
        readonly ifMatch: string | null;
    }): unknown;
}

/** What is mounted beside the plugin. */
export class TestApi {
    /** Every call that the plugin made, refused ones included. */
    readonly calls: (Omit<ApiCall, 'signal'> & { readonly answer: ApiAnswer })[] = [];
    readonly #http: HttpPorts;
    readonly #permissions: Permissions;
    readonly #routes = new Map<string, PanelRoute>();
    #servers: readonly HttpServer[] | null = null;

    /** @internal */
    constructor(http: HttpPorts, permissions: Permissions) {
        this.#http = http;
        this.#permissions = permissions;
    }

    /** Puts a route there; the same id replaces. */
    route(route: PanelRoute): void {
        this.#routes.set(route.id, route);
        this.#servers = null;
        const known = new Set(
            this.#permissions
                .all()
                .filter(({ plugin }) => plugin !== others)
                .map(({ name }) => name)
        );
        const named = new Set([...this.#routes.values()].flatMap(({ permission }) => permission ?? []));
        const added = [...named].filter((name) => !known.has(name));
        this.#permissions.register(
            others,
            added.map((name) => ({ name, title: name, roles: ['admin'] }))
        );
    }

    /** The gateway with these routes behind it. @internal */
    behind(gateway: Gateway): PluginGateway {
        return {
            mount: (name, server, root) => gateway.mount(name, server, root),
            unmount: (name) => gateway.unmount(name),
            hurry: (name) => gateway.hurry(name),
            park: (name) => gateway.park(name),
            gate: (name) => gateway.gate(name),
            servers: () => [...gateway.servers(), ...this.#mounted()],
            inject: (options) => {
                const isBelow = ({ prefix }: HttpServer): boolean => options.url.startsWith(`${prefix}/`);
                const server = this.#mounted().findLast(isBelow);
                return server === undefined ? gateway.inject(options) : server.inject(options);
            }
        };
    }

    /** The same sides, with every call known here. @internal */
    watch({ hostApi, local }: GuestSides): GuestSides {
        return {
            local,
            hostApi: {
                ...hostApi,
                call: async (input) => {
                    const answer = await hostApi.call(input);
                    this.calls.push({ ...input.call, answer });
                    return answer;
                }
            }
        };
    }

    #mounted(): readonly HttpServer[] {
        const byPlugin = Map.groupBy(this.#routes.values(), ({ plugin = null }) => plugin);
        // The panel's own come first: what lies below a plugin's path is looked for from the end.
        const sorted = [...byPlugin].sort(([a], [b]) => Number(a !== null) - Number(b !== null));
        return (this.#servers ??= sorted.map(([plugin, routes]) =>
            createHttpServer({
                name: plugin ?? 'panel',
                prefix: plugin === null ? '' : `/api/plugins/${plugin}`,
                routes: routes.map((route) => routeOf(route, plugin)),
                ports: this.#http
            })
        ));
    }
}

/** Owner of the permissions that only routes of the test name. */
const others = 'test-api';

function routeOf({ method = 'GET', stepUp = false, ...route }: PanelRoute, plugin: string | null): Route {
    const prefix = plugin === null ? '' : `/api/plugins/${plugin}`;
    const id = plugin === null ? route.id : route.id.slice(plugin.length + 1);
    const { path = `/api/${route.id.replaceAll('.', '/')}` } = route;
    const anything = joi.object({}).unknown();
    return json({
        id,
        method,
        path: plugin === null ? path : (route.path?.slice(prefix.length) ?? `/${id.replaceAll('.', '/')}`),
        access: route.permission ?? 'authenticated',
        summary: route.summary ?? route.id,
        stepUp,
        ...(route.effect === undefined ? {} : { effect: route.effect }),
        validate: { params: anything, query: anything, ...(method === 'GET' ? {} : { payload: joi.any() }) },
        handler: async ({ actor, params, query, payload, ifMatch }) =>
            (await route.handler?.({ actor, params, query, payload, ifMatch })) ?? null
    });
}
