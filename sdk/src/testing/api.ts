/** The panel's own routes in a test: those that the test puts there, called as the asker of the plugin, under the panel's rules. */
import type { Grants } from '../boundary/grants.ts';
import type { RouteDocument } from '../boundary/protocol.ts';
import type { ApiAnswer, ApiCall, RouteInfo } from '../catalogue.ts';
import { type Failure, isFailure } from '../errors.ts';
import { isReply } from '../reply.ts';
import type { Actor, Effect } from '../route.ts';
import { actorOf, type Caller } from './actors.ts';

/** A route of the panel, or of another plugin, that a test puts there. */
export interface PanelRoute {
    /** As in the catalogue: `hosts.list`. */
    readonly id: string;
    /** Default GET. */
    readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
    /** Default `/api/` and the first part of the id. */
    readonly path?: string;
    readonly summary?: string;
    /** Whose it is; null: the panel's own. */
    readonly plugin?: string | null;
    /** `area:verb`; null: for anybody who is logged in. Admins of the test have every one that a route names. */
    readonly permission?: string | null;
    readonly effect?: Effect;
    readonly stepUp?: boolean;
    /** What it answers: plain data, a reply, or a thrown failure. */
    handler?(call: {
        readonly actor: Actor;
        readonly params: object;
        readonly query: object;
        readonly payload: unknown;
        readonly ifMatch: string | null;
        readonly idempotencyKey: string | null;
    }): unknown;
}

const deepest = 4;
const effects = { GET: 'read', POST: 'write', PUT: 'write', DELETE: 'destructive' } as const;

/** What is mounted beside the plugin. */
export class ApiFake {
    /** Every call that came, refused ones included. */
    readonly calls: (ApiCall & { readonly username: string | null; readonly answer: ApiAnswer })[] = [];
    readonly #routes = new Map<string, PanelRoute>();

    /** Puts a route there; the same id replaces. */
    route(route: PanelRoute): void {
        this.#routes.set(route.id, route);
    }

    permissions(): readonly string[] {
        return [
            ...new Set(
                [...this.#routes.values()].flatMap(({ permission = null }) =>
                    permission === null ? [] : [permission]
                )
            )
        ];
    }

    /** The catalogue, with the plugin's own routes in it. */
    list(
        grants: Grants,
        own: readonly RouteDocument[],
        caller: Caller | null,
        filter: { readonly effect?: Effect; readonly tool?: boolean }
    ): readonly RouteInfo[] {
        const all = [
            ...[...this.#routes.values()].map((route) => ({ route, info: infoOf(route) })),
            ...own.map((document) => ({ route: null, info: ownInfo(document, grants.plugin) }))
        ];
        return all
            .filter(
                ({ route, info }) =>
                    (caller === null ||
                        (route !== null &&
                            isReachable(info) &&
                            mayCall(route, caller) &&
                            grants.api(info.id, info.effect))) &&
                    (filter.effect === undefined || info.effect === filter.effect) &&
                    (filter.tool === undefined || info.tool === filter.tool)
            )
            .map(({ info }) => info);
    }

    async call(grants: Grants, caller: Caller, call: ApiCall): Promise<ApiAnswer> {
        const answer = await this.#answer(grants, caller, call);
        this.calls.push({ ...call, username: caller.plain.username, answer });
        return answer;
    }

    async #answer(grants: Grants, caller: Caller, call: ApiCall): Promise<ApiAnswer> {
        const route = this.#routes.get(call.id);
        if (route === undefined || !isReachable(infoOf(route))) {
            return refusal(40400, 'NOT_FOUND', `There is no route ${call.id} that a plugin may call`);
        }
        const info = infoOf(route);
        if (!grants.api(info.id, info.effect)) {
            return refusal(
                40300,
                'FORBIDDEN',
                `The plugin ${grants.plugin} lacks the capability api for ${info.id}`,
                { permission: `api:${info.id}` }
            );
        }
        if (caller.depth >= deepest) {
            return refusal(40300, 'FORBIDDEN', `Calls of plugins are nested more than ${deepest} deep`);
        }
        if (caller.plain.id === null) {
            return refusal(40100, 'UNAUTHENTICATED', 'A bearer token is required');
        }
        if (info.permission !== null && !caller.can(info.permission)) {
            return refusal(40300, 'FORBIDDEN', `The permission ${info.permission} is required`, {
                permission: info.permission
            });
        }
        if (route.stepUp === true) {
            return refusal(
                40301,
                'STEP_UP_REQUIRED',
                'This action needs the password or the second factor again'
            );
        }
        try {
            const given = await route.handler?.({
                actor: actorOf(caller, grants.plugin),
                params: call.params ?? {},
                query: call.query ?? {},
                payload: call.payload,
                ifMatch: call.ifMatch ?? null,
                idempotencyKey: call.idempotencyKey ?? null
            });
            const { status, message, data } = isReply(given)
                ? given
                : { status: 200, message: 'ok', data: given };
            return { status, code: 0, message, data: JSON.parse(JSON.stringify(data ?? null)) as unknown };
        } catch (error) {
            const { code, reason, message, data }: Failure = isFailure(error)
                ? error
                : {
                      code: 50000,
                      reason: 'INTERNAL',
                      message: 'Something went wrong; the log has it under the request id',
                      data: null
                  };
            return refusal(code, reason, message, data ?? {});
        }
    }
}

function mayCall(route: PanelRoute, caller: Caller): boolean {
    const { permission = null, stepUp = false } = route;
    return (
        caller.plain.id !== null &&
        !stepUp &&
        (permission === null || caller.can(permission)) &&
        (caller.plain.role !== 'viewer' || infoOf(route).effect === 'read')
    );
}

const isReachable = ({ path }: RouteInfo): boolean => !path.startsWith('/api/auth/');

function infoOf({
    id,
    method = 'GET',
    path = `/api/${id.split('.')[0]}`,
    summary = id,
    plugin = null,
    permission = null,
    effect = effects[method],
    stepUp = false
}: PanelRoute): RouteInfo {
    return {
        id,
        plugin,
        kind: 'json',
        method,
        path,
        summary,
        description: '',
        permission,
        effect,
        tool: !stepUp,
        params: null,
        query: null,
        payload: null,
        returns: null
    };
}

function ownInfo(
    { id, kind, methods, path, summary, description = '', access, effect, tool }: RouteDocument,
    plugin: string
): RouteInfo {
    const method = kind === 'http' ? '*' : (methods[0] ?? 'GET');
    return {
        id: `${plugin}.${id}`,
        plugin,
        kind,
        method,
        path: `/api/plugins/${plugin}${path}`,
        summary,
        description,
        permission: typeof access === 'string' && access !== 'authenticated' ? `${plugin}:${access}` : null,
        effect: effect ?? (method === '*' ? 'write' : effects[method as keyof typeof effects]),
        tool,
        params: null,
        query: null,
        payload: null,
        returns: null
    };
}

function refusal(code: number, reason: string, message: string, more: object = {}): ApiAnswer {
    return { status: Math.floor(code / 100), code, message, data: { reason, ...more } };
}
