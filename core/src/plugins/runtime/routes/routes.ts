/** A generation's document as routes of the panel: identity, access, limits and record are the panel's, all else happens in the plugin's realm. */
import type { AnySchema, AuditDetail, Bytes, Download, Socket, StreamEvent } from '@portico/sdk';
import {
    allowedHeaders,
    Asked,
    type Asker,
    type Guest,
    type JsonAnswer,
    type PlainRequest,
    type RouteDocument,
    type SchemaDescription
} from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import type { Database } from '../../../platform/database/database.ts';
import { type Serialised, serialised } from '../../../server/http/answer/serialised.ts';
import type { HttpCall } from '../../../server/http/request/http-call.ts';
import { effectOf, type Route, type RouteRequest } from '../../../server/http/route.ts';
import type { Handles } from '../api/handles.ts';
import type { Journal } from '../records/journal.ts';

/** What routes need of their generation. */
export interface RouteHost {
    readonly plugin: string;
    readonly guest: Guest;
    readonly handles: Handles;
    readonly journal: Journal;
    readonly db: Database;
    /** The permissions that the manifest declares, `read` and `write` included. */
    readonly permissions: ReadonlySet<string>;
    /** Reasons of public routes that are granted. */
    isPublic(reason: string): boolean;
    /** A change is about to be made. */
    accept(): Promise<void>;
    takeTicket(
        ticket: string,
        permission: string
    ): Promise<{ readonly caller: Caller; readonly data: unknown }>;
}

type Extra = { readonly body: Bytes; readonly type: string; readonly length: number | null };

/** @throws TypeError that names the route whose access the manifest does not allow */
export function routesOf(documents: readonly RouteDocument[], host: RouteHost): Route[] {
    return documents.map((document) => routeOf(document, host));
}

function routeOf(document: RouteDocument, host: RouteHost): Route {
    const { kind, id, path, summary, methods, schemas, tool, access: _access, ...options } = document;
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
    const route = { ...common } as unknown as Record<string, unknown>;
    const handlers = handlersOf(id, host, () => route as unknown as Route);
    route['handler'] = handlers[kind];
    if (kind === 'json' && methods[0] === 'POST') {
        route['prepare'] = handlers.prepare;
    }
    return route as unknown as Route;
}

/** The plugin's word for a permission becomes the panel's. */
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

/** Stands for a schema that lives in the plugin's realm: it can be described, and what it would say is said there. */
function schemaOf(description: SchemaDescription): AnySchema {
    const schema = {
        describe: () => description,
        validate: (value: unknown) => ({ value }),
        prefs: () => schema
    };
    return schema as unknown as AnySchema;
}

function remote(place: 'params' | 'query' | 'payload', schemas: RouteDocument['schemas']): object {
    const description = schemas[place];
    return description === undefined ? {} : { [place]: schemaOf(description) };
}

/** The panel's request as plain data; what is seldom needed is made when it is read. */
function plainOf(call: HttpCall, asker: Asker, extra: Partial<Extra> = {}): PlainRequest {
    return {
        ...asker,
        id: call.id,
        params: call.params,
        query: call.query,
        payload: call.payload,
        ip: call.ip,
        ifMatch: call.ifMatch,
        idempotencyKey: call.idempotencyKey,
        ticket: call.ticket,
        get headers() {
            return call.headers;
        },
        get lastEventId() {
            return call.lastEventId;
        },
        ...(extra.type === undefined ? {} : { type: extra.type, length: extra.length ?? null })
    };
}

function handlersOf(id: string, host: RouteHost, route: () => Route) {
    const { guest, handles } = host;

    /** Runs something for as long as a request lasts; afterwards its actor is nobody. */
    const begin = (request: RouteRequest): { readonly call: HttpCall; readonly asker: Asker } => {
        const call = request as HttpCall;
        return {
            call,
            asker: handles.begin({
                caller: call.actor,
                ip: call.ip,
                requestId: call.id,
                audit: (detail: AuditDetail) => call.audit(detail)
            })
        };
    };
    const asked = (
        call: HttpCall,
        asker: Asker,
        extra?: Partial<Extra>
    ): { route: string; request: PlainRequest; signal: AbortSignal } => ({
        route: id,
        request: plainOf(call, asker, extra),
        get signal() {
            return call.signal;
        }
    });
    /** A mutating handler between its journal row and its entry. */
    const journalled = async <T>(
        call: HttpCall,
        run: () => Promise<T>,
        reply: (answer: T) => unknown,
        status: (answer: T) => number
    ): Promise<T> => {
        if (effectOf(route()) === 'read') {
            return run();
        }
        await host.accept();
        const row = await host.journal.begin(call.entry(0, 0));
        let answer: T;
        try {
            answer = await run();
        } catch (error) {
            await host.journal.drop(row);
            throw error;
        }
        if (status(answer) >= 400) {
            await host.journal.drop(row);
            return answer;
        }
        await host.db.write(async (tx) => {
            await call.complete(tx, { reply: reply(answer) });
            await host.journal.end(tx, row);
        });
        return answer;
    };
    const json = async (
        request: RouteRequest,
        run: (call: HttpCall, asker: Asker) => ReturnType<Guest['json']>
    ): Promise<Serialised> => {
        const { call, asker } = begin(request);
        try {
            return await journalled(
                call,
                async () => answered(id, await run(call, asker)),
                (done) => done,
                ({ status }) => status
            );
        } finally {
            handles.end(asker.handle);
        }
    };

    return {
        prepare: async (request: RouteRequest) => {
            const { call, asker } = begin(request);
            try {
                await guest.check({ route: id, request: plainOf(call, asker) });
            } finally {
                handles.end(asker.handle);
            }
        },
        json: async (request: RouteRequest): Promise<Serialised> => {
            if (effectOf(route()) !== 'read') {
                return json(request, (call, asker) => guest.json(asked(call, asker)));
            }
            const { call, asker } = begin(request);
            try {
                return answered(id, await guest.json(new Asked(id, asker, call)));
            } finally {
                handles.end(asker.handle);
            }
        },
        upload: (request: RouteRequest & Extra) =>
            json(request, (call, asker) =>
                guest.upload(Object.assign(asked(call, asker, request), { body: request.body }))
            ),
        stream: async (request: RouteRequest): Promise<AsyncIterable<StreamEvent>> => {
            const { call, asker } = begin(request);
            const end = (): void => handles.end(asker.handle);
            call.signal.addEventListener('abort', end, { once: true });
            return lasting(end, (await guest.stream(asked(call, asker))).events);
        },
        download: async (request: RouteRequest): Promise<Download> => {
            const { call, asker } = begin(request);
            call.signal.addEventListener('abort', () => handles.end(asker.handle), { once: true });
            const { open, close, ...file } = await guest.download(asked(call, asker));
            return { ...file, open: (range) => opened(open(range)), close };
        },
        http: async (request: globalThis.Request, caller: RouteRequest): Promise<globalThis.Response> => {
            const { call, asker } = begin(caller);
            call.signal.addEventListener('abort', () => handles.end(asker.handle), { once: true });
            const send = async (): Promise<Awaited<ReturnType<Guest['http']>>> =>
                guest.http({
                    ...asked(call, asker),
                    method: request.method,
                    url: request.url,
                    body: request.body
                });
            const answer =
                request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS'
                    ? await send()
                    : await journalled(
                          call,
                          send,
                          ({ status }) => ({
                              '~portico': 'reply',
                              status,
                              message: 'ok',
                              headers: {},
                              data: null
                          }),
                          ({ status }) => status
                      );
            return new Response(answer.status === 204 || answer.status === 304 ? null : answer.body, {
                status: answer.status,
                headers: allowedHeaders(Object.fromEntries(answer.headers))
            });
        },
        socket: async (socket: Socket, request: RouteRequest): Promise<void> => {
            const { call, asker } = begin(request);
            try {
                await guest.socket({
                    ...asked(call, asker),
                    messages: socket,
                    send: ({ data }) => socket.send(data),
                    close: ({ code, reason }) => socket.close(code, reason)
                });
            } finally {
                handles.end(asker.handle);
            }
        }
    };
}

function answered(id: string, { status, message, headers, json }: JsonAnswer): Serialised {
    if (!isEnvelopeStatus(status)) {
        throw new Error(`Route ${id} answered with the status ${status}`);
    }
    return serialised({ status, message, headers: allowedHeaders(headers), json });
}

async function* opened(
    opening: Promise<{ readonly body: AsyncIterable<Uint8Array> }>
): AsyncGenerator<Uint8Array> {
    yield* (await opening).body;
}

/** A series during which something is held: it is let go of when the reader leaves, however that happens. */
async function* lasting<T>(end: () => void, events: AsyncIterable<T>): AsyncGenerator<T> {
    try {
        yield* events;
    } finally {
        end();
    }
}

/** One that has a body, which the envelope needs. */
function isEnvelopeStatus(status: number): boolean {
    return (
        Number.isInteger(status) &&
        status >= 200 &&
        status <= 599 &&
        status !== 204 &&
        status !== 205 &&
        status !== 304
    );
}
