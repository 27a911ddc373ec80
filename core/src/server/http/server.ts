/**
 * The factory of every hapi server: the core's own and one for each mounted plugin. Envelope, request id, authentication, access,
 * validation, limits, headers, time-outs and the audit of refusals hold here, once, for all of them.
 */
import { randomUUID } from 'node:crypto';
import { EventEmitter, setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import type { Boom } from '@hapi/boom';
import {
    type Lifecycle,
    type Request,
    type ResponseObject,
    type ResponseToolkit,
    type Server,
    server as createHapi,
    type ServerInjectOptions,
    type ServerInjectResponse
} from '@hapi/hapi';

import { fail } from '../../platform/errors.ts';
import { challengeOf } from './answer/challenge.ts';
import { commonHeaders, failureEnvelope, failureHeaders, failureOf, jsonType } from './answer/envelope.ts';
import { answerOptions, corsHeaders } from './cors.ts';
import { type AboutServer, assertExpressible } from './openapi/document.ts';
import { fullPath } from './openapi/path.ts';
import type { HttpPorts } from './ports.ts';
import { HttpCall } from './request/http-call.ts';
import { identify, type Identity } from './request/identify.ts';
import { maskPath, secretParams } from './request/secret-path.ts';
import type { RequestState } from './request/state.ts';
import { effectOf, type Route, type RouteMethod } from './route.ts';
import { routeKinds } from './routes/kinds.ts';
import { upgrade } from './routes/socket.ts';

/** One server: the core, or a plugin. It has no port of its own; the gateway hands it requests. */
export interface HttpServer {
    /** Names the server in logs: `core`, or a plugin with its version. */
    readonly name: string;
    readonly prefix: string;
    readonly about: AboutServer | null;
    readonly routes: readonly Route[];
    handle(request: IncomingMessage, response: ServerResponse): void;
    /** A request that waits for `100 Continue`. */
    handleExpecting(request: IncomingMessage, response: ServerResponse): void;
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
    /** The route that a request for this path (no query), by default a GET, reaches; null when there is none. @throws BAD_REQUEST 40000 for a path that cannot be decoded */
    resolve(path: string, method?: RouteMethod): Route | null;
    /** Sends a request past the network, through everything else. */
    inject(options: ServerInjectOptions): Promise<ServerInjectResponse>;
    start(): Promise<void>;
    /** Ends streams and sockets with a hint to come back; plain requests finish. */
    endStreams(): void;
    /** Those that come from now on last again: the server stays after all. */
    resumeStreams(): void;
    stop(): Promise<void>;
}

/** What a server is built from. */
export interface HttpServerOptions {
    readonly name: string;
    /** For the document's tag of a plugin. */
    readonly about?: AboutServer;
    /** Path that all routes are below, such as `/api/plugins/hello`; empty for the core. */
    readonly prefix: string;
    readonly routes: readonly Route[];
    readonly ports: HttpPorts;
    /** What an unknown path below the prefix answers; default: 40400. */
    readonly unknown?: (path: string) => Error;
    /** Headers of every answer of a route (null: of no route), set last: no handler can change them. */
    readonly headers?: (route: Route | null, path: string) => Readonly<Record<string, string>>;
}

const requestId = /^[A-Za-z0-9._-]{1,64}$/;

/** Builds a server. @throws TypeError that names the route whose declaration is wrong */
export function createHttpServer(options: HttpServerOptions): HttpServer {
    const { ports, prefix } = options;
    const listener = Object.assign(new EventEmitter(), {
        close: (done?: () => void) => done?.(),
        address: () => null
    });
    const hapi = createHapi({
        listener: listener as never, // no socket: the gateway hands requests over
        autoListen: false,
        operations: { cleanStop: false },
        routes: { cache: false, response: { ranges: false }, state: { parse: false, failAction: 'ignore' } },
        compression: { minBytes: 1024 },
        // A compressor keeps events back until it has enough of them, and every browser asks for one.
        mime: { override: { 'text/event-stream': { compressible: false } } },
        router: { isCaseSensitive: true, stripTrailingSlash: false },
        debug: false
    });
    let ending = createEnding();
    authenticateWith(hapi, options, () => ending.signal);
    hapi.ext('onRequest', (request, h) => {
        const state = request.app as RequestState;
        const sent = request.raw.req.headers['x-request-id'];
        state.id = typeof sent === 'string' && requestId.test(sent) ? sent : randomUUID();
        state.ip = ports.clientAddress(
            request.info.remoteAddress,
            request.raw.req.headers['x-forwarded-for'] as string | undefined
        );
        state.call = null;
        return h.continue;
    });
    hapi.ext('onPreResponse', (request, h) => finish(request, h, ports, options.headers));
    declare(hapi, options);
    return {
        name: options.name,
        prefix,
        about: options.about ?? null,
        routes: options.routes,
        handle: (request, response) => void listener.emit('request', request, response),
        handleExpecting: (request, response) => void listener.emit('checkContinue', request, response),
        upgrade: (request, socket, head) => void upgrade({ hapi, ports, request, socket, head }),
        resolve: (path, method = 'get') => match(hapi, method, path),
        inject: (request) => hapi.inject(request),
        start: () => hapi.start(),
        endStreams: () => ending.abort(),
        resumeStreams: () => {
            ending = createEnding();
        },
        stop: () => hapi.stop({ timeout: 0 })
    };
}

/** Every stream and socket of a server listens to it. */
function createEnding(): AbortController {
    const ending = new AbortController();
    setMaxListeners(0, ending.signal);
    return ending;
}

/** What a request with this path reaches. @throws BAD_REQUEST 40000 for what is no path, which hapi takes for a mistake in the code */
function match(hapi: Server, method: RouteMethod, path: string): Route | null {
    try {
        const settings = hapi.match(method, path)?.settings;
        return (settings?.plugins as { portico?: Route } | undefined)?.portico ?? null;
    } catch (error) {
        throw fail.BAD_REQUEST(null, { message: 'The path cannot be decoded', cause: error });
    }
}

function authenticateWith(
    hapi: Server,
    { ports, prefix }: HttpServerOptions,
    ending: () => AbortSignal
): void {
    hapi.auth.scheme('portico', () => ({
        authenticate(request: Request, h: ResponseToolkit): Lifecycle.ReturnValue {
            const route = (request.route.settings.plugins as { portico: Route }).portico;
            const state = request.app as RequestState;
            const admit = ({ caller, bearer }: Identity): Lifecycle.ReturnValue => {
                state.call = new HttpCall({
                    ticket: state.ticketData ?? null,
                    id: state.id,
                    route,
                    prefix,
                    caller,
                    ip: state.ip,
                    url: request.raw.req.url ?? request.path,
                    request: request.raw.req,
                    response: request.raw.res,
                    bearer,
                    ports,
                    ending: ending(),
                    isRehearsal: state.rehearsal !== undefined
                });
                if (typeof route.access === 'string') {
                    ports.authenticator.admit(caller, route);
                }
                state.admitted = true;
                return h.authenticated({ credentials: {} });
            };
            const identity = identify(request, route, ports);
            return identity instanceof Promise ? identity.then(admit) : admit(identity);
        }
    }));
    hapi.auth.strategy('portico', 'portico');
}

function declare(hapi: Server, options: HttpServerOptions): void {
    const ids = new Map<string, Route>();
    for (const route of options.routes) {
        check(route, ids);
        // The core's own are proven by the tests of its document; to describe them takes longer than all else that is done with them at the start.
        if (options.prefix !== '') {
            assertExpressible(route);
        }
        ids.set(route.id, route);
        // hapi hands HEAD to the route of GET: where only HEAD is declared, the raw route refuses a GET.
        const methods =
            route.kind === 'http'
                ? new Set(route.methods.map((method) => (method === 'HEAD' ? 'GET' : method)))
                : new Set([route.method]);
        [...methods].forEach((method, index) =>
            hapi.route({
                method,
                path: fullPath(options.prefix, route.path),
                options: {
                    auth: 'portico',
                    plugins: { portico: route } as never, // hapi's type knows no names here
                    id: index === 0 ? route.id : `${route.id}.${method}`,
                    ...routeKinds[route.kind](
                        route as never /* the row of its own kind */,
                        options.ports,
                        method
                    )
                }
            })
        );
    }
    answerOptions(hapi, options);
    hapi.route({
        method: '*',
        path: `${options.prefix}/{any*}`,
        options: {
            auth: false,
            payload: { parse: false, output: 'stream', maxBytes: Number.MAX_SAFE_INTEGER },
            handler: (request) => {
                throw options.unknown?.(request.path) ?? fail.NOT_FOUND();
            }
        }
    });
}

/** The id in the path, for the record of a refused call. A public path may hold a secret in place of an id. */
function targetOf(route: Route, params: Readonly<Record<string, string>>): string | null {
    const name = /\{([a-zA-Z]+)/.exec(route.path)?.[1];
    return name === undefined || typeof route.access !== 'string' || secretParams(route).includes(name)
        ? null
        : (params[name] ?? null);
}

/** A mistake in a declaration ends the start and names the route; requests never get to see it. */
function check(route: Route, ids: ReadonlyMap<string, Route>): void {
    const name = `${route.method} ${route.path} (${route.id})`;
    const access: unknown = route.access;
    if (
        typeof access !== 'string' &&
        (typeof access !== 'object' ||
            access === null ||
            typeof (access as { public?: unknown }).public !== 'string' ||
            (access as { public: string }).public.length < 10)
    ) {
        throw new TypeError(
            `Route ${name} declares no access: a permission, 'authenticated', or { public: 'the reason' }`
        );
    }
    if (
        typeof access === 'string' &&
        access !== 'authenticated' &&
        !/^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/.test(access)
    ) {
        throw new TypeError(
            `Route ${name} names the permission ${JSON.stringify(access)}, which is not of the form area:verb`
        );
    }
    if (!/^[a-zA-Z][\w.-]*$/.test(route.id) || ids.has(route.id)) {
        throw new TypeError(`Route ${name} needs an id of its own`);
    }
    if (route.method === 'GET' && effectOf(route) !== 'read') {
        throw new TypeError(`Route ${name} changes something, which a GET must not`);
    }
}

function finish(
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts,
    headersOf: HttpServerOptions['headers']
): Lifecycle.ReturnValue {
    const { response } = request;
    const common = {
        ...commonHeaders,
        'x-request-id': (request.app as RequestState).id,
        ...corsHeaders(request, ports)
    };
    if ('isBoom' in response) {
        return finishFailure(request, h, ports, {
            ...common,
            ...headersOf?.(routeOf(request), request.path)
        });
    }
    const answer = response as ResponseObject & { headers: object };
    answer.headers = { ...common, ...answer.headers, ...headersOf?.(routeOf(request), request.path) };
    return h.continue;
}

async function finishFailure(
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts,
    headers: Readonly<Record<string, string>>
): Promise<Lifecycle.ReturnValue> {
    const response = request.response as Boom;
    const state = request.app as RequestState;
    const failure = isBodyLate(request, response.output.statusCode)
        ? fail.REQUEST_TIMEOUT(null, { message: 'The body did not arrive in time' })
        : failureOf(response);
    if (failure.reason === 'INTERNAL') {
        ports.log.error('A request failed', {
            requestId: state.id,
            method: request.method,
            path: pathOf(request),
            error: response
        });
    }
    const answer = h
        .response(failureEnvelope(failure))
        .code(Math.floor(failure.code / 100))
        .type(jsonType);
    Object.assign(answer.headers, headers, failureHeaders(failure), challengeOf(request, failure, ports));
    await recordFailure(request, failure.code, ports);
    return answer;
}

/** The limit of the route runs while the body is read, and may be over before the body's own. */
function isBodyLate({ payload, raw }: Request, status: number): boolean {
    return status === 503 && payload === undefined && !raw.req.complete;
}

function routeOf(request: Request): Route | null {
    return (request.route.settings.plugins as { portico?: Route } | undefined)?.portico ?? null;
}

/** The path for the log, without the secrets in it. */
function pathOf(request: Request): string {
    const route = routeOf(request);
    return route === null ? request.path : maskPath(route, request.route.path, request.path);
}

/** A refusal is on record whatever the route does; other failures where the route would have changed something. */
async function recordFailure(request: Request, code: number, ports: HttpPorts): Promise<void> {
    const route = routeOf(request) ?? undefined;
    const state = request.app as RequestState;
    const status = Math.floor(code / 100);
    const refused = status === 401 || status === 403 || status === 429;
    if (
        route === undefined ||
        state.rehearsal !== undefined ||
        (route.audit === false && state.admitted === true) ||
        (!refused && effectOf(route) === 'read')
    ) {
        return;
    }
    const call =
        state.call ??
        new HttpCall({
            ticket: null,
            id: state.id,
            route,
            caller: ports.authenticator.anonymous,
            ip: state.ip,
            url: request.raw.req.url ?? request.path,
            request: request.raw.req,
            response: request.raw.res,
            bearer: null,
            ports,
            ending: AbortSignal.abort()
        });
    try {
        const entry = call.entry(status, code);
        await ports.recorder.refused({
            ...entry,
            resourceId: entry.resourceId ?? targetOf(route, request.params as Record<string, string>)
        });
    } catch (error) {
        ports.log.error('A refusal could not be put on record', { requestId: state.id, error });
    }
}
