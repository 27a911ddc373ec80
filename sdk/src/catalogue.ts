/** The list of all mounted routes, and calls of these routes as an actor. */
import type { Actor, Effect } from './route.ts';

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One route that is mounted now. */
export interface RouteInfo {
    /** `hosts.list`; a plugin's are `<plugin>.<id>`. */
    readonly id: string;
    /** Null for the core's own. */
    readonly plugin: string | null;
    readonly kind: 'json' | 'stream' | 'socket' | 'upload' | 'download' | 'http';
    readonly method: string;
    /** Whole path, with its `{parameters}`. */
    readonly path: string;
    readonly summary: string;
    readonly description: string;
    /** Null: public, or for every user who is logged in. */
    readonly permission: string | null;
    readonly effect: Effect;
    /** The permission is marked as dangerous: offer the route to an assistant only when an admin named it, never by a pattern. */
    readonly dangerous: boolean;
    /** Whether assistants may be offered it. */
    readonly tool: boolean;
    readonly params: JsonSchema | null;
    readonly query: JsonSchema | null;
    readonly payload: JsonSchema | null;
    readonly returns: JsonSchema | null;
}

/** Which routes are listed. */
export interface RouteFilter {
    /** Only what this actor may call, and what the plugin's capability names. */
    readonly for?: Actor;
    readonly effect?: Effect;
    readonly tool?: boolean;
}

/** A call of a JSON route. */
export interface ApiCall {
    /** As in {@link RouteInfo}. */
    readonly id: string;
    readonly params?: object;
    readonly query?: object;
    readonly payload?: unknown;
    readonly idempotencyKey?: string;
    readonly ifMatch?: string;
    readonly signal?: AbortSignal;
}

/** What the route answered. A failure is an answer, too: it is not thrown. */
export interface ApiAnswer {
    readonly status: number;
    /** 0, or the failure's code. */
    readonly code: number;
    readonly message: string;
    readonly data: unknown;
    /** The version of what was read or changed, as `ApiCall.ifMatch` takes it; null without one. */
    readonly etag: string | null;
    /** The cursor of the next page of a list; null after the last one. */
    readonly next: string | null;
    /** How many rows a list has in all, where the route says so. */
    readonly total: number | null;
    /** The path of what was created, or of the task that was started. */
    readonly location: string | null;
}

/** `ctx.api`. Needs the capability `api`. */
export interface ApiService {
    /** The routes that are mounted now. The hook `routes.changed` says when to ask again. */
    routes(filter?: RouteFilter): Promise<readonly RouteInfo[]>;
    /**
     * Calls a JSON route as the actor, with the same validation, permission check and audit entry as a request. The actor must have the route's permission,
     * and the capability `api` must name the route. Routes that need a fresh session answer 40301; `/api/auth/*` and the plugin's own routes answer 40400.
     */
    call(actor: Actor, call: ApiCall): Promise<ApiAnswer>;
}
