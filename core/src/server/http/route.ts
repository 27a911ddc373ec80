/** A route of the core: one of the SDK's six doors, with what only the core may ask for. */
import type {
    AnySchema,
    Described,
    Download,
    DownloadRoute,
    Effect,
    HttpRoute,
    JsonRoute,
    Request,
    SocketRoute,
    StreamRoute,
    UploadRoute
} from '@portico/sdk';

import type { Call, Caller } from '../../platform/call.ts';
import type { Reason } from '../../platform/errors.ts';

/** What a core handler gets: the SDK's request, which is also the call that services take. */
export type CoreRequest = Call & {
    /** The bearer token as it was sent; only login and refresh look at it. */
    readonly bearer: string | null;
};

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
    /** Whether assistants may be offered it; default true. */
    readonly tool?: boolean;
    /** The caller comes from a ticket in the path parameter `param`; nobody else is let in. */
    readonly ticketed?: {
        readonly param: string;
        take(ticket: string): Promise<{ readonly caller: Caller; readonly data: unknown }>;
    };
    /** Judges the input where the host cannot, before an Idempotency-Key is claimed. @throws VALIDATION_FAILED */
    readonly prepare?: (request: RouteRequest) => Promise<void>;
}

type JsonOf<P, Q, B, R> = JsonRoute<P, Q, B, R, CoreRequest> & CoreOnly;
type Any = AnySchema | undefined;

/** A declared route of any door, on its way to a server. */
export type Route = Described &
    CoreOnly &
    Partial<
        Pick<
            JsonOf<Any, Any, Any, Any>,
            'effect' | 'timeoutSeconds' | 'maxBytes' | 'audit' | 'secret' | 'returns' | 'validate'
        >
    > &
    (
        | {
              readonly kind: 'json';
              readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
              readonly handler: Handler;
          }
        | { readonly kind: 'stream'; readonly method: 'GET' | 'POST'; readonly handler: Handler }
        | {
              readonly kind: 'upload';
              readonly method: 'POST' | 'PUT';
              readonly accepts: readonly string[];
              readonly maxBytes: number;
              readonly handler: Handler;
          }
        | {
              readonly kind: 'download';
              readonly method: 'GET';
              readonly handler: (request: RouteRequest) => Download | Promise<Download>;
          }
        | {
              readonly kind: 'socket';
              readonly method: 'GET';
              readonly protocols: readonly string[];
              readonly maxMessageBytes: number;
              readonly handler: (socket: never, request: RouteRequest) => Promise<void>;
          }
        | {
              readonly kind: 'http';
              readonly methods: HttpRoute<unknown, unknown, unknown>['methods'];
              readonly method: '*';
              readonly raw: string;
              readonly maxBytes: number;
              readonly handler: (request: globalThis.Request, call: RouteRequest) => unknown;
          }
    );
export type RouteRequest = Request<never, never, never> & CoreRequest;
type Handler = (request: never) => unknown;

/** Declares a JSON route; the types of its input and answer follow from its schemas. */
export function json<
    P extends Any = undefined,
    Q extends Any = undefined,
    B extends Any = undefined,
    R extends Any = undefined
>(route: JsonOf<P, Q, B, R>): Route {
    return { ...route, kind: 'json' } as unknown as Route;
}

/** Declares an event stream. */
export function stream<P extends Any = undefined, Q extends Any = undefined, B extends Any = undefined>(
    route: StreamRoute<P, Q, B, CoreRequest> & CoreOnly
): Route {
    return { ...route, method: route.method ?? 'GET', effect: 'read', kind: 'stream' } as unknown as Route;
}

/** Declares a WebSocket. */
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
    } as unknown as Route;
}

/** Declares an upload. */
export function upload<P extends Any = undefined, Q extends Any = undefined, R extends Any = undefined>(
    route: UploadRoute<P, Q, R, CoreRequest> & CoreOnly
): Route {
    return { ...route, kind: 'upload' } as unknown as Route;
}

/** Declares a download. */
export function download<P extends Any = undefined, Q extends Any = undefined>(
    route: DownloadRoute<P, Q, CoreRequest> & CoreOnly
): Route {
    return { ...route, method: 'GET', effect: 'read', kind: 'download' } as unknown as Route;
}

/** Declares a route of a foreign protocol. */
export function http<P extends Any = undefined, Q extends Any = undefined>(
    route: HttpRoute<P, Q, CoreRequest> & CoreOnly
): Route {
    return {
        ...route,
        method: '*',
        effect: route.methods.every((method) => method === 'GET' || method === 'HEAD' || method === 'OPTIONS')
            ? 'read'
            : 'write',
        kind: 'http'
    } as unknown as Route;
}

/** What a route does to the world: its own word, or what its method says. */
export function effectOf(route: Route): Effect {
    if (route.effect !== undefined) {
        return route.effect;
    }
    return route.method === 'GET' ? 'read' : route.method === 'DELETE' ? 'destructive' : 'write';
}
