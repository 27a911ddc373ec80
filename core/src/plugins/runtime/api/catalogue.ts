/** The catalogue of mounted routes, and calls of them through the gateway on behalf of a plugin's caller. */
import type { ServerInjectResponse } from '@hapi/hapi';
import {
    type AnySchema,
    type ApiAnswer,
    type ApiCall,
    isFailure,
    type JsonSchema,
    type RouteInfo
} from '@portico/sdk';
import type { Grants } from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import { jsonSchemaOf } from '../../../server/http/json-schema/json-schema.ts';
import { fullPath, templateOf } from '../../../server/http/openapi/path.ts';
import { effectOf, type Route } from '../../../server/http/route.ts';
import type { HttpServer } from '../../../server/http/server.ts';
import type { PluginGateway } from '../ports.ts';
import { type Held, onBehalf } from './handles.ts';

interface Entry {
    readonly info: RouteInfo;
    readonly route: Route;
}

const deepest = 4;
const known = new WeakMap<Route, Entry>();

/** Everything that is mounted now. */
function entries(gateway: Pick<PluginGateway, 'servers'>): Entry[] {
    return gateway.servers().flatMap((server) => server.routes.map((route) => entryOf(server, route)));
}

/** What is mounted now, of `caller` only what it may call, and of that what the plugin was granted. */
export function listRoutes(
    gateway: Pick<PluginGateway, 'servers'>,
    grants: Grants,
    caller: Caller | null,
    filter: { readonly effect?: RouteInfo['effect']; readonly tool?: boolean }
): readonly RouteInfo[] {
    return entries(gateway)
        .filter(
            ({ info, route }) =>
                (caller === null ||
                    (mayCall(caller, route) &&
                        isReachable(grants.plugin, info) &&
                        grants.api(info.id, info.effect))) &&
                (filter.effect === undefined || info.effect === filter.effect) &&
                (filter.tool === undefined || info.tool === filter.tool)
        )
        .map(({ info }) => info);
}

/** Calls a route as the asker of a plugin. What the route answers, failures included, is the answer. */
export async function callRoute(
    gateway: PluginGateway,
    grants: Grants,
    held: Held,
    caller: Caller,
    call: Omit<ApiCall, 'signal'>,
    signal: AbortSignal | null
): Promise<ApiAnswer> {
    const entry = entries(gateway).find(({ info }) => info.id === call.id);
    if (entry === undefined || !isReachable(grants.plugin, entry.info) || entry.info.kind !== 'json') {
        return refusal(40400, 'NOT_FOUND', `There is no route ${call.id} that a plugin may call`);
    }
    if (!grants.api(entry.info.id, entry.info.effect)) {
        grants.missing(`api: ${entry.info.id}`);
        return refusal(
            40300,
            'FORBIDDEN',
            `The plugin ${grants.plugin} lacks the capability api for ${entry.info.id}`,
            { permission: `api:${entry.info.id}` }
        );
    }
    if (held.depth >= deepest) {
        return refusal(40300, 'FORBIDDEN', `Calls of plugins are nested more than ${deepest} deep`);
    }
    const via = onBehalf(caller, grants.plugin, held.depth);
    const url = urlOf(entry.info.path, call.params ?? {}, call.query ?? {});
    if (url === null) {
        return refusal(40400, 'NOT_FOUND', `The route ${call.id} needs more parameters`);
    }
    const sending = gateway.inject({
        method: entry.info.method,
        url,
        remoteAddress: held.ip ?? '127.0.0.1',
        headers: {
            host: 'panel.invalid',
            'user-agent': `plugin ${grants.plugin}`,
            ...(call.payload === undefined ? {} : { 'content-type': 'application/json' }),
            ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
            ...(call.ifMatch === undefined
                ? {}
                : { 'if-match': /^"|^\*$|^W\//.test(call.ifMatch) ? call.ifMatch : `"${call.ifMatch}"` })
        },
        ...(call.payload === undefined ? {} : { payload: JSON.stringify(call.payload) }),
        app: { caller: via } as never // hapi types `app` by a global interface
    });
    let answer: ServerInjectResponse;
    try {
        answer = await cancellable(sending, signal);
    } catch (error) {
        if (isFailure(error)) {
            return refusal(error.code, error.reason, error.message, error.data ?? {}); // it is being swapped, and that takes too long
        }
        throw error;
    }
    const { statusCode, payload } = answer;
    const {
        code = 0,
        message = '',
        data = null
    } = (payload === '' ? {} : JSON.parse(payload)) as Partial<ApiAnswer>;
    return { status: statusCode, code, message, data };
}

/** The route's own work goes on: only the waiting ends. */
async function cancellable<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
    if (signal === null) {
        return work;
    }
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    try {
        return await Promise.race([work, promise]);
    } finally {
        signal.removeEventListener('abort', abort);
    }
}

/** Neither how one gets in, nor the plugin's own routes. */
function isReachable(plugin: string, { path, plugin: owner }: RouteInfo): boolean {
    return !path.startsWith('/api/auth/') && owner !== plugin;
}

function mayCall(caller: Caller, route: Route): boolean {
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

function entryOf({ prefix }: Pick<HttpServer, 'prefix'>, route: Route): Entry {
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
                permission: typeof access === 'string' && access !== 'authenticated' ? access : null,
                effect: effectOf(route),
                tool: isTool,
                params: schema(route.validate?.params, 'text'),
                query: schema(route.validate?.query, 'text'),
                payload: schema(route.validate?.payload, 'body', route.method !== 'PUT'),
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

/** Null when a parameter is missing. */
function urlOf(path: string, params: object, query: object): string | null {
    let complete = true;
    const filled = path.replace(/\{(\w+)(\*?)\}/g, (_all, name: string, multi: string) => {
        const value = (params as Readonly<Record<string, unknown>>)[name];
        if (
            value === undefined ||
            value === null ||
            String(value) === '' ||
            /^\.{1,2}$/.test(String(value))
        ) {
            complete &&= multi === '*' && value !== undefined;
            return '';
        }
        if (
            multi === '*' &&
            String(value)
                .split('/')
                .some((segment) => /^\.{1,2}$/.test(segment))
        ) {
            complete = false; // it would lead to another route than the one that is named
        }
        return multi === '*'
            ? String(value).split('/').map(encodeURIComponent).join('/')
            : encodeURIComponent(String(value));
    });
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        (Array.isArray(value) ? value : [value])
            .filter((each) => each !== undefined && each !== null)
            .forEach((each) => search.append(name, String(each)));
    }
    return complete ? `${filled}${search.size === 0 ? '' : `?${search}`}` : null;
}

function refusal(code: number, reason: string, message: string, more: object = {}): ApiAnswer {
    return { status: Math.floor(code / 100), code, message, data: { reason, ...more } };
}
