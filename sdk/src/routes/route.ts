/**
 * The six kinds of routes: JSON, event stream, WebSocket, upload, download, and raw HTTP for a foreign protocol. The core declares its own routes with
 * the same types as plugins.
 */
import type { AnySchema, Value } from '../joi.ts';
import type { Reply } from './reply.ts';
import type { RouteUi } from './ui.ts';

/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;
/** A body as a web stream. */
export type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;
/** The method of a JSON route. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
/** What a call does: nothing, a change, or a change that cannot be undone. */
export type Effect = 'read' | 'write' | 'destructive';

/** An API token, or the grant of an OAuth client, as its holder knows it. */
export interface TokenInfo {
    readonly name: string;
    /** ISO 8601. */
    readonly expiresAt: string;
}

/** The user, token, plugin or anonymous client that sent a request. Plain data with an opaque handle behind it, which only the panel can make. */
export interface Actor {
    /** `mandate`: the person who gave a plugin a mandate, in that person's absence. */
    readonly kind: 'user' | 'token' | 'mandate' | 'plugin' | 'system' | 'anonymous';
    readonly id: number | null;
    readonly username: string | null;
    readonly role: string | null;
    /** The API token, or the mandate, that was used. */
    readonly tokenId: number | null;
    /** What the API token is called, and when it ends; absent without one. */
    readonly token?: TokenInfo;
    /** The permissions that the actor has now: those of the role; with an API token only those that the token has, too. */
    readonly permissions: readonly string[];
    /** Stable over the requests of the same user and token: bind conversations and sessions to it. */
    readonly key: string;
    /** Whether the actor has a permission now. */
    can(permission: string): boolean;
}

/** One call of a route. */
export interface Request<P = unknown, Q = unknown, B = unknown> {
    /** The request id, as in `X-Request-Id` and the audit entry. */
    readonly id: string;
    readonly actor: Actor;
    readonly params: P;
    readonly query: Q;
    readonly payload: B;
    /** Lower-case names; never authorization, cookie or a forwarding header. */
    readonly headers: Readonly<Record<string, string>>;
    readonly ip: string;
    /** The version in `If-Match`, without its quotes; null without the header. */
    readonly ifMatch: string | null;
    readonly idempotencyKey: string | null;
    /**
     * Aborts when the client left, the session or token ended, the time limit passed, or the route is being taken away. A raw route hears of that
     * at once, so that it can end what waits; JSON routes, uploads and downloads may finish first.
     */
    readonly signal: AbortSignal;
    /** Adds to this call's own audit entry. */
    audit(detail: AuditDetail): void;
}

/** What a call's audit entry says beyond who, when and how it ended. */
export interface AuditDetail {
    readonly action?: string;
    readonly resource?: string;
    readonly resourceId?: string | number | null;
    /** The object before and after; secrets are masked by the host. */
    readonly before?: unknown;
    readonly after?: unknown;
}

/** A permission, `authenticated` for every user who is logged in, or public with the written reason why. */
export type Access = string | { readonly public: string };

/** A one-time ticket of the plugin's own in the path parameter `ticket`, and the permission that its owner must still have. */
export interface TicketAccess {
    readonly ticket: string;
    readonly permission: string;
}

/**
 * Who may use a plugin's route: a permission of the plugin, without a colon (`read`, `write`, or one of its manifest), `'authenticated'`
 * for every user who is logged in, `{ public: 'the reason' }` with a reason that the manifest names too, or a ticket.
 */
export type PluginAccess = string | { readonly public: string } | TicketAccess;

/** What every route of the core or of a plugin declares. */
export interface Declared {
    /** Relative to where it is mounted; hapi's syntax: `/{id}`, `/{path*}`. */
    readonly path: string;
    readonly description?: string;
    /** The route asks for a session that proved itself lately (40301 otherwise). */
    readonly stepUp?: boolean;
    readonly deprecated?: { readonly since: string; readonly removedIn: string; readonly instead?: string };
    /** What pages make of the route beyond what its method and path say; `x-ui` in the document. */
    readonly ui?: RouteUi;
}

/** What every route of the core declares. */
export interface Described extends Declared {
    /** A permission (`hosts:read`), `'authenticated'`, or `{ public: 'the reason' }`. A route without it does not mount. */
    readonly access: Access;
    /** Stable name for OpenAPI and audit; unique on its server. */
    readonly id: string;
    readonly summary: string;
}

/** What every route of a plugin declares. */
export interface PluginDescribed extends Declared {
    readonly access: PluginAccess;
    /** Stable name for OpenAPI, audit and tools, unique in the plugin; default: made of method and path. Shown as `<plugin>.<id>`. */
    readonly id?: string;
    /** One line for the documentation and for assistants; default: method and path. */
    readonly summary?: string;
}

interface Validated<P, Q> {
    readonly validate?: { readonly params?: P; readonly query?: Q };
}

type In<S> = S extends AnySchema ? Value<S> : Readonly<Record<string, never>>;
type Body<S> = S extends AnySchema ? Value<S> : undefined;
type Out<S> = S extends AnySchema ? Value<S> : unknown;

/** A JSON route. Success and failure are answered in the envelope; a body has at most 1 MiB unless `maxBytes` says otherwise. */
export interface JsonKind<P, Q, B, R, C> {
    readonly method: Method;
    readonly validate?: { readonly params?: P; readonly query?: Q; readonly payload?: B };
    /** The shape of `data`: types the handler, documents the answer, checked in tests and development. */
    readonly returns?: R;
    /** Default by method: GET read, POST and PUT write, DELETE destructive. */
    readonly effect?: Effect;
    /** 1 to 3,600, default 30; afterwards the client gets 50300 and `signal` aborts. */
    readonly timeoutSeconds?: number;
    /** Bytes of body, default 1 MiB. */
    readonly maxBytes?: number;
    /** What the audit entry of this route says: default action by method and the first path segment. `false` only where the effect is read. */
    readonly audit?: { readonly action: string; readonly resource: string } | false;
    /** The answer shows a secret once: it is never kept for a replay, and the route is never a tool. */
    readonly secret?: boolean;
    handler(request: Request<In<P>, In<Q>, Body<B>> & C): Awaitable<Out<R> | Reply<Out<R>>>;
}

/** One server-sent event, as a handler yields it. */
export interface StreamEvent {
    /** Default: none, which browsers show as `message`. */
    readonly event?: string;
    readonly id?: string;
    /** Plain data; sent as one line of JSON. */
    readonly data: unknown;
}

/** Schemas of the events of a stream by their names. Events without a name stand under `message`. */
export type EventSchemas = Readonly<Record<string, AnySchema>>;

/** An event of a stream with these schemas; any event where there are none. */
export type EventOf<E extends EventSchemas> = string extends keyof E
    ? StreamEvent
    : | {
            [K in keyof E & string]: {
                readonly event: K;
                readonly id?: string;
                readonly data: Value<E[K]>;
            };
        }[keyof E & string]
      | ('message' extends keyof E
            ? { readonly event?: never; readonly id?: string; readonly data: Value<E['message']> }
            : never);

/** An event stream. It ends with the iterable; the panel sends a comment every 15 s to keep it open. */
export interface StreamKind<P, Q, B, C, E extends EventSchemas = EventSchemas> {
    readonly method?: 'GET' | 'POST';
    readonly validate?: { readonly params?: P; readonly query?: Q; readonly payload?: B };
    /**
     * What the events hold: types the handler, documents the stream, checked in tests and development. When the handler fails, the panel
     * sends an event `error` by itself; it is not declared.
     */
    readonly events?: E;
    /** Bytes of the body of a POST, default 1 MiB. */
    readonly maxBytes?: number;
    handler(
        request: Request<In<P>, In<Q>, Body<B>> & { readonly lastEventId: string | null } & C
    ): Awaitable<AsyncIterable<EventOf<NoInfer<E>>>>;
}

/** One WebSocket. Iterating reads; iteration ends when the peer closed. */
export interface Socket extends AsyncIterable<string | Uint8Array> {
    /** Resolves when the bytes left for the kernel: the peer's slowness is felt here. */
    send(data: string | Uint8Array): Promise<void>;
    close(code?: number, reason?: string): Promise<void>;
}

/** A WebSocket route; the socket closes when the handler's promise settles. */
export interface SocketKind<P, Q, C> extends Validated<P, Q> {
    readonly protocols?: readonly string[];
    /** Default 1 MiB. */
    readonly maxMessageBytes?: number;
    handler(socket: Socket, request: Request<In<P>, In<Q>, undefined> & C): Promise<void>;
}

/** A body taken as a stream, never held in memory. */
export interface UploadKind<P, Q, R, C> extends Validated<P, Q> {
    readonly method: 'POST' | 'PUT';
    /** Media types, as `application/octet-stream`; others are 41500. */
    readonly accepts: readonly string[];
    readonly maxBytes: number;
    readonly returns?: R;
    readonly audit?: { readonly action: string; readonly resource: string };
    /** 1 to 86,400, default 3,600. */
    readonly timeoutSeconds?: number;
    handler(
        request: Request<In<P>, In<Q>, undefined> & {
            readonly body: Bytes;
            readonly type: string;
            readonly length: number | null;
        } & C
    ): Awaitable<Out<R> | Reply<Out<R>>>;
}

/** Something to download. The host answers HEAD, ranges, If-Range and conditional requests. */
export interface Download {
    /** Bytes; null when unknown, and then no ranges. */
    readonly size: number | null;
    readonly type: string;
    /** File name that is offered. */
    readonly name?: string;
    /** Becomes the ETag. */
    readonly version?: string;
    readonly modifiedAt?: Date;
    /** Shown in the browser instead of saved; honoured for images, PDF, audio and video only. */
    readonly inline?: boolean;
    /** Called once for each answer with a body; `end` is exclusive, null: to the end. */
    open(range: { readonly start: number; readonly end: number | null }): Bytes | AsyncIterable<Uint8Array>;
    close?(): Awaitable<void>;
}

/** A route that answers bytes. */
export interface DownloadKind<P, Q, C> extends Validated<P, Q> {
    handler(request: Request<In<P>, In<Q>, undefined> & C): Awaitable<Download>;
}

/** A raw HTTP route, for a protocol that has its own form: takes a WHATWG `Request` and answers a `Response`. */
export interface HttpKind<P, Q, C> extends Validated<P, Q> {
    readonly methods: readonly ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
    /** Why the envelope does not hold here; shown in the docs. */
    readonly raw: string;
    readonly maxBytes: number;
    /**
     * `'read'`: this route changes nothing itself, whatever its method. Viewers may send it, and no audit entry is written for it; what its handler
     * calls in turn is recorded there. Default: read where all methods are GET, HEAD or OPTIONS, else write.
     */
    readonly effect?: 'read';
    /**
     * `true`: the route is a protected resource of OAuth 2.1. Clients find the panel's authorization server by its `WWW-Authenticate` (RFC 9728),
     * a user authorizes them for some of the user's permissions, and their tokens are good below this route's path alone. The caller is then an
     * `Actor` of the kind `token` that has these permissions and never passes `stepUp`; sessions and API tokens are accepted as before. The
     * access must be a permission or `'authenticated'`.
     *
     * @example
     * ```ts
     * ctx.http({
     *     methods: ['GET', 'POST', 'DELETE'], path: '/mcp', access: 'use', oauth: true,
     *     raw: 'Model Context Protocol', maxBytes: 4 * 1024 * 1024, handler: (request, { actor }) => answer(request, actor)
     * });
     * ```
     */
    readonly oauth?: true;
    handler(
        request: globalThis.Request,
        call: Omit<Request<In<P>, In<Q>, undefined>, 'payload' | 'headers'> & C
    ): Awaitable<globalThis.Response>;
}

/** A JSON route of the core. */
export interface JsonRoute<P, Q, B, R, C> extends Described, JsonKind<P, Q, B, R, C> {}
/** An event stream of the core. */
export interface StreamRoute<P, Q, B, C, E extends EventSchemas = EventSchemas>
    extends Described, StreamKind<P, Q, B, C, E> {}
/** A WebSocket of the core. */
export interface SocketRoute<P, Q, C> extends Described, SocketKind<P, Q, C> {}
/** An upload of the core. */
export interface UploadRoute<P, Q, R, C> extends Described, UploadKind<P, Q, R, C> {}
/** A download of the core. */
export interface DownloadRoute<P, Q, C> extends Described, DownloadKind<P, Q, C> {}
/** A route of the core with a protocol of its own. */
export interface HttpRoute<P, Q, C> extends Described, HttpKind<P, Q, C> {}

/** What the ticket of a route with {@link TicketAccess} was issued with; null on every other route. */
export interface Ticketed {
    readonly ticket: unknown;
}

/** How a route of a plugin succeeds: done at once (200), made a new object (201), or begun a task (202). Checked in tests and development. */
export type Success = 'done' | 'made' | 'task';

/** A JSON route of a plugin, as `ctx.route` takes it. */
export interface PluginRoute<P = undefined, Q = undefined, B = undefined, R = undefined>
    extends PluginDescribed, JsonKind<P, Q, B, R, unknown> {
    /** Whether assistants may be offered this route; default true. A route with `stepUp` or `secret` never is. */
    readonly tool?: boolean;
    /** How it succeeds, see {@link Success}: in one way, or in each of a list. Default: any way that its method may. */
    readonly answers?: Success | readonly Success[];
}
/** An event stream of a plugin, as `ctx.stream` takes it. */
export interface PluginStream<
    P = undefined,
    Q = undefined,
    B = undefined,
    E extends EventSchemas = EventSchemas
>
    extends PluginDescribed, StreamKind<P, Q, B, Ticketed, E> {}
/** A WebSocket of a plugin, as `ctx.socket` takes it. */
export interface PluginSocket<P = undefined, Q = undefined>
    extends PluginDescribed, SocketKind<P, Q, Ticketed> {}
/** An upload of a plugin, as `ctx.upload` takes it. `'*\/*'` in `accepts` takes any media type. */
export interface PluginUpload<P = undefined, Q = undefined, R = undefined>
    extends PluginDescribed, UploadKind<P, Q, R, unknown> {
    /** How it succeeds, see {@link Success}: in one way, or in each of a list. Default: any way that its method may. */
    readonly answers?: Success | readonly Success[];
}
/** A download of a plugin, as `ctx.download` takes it. */
export interface PluginDownload<P = undefined, Q = undefined>
    extends PluginDescribed, DownloadKind<P, Q, Ticketed> {}
/** A route of a plugin with a protocol of its own, as `ctx.http` takes it. */
export interface PluginHttp<P = undefined, Q = undefined> extends PluginDescribed, HttpKind<P, Q, unknown> {}
