/** The catalogue of everything that is mounted, and calls of it as the asking actor. */
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
    /** Null: public, or for anybody who is logged in. */
    readonly permission: string | null;
    readonly effect: Effect;
    /** Whether assistants may be offered it. */
    readonly tool: boolean;
    readonly params: JsonSchema | null;
    readonly query: JsonSchema | null;
    readonly payload: JsonSchema | null;
    readonly returns: JsonSchema | null;
}

export interface RouteFilter {
    /** Only what this actor may call, and what the plugin's capability names. */
    readonly for?: Actor;
    readonly effect?: Effect;
    readonly tool?: boolean;
}

export interface ApiCall {
    readonly id: string;
    readonly params?: object;
    readonly query?: object;
    readonly payload?: unknown;
    readonly idempotencyKey?: string;
    readonly ifMatch?: string;
    readonly signal?: AbortSignal;
}

/** What the route answered; failures are answers too. */
export interface ApiAnswer {
    readonly status: number;
    /** 0, or the failure's code. */
    readonly code: number;
    readonly message: string;
    readonly data: unknown;
}

export interface ApiDoor {
    /** What is mounted now. The hook `routes.changed` tells when to ask again. */
    routes(filter?: RouteFilter): Promise<readonly RouteInfo[]>;
    /**
     * Calls a JSON route through the front door as that actor: same validation, permission and audit. Never more than the actor may and the
     * capability `api` names. Routes that ask for a fresh session answer 40301, `/api/auth/*` and the caller's own routes 40400.
     */
    call(actor: Actor, call: ApiCall): Promise<ApiAnswer>;
}
