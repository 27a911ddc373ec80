/** The catalogue of mounted routes, and which of them a plugin may call for a caller. */
import type { AnySchema, JsonSchema, RouteInfo } from '@portico/sdk';
import type { Grants } from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import { jsonSchemaOf } from '../../../server/http/json-schema/json-schema.ts';
import { fullPath, templateOf } from '../../../server/http/openapi/path.ts';
import { effectOf, type Route, takesChange } from '../../../server/http/route.ts';
import type { HttpServer } from '../../../server/http/server.ts';
import type { PluginHostPorts } from '../ports.ts';

/** Where the routes are, and which permissions are dangerous. */
export type CataloguePorts = Pick<PluginHostPorts, 'isDangerous'> & {
    readonly gateway: Pick<PluginHostPorts['gateway'], 'servers'>;
};

/** One mounted route: what plugins see of it, and its declaration. */
export interface CatalogueEntry {
    readonly info: RouteInfo;
    readonly route: Route;
}

const known = new WeakMap<Route, CatalogueEntry>();

/** Everything that is mounted now. */
export function entries(ports: CataloguePorts): CatalogueEntry[] {
    return ports.gateway
        .servers()
        .flatMap((server) => server.routes.map((route) => entryOf(ports, server, route)));
}

/** The route that a plugin may try to call by this id; undefined when there is none, or none that plugins reach. */
export function findRoute(ports: CataloguePorts, plugin: string, id: string): CatalogueEntry | undefined {
    const entry = entries(ports).find(({ info }) => info.id === id);
    return entry !== undefined && isReachable(plugin, entry.info) ? entry : undefined;
}

/** A route of the plugin's own; undefined when it has none of this id. It may stand in a mandate, but the plugin cannot call it. */
export function findOwnRoute(ports: CataloguePorts, plugin: string, id: string): CatalogueEntry | undefined {
    return entries(ports).find(({ info }) => info.id === id && info.plugin === plugin);
}

/** The routes that have this method and this path, without regard to the names of its parameters. */
export function findByPath(ports: CataloguePorts, method: string, path: string): CatalogueEntry | undefined {
    const bare = (text: string): string => text.replace(/\{\w+(\*?)\}/g, '{$1}');
    return entries(ports).find(({ info }) => info.method === method && bare(info.path) === bare(path));
}

/** What is mounted now, of `caller` only what it may call, and of that what the plugin was granted. */
export function listRoutes(
    ports: CataloguePorts,
    grants: Grants,
    caller: Caller | null,
    filter: { readonly effect?: RouteInfo['effect']; readonly tool?: boolean }
): readonly RouteInfo[] {
    return entries(ports)
        .filter(
            ({ info, route }) =>
                (caller === null ||
                    (mayCall(caller, route) &&
                        coversRoute(caller, grants.plugin, info.id) &&
                        isReachable(grants.plugin, info) &&
                        grants.api(info.id, info.effect))) &&
                (filter.effect === undefined || info.effect === filter.effect) &&
                (filter.tool === undefined || info.tool === filter.tool)
        )
        .map(({ info }) => info);
}

/** Whether the plugin may call a route: all but the routes of logins and the plugin's own. */
function isReachable(plugin: string, { path, plugin: owner }: RouteInfo): boolean {
    return !path.startsWith('/api/auth/') && owner !== plugin;
}

/** Whether a mandate of this plugin is for a route; true for callers without one. */
export function coversRoute({ mandate }: Caller, plugin: string, id: string): boolean {
    return mandate?.plugin !== plugin || mandate.routes.includes(id);
}

/** Whether a caller may call a route now, by a plugin on its behalf. */
export function mayCall(caller: Caller, route: Route): boolean {
    const { access } = route;
    if (typeof access !== 'string' || route.ticketed !== undefined) {
        return typeof access !== 'string';
    }
    if (caller.kind === 'system') {
        return true;
    }
    return (
        caller.id !== null &&
        route.stepUp !== true &&
        (route.sessionOnly !== true || caller.tokenId === null) &&
        (access === 'authenticated' || caller.can(access)) &&
        (caller.role !== 'viewer' || route.ownAccount === true || effectOf(route) === 'read')
    );
}

function entryOf(
    { isDangerous }: CataloguePorts,
    { prefix }: Pick<HttpServer, 'prefix'>,
    route: Route
): CatalogueEntry {
    let entry = known.get(route);
    if (entry === undefined) {
        const plugin = /^\/api\/plugins\/([^/]+)/.exec(prefix)?.[1] ?? null;
        const { kind, access, summary, description = '', tool = true } = route;
        const isTool =
            tool &&
            kind === 'json' &&
            route.stepUp !== true &&
            route.secret !== true &&
            !route.path.startsWith('/api/auth/');
        const permission = typeof access === 'string' && access !== 'authenticated' ? access : null;
        entry = {
            route,
            info: {
                id: plugin === null ? route.id : `${plugin}.${route.id}`,
                plugin,
                kind,
                method: route.method,
                path: templateOf(fullPath(prefix, route.path)).template.replaceAll(
                    /\{(\w+)\}/g,
                    (_all, name: string) => (route.path.includes(`{${name}*}`) ? `{${name}*}` : `{${name}}`)
                ),
                summary,
                description,
                permission,
                effect: effectOf(route),
                dangerous: permission !== null && isDangerous(permission),
                tool: isTool,
                params: schema(route.validate?.params, 'text'),
                query: schema(route.validate?.query, 'text'),
                payload: schema(route.validate?.payload, 'body', !takesChange(route)),
                returns: schema(route.returns, 'answer')
            }
        };
        known.set(route, entry);
    }
    return entry;
}

function schema(
    joi: AnySchema | undefined,
    side: 'text' | 'body' | 'answer',
    defaults = true
): JsonSchema | null {
    return joi === undefined ? null : jsonSchemaOf(joi, { side, defaults });
}
