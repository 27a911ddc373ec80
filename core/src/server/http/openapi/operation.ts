/** One route as OpenAPI's operations: one, or one for each method of a raw route. */
import type { JsonSchema } from '../json-schema/description.ts';
import { effectOf, isProtectedResource, type Route } from '../route.ts';
import { type AnswerContext, responsesOf } from './answer.ts';
import { reasonsOf } from './failures.ts';
import { bodyOf, parametersOf } from './input.ts';
import { fullPath } from './path.ts';

/** An operation of an OpenAPI document. */
export interface Operation {
    readonly operationId: string;
    readonly tags: readonly string[];
    readonly summary: string;
    readonly description?: string;
    readonly deprecated?: true;
    readonly parameters: readonly JsonSchema[];
    readonly requestBody?: JsonSchema;
    readonly responses: Readonly<Record<string, JsonSchema>>;
    readonly security: readonly JsonSchema[];
    /** The route's kind: json, stream, upload, download, socket or http. */
    readonly 'x-door': Route['kind'];
    readonly 'x-effect': 'read' | 'write' | 'destructive';
    /** A permission or `authenticated`; absent on public routes. */
    readonly 'x-permission'?: string;
    /** Why the route is public. */
    readonly 'x-public'?: string;
    readonly 'x-step-up'?: true;
    readonly 'x-session-only'?: true;
    /** Touches the caller's own account only, so the viewer may too. */
    readonly 'x-own-account'?: true;
    readonly 'x-raw'?: string;
    readonly 'x-websocket'?: JsonSchema;
    readonly 'x-deprecated'?: JsonSchema;
    readonly 'x-ui'?: JsonSchema;
    /** What its entries in the audit log are called, where the route says it. */
    readonly 'x-audit'?: JsonSchema;
}

/** What an operation is made from. */
export interface OperationInput {
    readonly route: Route;
    readonly server: { readonly prefix: string; readonly routes: readonly Route[] };
    readonly name: (schema: JsonSchema, preferred: readonly string[]) => JsonSchema;
    readonly share: AnswerContext['share'];
}

/** The operations of a route with their methods in lower case. @throws TypeError that says what cannot be expressed */
export function operationOf({ route, server, name, share }: OperationInput): [string, Operation][] {
    const path = fullPath(server.prefix, route.path);
    const plugin = /^\/api\/plugins\/([^/]+)/.exec(server.prefix)?.[1] ?? null;
    const id = plugin === null ? route.id : `${plugin}.${route.id}`;
    const { access } = route;
    const describes: Omit<Operation, 'operationId' | 'requestBody'> = {
        tags: [plugin ?? groupOf(path)],
        summary: route.summary,
        ...(route.description === undefined ? {} : { description: route.description }),
        ...(route.deprecated === undefined
            ? {}
            : { deprecated: true, 'x-deprecated': { ...route.deprecated } }),
        parameters: parametersOf(route, path),
        responses: responsesOf(route, {
            name: (schema, isItem) =>
                name(schema, [
                    ...(isItem || /\}$/.test(path) ? [singular(id)] : []),
                    `${pascal(id)}${isItem ? 'Item' : 'Data'}`
                ]),
            nameEvent: (schema, event) => name(schema, [`${pascal(id)}${pascal(event ?? '')}Event`]),
            statuses: statusesOf(route, server.routes, plugin !== null),
            reasons: reasonsOf(route, path, plugin !== null),
            isPlugin: plugin !== null,
            share
        }),
        security:
            typeof access !== 'string'
                ? []
                : [
                      { bearer: access === 'authenticated' ? [] : [access] },
                      ...(isProtectedResource(route)
                          ? [{ oauth: access === 'authenticated' ? [] : [access] }]
                          : []),
                      ...(route.method === 'GET' || route.kind === 'http' ? [{ ticket: [] }] : [])
                  ],
        ...(typeof access === 'string' ? { 'x-permission': access } : { 'x-public': access.public }),
        'x-effect': effectOf(route),
        'x-door': route.kind,
        ...(route.ui === undefined ? {} : { 'x-ui': { ...route.ui } }),
        ...(typeof route.audit === 'object' ? { 'x-audit': { ...route.audit } } : {}),
        ...(route.stepUp === true ? { 'x-step-up': true } : {}),
        ...(route.sessionOnly === true ? { 'x-session-only': true } : {}),
        ...(route.ownAccount === true ? { 'x-own-account': true } : {}),
        ...(route.kind === 'http' ? { 'x-raw': route.raw } : {}),
        ...(route.kind === 'socket'
            ? { 'x-websocket': { protocols: route.protocols, maxMessageBytes: route.maxMessageBytes } }
            : {})
    };
    const requestBody = bodyOf(route);
    const methods =
        route.kind === 'http' ? route.methods.filter((method) => method !== 'HEAD') : [route.method];
    return methods.map((method, index) => [
        method.toLowerCase(),
        {
            operationId: index === 0 ? id : `${id}.${method}`,
            ...describes,
            ...(method === 'GET' || requestBody === undefined ? {} : { requestBody }),
            ...(method === 'GET'
                ? {}
                : { security: describes.security.filter((scheme) => !('ticket' in scheme)) })
        }
    ]);
}

/** A POST to a collection, which is a path with single objects below it, makes one. The rest says it, or is done at once; a plugin has no word for it, and may do either. */
function statusesOf(route: Route, routes: readonly Route[], isPlugin: boolean): readonly number[] {
    if (route.answers !== undefined) {
        return route.answers;
    }
    if (isPlugin && route.method !== 'GET') {
        return route.method === 'POST' ? [200, 201, 202] : [200, 202];
    }
    const isCollection =
        route.method === 'POST' &&
        routes.some(
            (other) =>
                other.path.startsWith(`${route.path}/{`) &&
                !other.path.slice(route.path.length + 1).includes('/')
        );
    return isCollection ? [201] : [200];
}

/** `/api/dns-providers/{id}` → `dns-providers`. */
function groupOf(path: string): string {
    return /^\/api\/([a-z0-9-]+)/.exec(path)?.[1] ?? 'panel';
}

function pascal(id: string): string {
    return id
        .split(/[^A-Za-z0-9]+/)
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join('');
}

/** `hosts.list` → `Host`. */
function singular(id: string): string {
    const owner = id.split('.').slice(0, -1).join('.') || id;
    return pascal(owner).replace(/ies$/, 'y').replace(/s$/, '');
}
