/** Makes the panel's routes from a generation's document. The panel decides about identity, access, limits and audit; the plugin's code does the rest. */
import type { AnySchema } from '@portico/sdk';
import type { RouteDocument, SchemaDescription } from '@portico/sdk/host';

import { effectOf, type Route } from '../../../server/http/route.ts';
import { RouteHandlers, type RouteHost } from './handlers.ts';

export type { RouteHost } from './handlers.ts';

/** Makes the routes of a generation. @throws TypeError that names the route whose access the manifest does not allow */
export function routesOf(documents: readonly RouteDocument[], host: RouteHost): Route[] {
    return documents.map((document) => routeOf(document, host));
}

const statusOfSuccess = { done: 200, made: 201, task: 202 } as const;

function routeOf(document: RouteDocument, host: RouteHost): Route {
    const {
        kind,
        id,
        path,
        summary,
        methods,
        schemas,
        tool,
        access: _access,
        answers,
        events,
        ...options
    } = document;
    const read =
        document.effect === 'read' ||
        (document.effect === undefined && ['stream', 'socket', 'download'].includes(kind));
    const common = {
        ...options,
        kind,
        id,
        path,
        summary,
        tool: tool && document.secret !== true && document.stepUp !== true,
        ...accessOf(document, host),
        method: kind === 'http' ? '*' : methods[0],
        methods,
        validate: {
            ...remote('params', schemas),
            ...remote('query', schemas),
            ...remote('payload', schemas)
        },
        ...(schemas.returns === undefined ? {} : { returns: schemaOf(schemas.returns) }),
        ...(answers === undefined ? {} : { answers: [answers].flat().map((each) => statusOfSuccess[each]) }),
        ...(events === undefined
            ? {}
            : {
                  events: Object.fromEntries(
                      Object.entries(events).map(([name, description]) => [name, schemaOf(description)])
                  )
              }),
        ...(kind === 'http'
            ? {
                  effect:
                      document.effect ??
                      (methods.every((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method))
                          ? 'read'
                          : 'write')
              }
            : read
              ? { effect: 'read' }
              : {}),
        ...(kind === 'socket'
            ? {
                  protocols: document.protocols ?? [],
                  maxMessageBytes: document.maxMessageBytes ?? 1024 * 1024
              }
            : {})
    };
    // The document was checked when it was read; its kind decides which fields it has.
    const route = { ...common } as unknown as Record<string, unknown> & Route;
    const handlers = new RouteHandlers(id, host, () => effectOf(route) === 'read', document.stepUp === true);
    // A handler of this kind takes what a route of this kind gives.
    return Object.assign(route, {
        handler: handlers[kind].bind(handlers),
        ...(kind === 'json' && methods[0] !== 'GET' ? { prepare: handlers.prepare.bind(handlers) } : {})
    }) as unknown as Route; // the union of handlers is not narrowed by the kind
}

/** Turns the plugin's name of a permission into the panel's. */
function accessOf({ access, id }: RouteDocument, host: RouteHost): Pick<Route, 'access' | 'ticketed'> {
    const named = (permission: string): string => {
        if (!host.permissions.has(permission)) {
            throw new TypeError(
                `Route ${id} asks for the permission ${permission}, which the manifest of ${host.plugin} does not declare`
            );
        }
        return `${host.plugin}:${permission}`;
    };
    if (typeof access === 'string') {
        return { access: access === 'authenticated' ? access : named(access) };
    }
    if ('ticket' in access) {
        return {
            access: named(access.permission),
            ticketed: {
                param: access.ticket,
                take: (ticket) => host.takeTicket(ticket, `${host.plugin}:${access.permission}`)
            }
        };
    }
    if (!host.isPublic(access.public)) {
        throw new TypeError(
            `Route ${id} is public because "${access.public}", which is not among the granted reasons of the manifest (capabilities.public)`
        );
    }
    return { access };
}

/** Stands for a schema that lives beside the plugin's code. It can be described here; the plugin's side validates. */
export function schemaOf(description: SchemaDescription): AnySchema {
    const schema = {
        describe: () => description,
        validate: (value: unknown) => ({ value }),
        prefs: () => schema
    };
    return schema as unknown as AnySchema; // only these three members are ever used
}

function remote(place: 'params' | 'query' | 'payload', schemas: RouteDocument['schemas']): object {
    const description = schemas[place];
    return description === undefined ? {} : { [place]: schemaOf(description) };
}
