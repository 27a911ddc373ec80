/** The list of all mounted routes, and calls of these routes as an actor. */
import type { Actor, Effect } from '../routes/route.ts';

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
    readonly params?: object | undefined;
    readonly query?: object | undefined;
    readonly payload?: unknown;
    readonly idempotencyKey?: string | undefined;
    readonly ifMatch?: string | undefined;
    /** Ends the waiting; with `follow` it also cancels the task. */
    readonly signal?: AbortSignal;
    /**
     * Where the route starts a task (202), the call goes on until the task is over, and this hears how it goes. The answer is then the task's:
     * its result, or its failure; a task that was cancelled answers 50300.
     */
    readonly follow?: (progress: TaskProgress) => void;
}

/** How a task goes that a call follows. */
export interface TaskProgress {
    readonly taskId: number;
    /** 0 to 1, or null when unknown. */
    readonly fraction: number | null;
    /** A line of the task's log, for those who may read it. */
    readonly text: string | null;
}

/** How much is read at most. */
export interface ReadLimits {
    /** 1 to 16,777,216. */
    readonly maxBytes: number;
    /** 1 to 300. */
    readonly maxSeconds: number;
}

/** The beginning of an answer, as text. */
export interface ApiText {
    readonly status: number;
    /** 0, or the failure's code. */
    readonly code: number;
    /** The media type; null without one. */
    readonly type: string | null;
    /** As UTF-8; what is none becomes U+FFFD. */
    readonly text: string;
    /** There was more, or a stream went on. */
    readonly truncated: boolean;
    /** As in {@link ApiAnswer}. */
    readonly etag: string | null;
    /** As in {@link ApiAnswer}. */
    readonly next: string | null;
}

/** One field that a call would change; `path` is dotted, empty for the whole. */
export interface PlannedChange {
    readonly path: string;
    /** Undefined where there was none. */
    readonly before?: unknown;
    /** Undefined where there will be none. */
    readonly after?: unknown;
}

/** A call as it would be, before it is made. Secrets read `[secret]`. */
export interface Plan {
    readonly method: string;
    /** With its parameters and query. */
    readonly path: string;
    /** Null: every user who is logged in. */
    readonly permission: string | null;
    /** The version that the plan is about: send it as `ifMatch`, and the call is made for this version or not at all. */
    readonly etag: string | null;
    /** The object as the caller may see it; null for a creation, and where it cannot be read. */
    readonly before: unknown;
    /** The object as it would be; null for a removal, and where nothing is known of it. */
    readonly after: unknown;
    readonly changes: readonly PlannedChange[];
    /**
     * What came of the checks: code 0, or the failure that the call would answer now. Null: access and shape are right, and this route has no
     * further check that changes nothing.
     */
    readonly validated: { readonly code: number; readonly message: string } | null;
    /** The call that takes it back. Of a creation it lacks the new object's id. Null: there is none. */
    readonly undo: Omit<ApiCall, 'signal' | 'follow'> | null;
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
    /**
     * Reads the beginning of a download, an event stream, a raw GET or a JSON route that only reads, as text, with the same checks as `call`.
     *
     * @throws VALIDATION_FAILED 40001 for limits out of range
     */
    read(actor: Actor, call: Omit<ApiCall, 'follow'>, limits: ReadLimits): Promise<ApiText>;
    /**
     * Says what a call would do, and changes nothing: it runs the route's own checks of access and shape, those of its domain where the route can be
     * rehearsed or has a `/validate` beside it, and compares with what is there.
     *
     * @throws NOT_FOUND 40400 and FORBIDDEN 40300 for a route that the plugin cannot call
     */
    plan(actor: Actor, call: Omit<ApiCall, 'follow'>): Promise<Plan>;
}
