/** Declares the routes of the core: one function for each kind of route, with what only the core may ask for. */
import type {
    AnySchema,
    Awaitable,
    Bytes,
    Described,
    Download,
    DownloadRoute,
    Effect,
    EventSchemas,
    HttpRoute,
    JsonRoute,
    Reply,
    Request,
    Socket,
    SocketRoute,
    StreamEvent,
    StreamRoute,
    UploadRoute,
    Value
} from '@portico/sdk';

import type { Call, Caller } from '../../platform/call.ts';
import type { Reason } from '../../platform/errors.ts';
import type { Prepared } from './answer/prepared.ts';

/** What a handler of the core gets beside the SDK's request. The two together are also the call that services take. */
export type CoreRequest = Call & {
    /** The bearer token as it was sent; only login and refresh look at it. */
    readonly bearer: string | null;
};

/** A request whose input was checked, but whose input types are not known: what the server hands to a handler. */
export type RouteRequest = Request & CoreRequest;

/** What the request of an upload has beside its address. */
export interface UploadBody {
    readonly body: Bytes;
    /** The media type, without parameters, in lower case. */
    readonly type: string;
    /** `Content-Length` in bytes; null when the client did not say. */
    readonly length: number | null;
}

/** What only the core's own routes declare. */
export interface CoreOnly {
    /** Answers also while the account must change its password (`password`), or must set up a second factor (`totp`), before anything else. */
    readonly whileLocked?: readonly ('password' | 'totp')[];
    /** API tokens are refused (40300). */
    readonly sessionOnly?: boolean;
    /** Touches nothing but the caller's own account: open to the viewer, who otherwise only reads. */
    readonly ownAccount?: boolean;
    /** Failures beyond those that every route of its kind can have; for the documentation. */
    readonly fails?: readonly Reason[];
    /** Statuses of success, for the documentation. Default: 201 for a POST to a collection (a path with `/{id}` below it), 200 for all else. */
    readonly answers?: readonly (200 | 201 | 202)[];
    /** A JSON route that also takes a body of one of these types: the handler gets its bytes as payload. */
    readonly bytes?: { readonly types: readonly string[]; readonly maxBytes: number };
    /** The body of this POST is a change, as the body of a PUT is: defaults are not filled in. */
    readonly isChange?: true;
    /** Whether assistants may be offered it; default true. */
    readonly tool?: boolean;
    /** The caller comes from a ticket in the path parameter `param`; no other credential is accepted. */
    readonly ticketed?: {
        readonly param: string;
        take(ticket: string): Promise<{ readonly caller: Caller; readonly data: unknown }>;
    };
    /**
     * The route can be rehearsed: all that its handler changes is in the transaction that it completes, and nothing leaves the panel before.
     * The handler then runs with a call whose `complete` rolls back.
     */
    readonly rehearses?: boolean;
    /** Checks the input where the host cannot, before an Idempotency-Key is claimed. @throws VALIDATION_FAILED */
    prepare?(request: RouteRequest): Promise<void>;
}

type Any = AnySchema | undefined;

/** A declared route of any kind, on its way to a server. */
export type Route = Described &
    CoreOnly &
    Partial<
        Pick<
            JsonRoute<Any, Any, Any, Any, CoreRequest>,
            'effect' | 'timeoutSeconds' | 'maxBytes' | 'audit' | 'secret' | 'returns' | 'validate'
        >
    > &
    (
        | {
              readonly kind: 'json';
              readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
              handler(request: RouteRequest): unknown;
          }
        | {
              readonly kind: 'stream';
              readonly method: 'GET' | 'POST';
              readonly events?: EventSchemas;
              handler(
                  request: RouteRequest & { readonly lastEventId: string | null }
              ): Awaitable<AsyncIterable<StreamEvent>>;
          }
        | {
              readonly kind: 'upload';
              readonly method: 'POST' | 'PUT';
              readonly accepts: readonly string[];
              readonly maxBytes: number;
              handler(request: RouteRequest & UploadBody): unknown;
          }
        | {
              readonly kind: 'download';
              readonly method: 'GET';
              handler(request: RouteRequest): Awaitable<Download>;
          }
        | {
              readonly kind: 'socket';
              readonly method: 'GET';
              readonly protocols: readonly string[];
              readonly maxMessageBytes: number;
              handler(socket: Socket, request: RouteRequest): Promise<void>;
          }
        | {
              readonly kind: 'http';
              readonly methods: HttpRoute<unknown, unknown, unknown>['methods'];
              readonly method: '*';
              readonly raw: string;
              readonly maxBytes: number;
              readonly oauth?: true;
              handler(
                  request: globalThis.Request,
                  call: Omit<RouteRequest, 'payload' | 'headers'>
              ): Awaitable<globalThis.Response>;
          }
    );

/** What a handler may answer so that its JSON is a `T`: a date becomes an ISO 8601 string, arrays and objects may be read-only. */
export type Answer<T> = unknown extends T
    ? unknown
    : T extends string
      ? T | (string extends T ? Date : never)
      : T extends readonly (infer Item)[]
        ? readonly Answer<Item>[]
        : T extends object
          ? { readonly [K in keyof T]: Answer<T[K]> }
          : T;

type AnswerOf<R> = R extends AnySchema ? Answer<Value<R>> : unknown;

type CoreJsonRoute<P, Q, B, R> = Omit<JsonRoute<P, Q, B, R, CoreRequest>, 'handler'> &
    CoreOnly & {
        handler(
            request: Parameters<JsonRoute<P, Q, B, R, CoreRequest>['handler']>[0]
        ): Awaitable<AnswerOf<R> | Reply<AnswerOf<R>> | Prepared>;
    };

/** Declares a JSON route; the types of its input and answer follow from its schemas. */
export function json<
    P extends Any = undefined,
    Q extends Any = undefined,
    B extends Any = undefined,
    R extends Any = undefined
>(route: CoreJsonRoute<P, Q, B, R>): Route {
    return { ...route, kind: 'json' };
}

/** Declares an event stream. */
export function stream<
    P extends Any = undefined,
    Q extends Any = undefined,
    B extends Any = undefined,
    E extends EventSchemas = EventSchemas
>(route: StreamRoute<P, Q, B, CoreRequest, E> & CoreOnly): Route {
    const { events, ...rest } = route;
    return {
        ...rest,
        ...(events === undefined ? {} : { events }),
        method: route.method ?? 'GET',
        effect: 'read',
        kind: 'stream'
    };
}

/** Declares a route of the core that is a WebSocket. */
export function socket<P extends Any = undefined, Q extends Any = undefined>(
    route: SocketRoute<P, Q, CoreRequest> & CoreOnly
): Route {
    return {
        ...route,
        method: 'GET',
        effect: 'read',
        protocols: route.protocols ?? [],
        maxMessageBytes: route.maxMessageBytes ?? 1024 * 1024,
        kind: 'socket'
    };
}

/** Declares a route of the core whose body is read as a stream. */
export function upload<P extends Any = undefined, Q extends Any = undefined, R extends Any = undefined>(
    route: UploadRoute<P, Q, R, CoreRequest> & CoreOnly
): Route {
    return { ...route, kind: 'upload' };
}

/** Declares a route of the core that answers with a file. */
export function download<P extends Any = undefined, Q extends Any = undefined>(
    route: DownloadRoute<P, Q, CoreRequest> & CoreOnly
): Route {
    return { ...route, method: 'GET', effect: 'read', kind: 'download' };
}

/** Declares a route of a foreign protocol. */
export function http<P extends Any = undefined, Q extends Any = undefined>(
    route: HttpRoute<P, Q, CoreRequest> & CoreOnly & { readonly audit?: false }
): Route {
    return {
        ...route,
        method: '*',
        effect:
            route.effect ??
            (route.methods.every((method) => method === 'GET' || method === 'HEAD' || method === 'OPTIONS')
                ? 'read'
                : 'write'),
        kind: 'http'
    };
}

/** A method as the router knows it. */
export type RouteMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Finds the protected resource at a path, whatever its methods. @param resolve - the route that a request reaches */
export function findProtectedResource(
    resolve: (path: string, method: RouteMethod) => Route | null,
    path: string
): Route | null {
    const methods: readonly RouteMethod[] = ['post', 'get', 'put', 'patch', 'delete'];
    const reached = methods.map((method) => resolve(path, method));
    return reached.find((route) => route !== null && isProtectedResource(route)) ?? null;
}

/** Tells whether tokens of the panel's OAuth server are good at a route. */
export function isProtectedResource(route: Route): boolean {
    return route.kind === 'http' && route.oauth === true;
}

/** Tells what a route does to the world: what it declares, or else what its method means. */
export function effectOf(route: Route): Effect {
    if (route.effect !== undefined) {
        return route.effect;
    }
    return route.method === 'GET' ? 'read' : route.method === 'DELETE' ? 'destructive' : 'write';
}

/** Whether the body of a route is a change, so that a field that is not sent keeps its value. */
export function takesChange({ method, isChange }: Pick<Route, 'method' | 'isChange'>): boolean {
    return method === 'PUT' || isChange === true;
}
