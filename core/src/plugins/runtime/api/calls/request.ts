/** One request that a plugin makes on behalf of its caller: checked against what the plugin was granted, and sent past the network through the front door. */
import type { ServerInjectResponse } from '@hapi/hapi';
import { type ApiAnswer, type ApiCall, isFailure, type RouteInfo } from '@portico/sdk';
import type { Grants } from '@portico/sdk/host';

import type { Caller } from '../../../../platform/call.ts';
import type { RequestState } from '../../../../server/http/request/state.ts';
import type { PluginHostPorts } from '../../ports.ts';
import type { UsageLog } from '../../records/usage-log.ts';
import { type CatalogueEntry, coversRoute, findRoute } from '../catalogue.ts';
import { type Held, onBehalf } from '../handles.ts';
import { addressOf } from './address.ts';

/** A call as it crosses the boundary. */
export type PlainCall = Omit<ApiCall, 'signal' | 'follow'>;

/** What the panel's own part of a request says beside the caller. */
export type Mode = Pick<RequestState, 'rehearsal' | 'excerpt'>;

/** For whom a plugin calls, and with which rights. */
export interface Calling {
    readonly ports: PluginHostPorts;
    readonly grants: Grants;
    readonly held: Held;
    /** The holder as of now. */
    readonly caller: Caller;
    readonly usage: Pick<UsageLog, 'deprecated'>;
}

/** A call that may be sent. */
export interface Admitted {
    readonly entry: CatalogueEntry;
    readonly url: string;
    /** The caller, with the plugin that calls for it. */
    readonly via: Caller;
}

const deepest = 4;

/**
 * Finds the route, and checks it against the grants.
 *
 * @param options - `ofPlan`: the route only checks another one, for which the plugin has the right
 * @returns why not, as an answer
 */
export function admitCall(
    { ports, grants, held, caller, usage }: Calling,
    call: PlainCall,
    kinds: readonly RouteInfo['kind'][] = ['json'],
    { ofPlan = false }: { readonly ofPlan?: boolean } = {}
): Admitted | ApiAnswer {
    const entry = findRoute(ports, grants.plugin, call.id);
    if (entry === undefined || !kinds.includes(entry.info.kind)) {
        return refusal(40400, 'NOT_FOUND', `There is no route ${call.id} that a plugin may call so`);
    }
    if (!ofPlan && !grants.api(entry.info.id, entry.info.effect)) {
        grants.missing(`api: ${entry.info.id}`);
        return refusal(
            40300,
            'FORBIDDEN',
            `The plugin ${grants.plugin} lacks the capability api for ${entry.info.id}`,
            { permission: `api:${entry.info.id}` }
        );
    }
    if (!ofPlan && !coversRoute(caller, grants.plugin, call.id)) {
        return refusal(40300, 'FORBIDDEN', `The mandate is not for the route ${call.id}`, {
            permission: `mandate:${call.id}`
        });
    }
    if (held.depth >= deepest) {
        return refusal(40300, 'FORBIDDEN', `Calls of plugins are nested more than ${deepest} deep`);
    }
    const { deprecated } = entry.route;
    if (deprecated !== undefined) {
        usage.deprecated(`route ${entry.info.id}`, deprecated.removedIn);
    }
    const url = addressOf(entry.info.path, call.params ?? {}, call.query ?? {});
    return url === null
        ? refusal(40400, 'NOT_FOUND', `The route ${call.id} needs more parameters`)
        : { entry, url, via: onBehalf(caller, grants.plugin, held.depth) };
}

/** Sends a request. @throws the reason of `signal`; failures of the gateway are answers */
export async function send(
    { ports, grants, held }: Calling,
    { entry, url, via }: Admitted,
    call: PlainCall,
    { mode = {}, signal }: { readonly mode?: Mode; readonly signal: AbortSignal | null }
): Promise<ServerInjectResponse | ApiAnswer> {
    const { idempotencyKey, ifMatch, payload } = call;
    const sending = ports.gateway.inject({
        method: entry.info.method === '*' ? 'GET' : entry.info.method,
        url,
        remoteAddress: held.ip ?? '127.0.0.1',
        headers: {
            host: 'panel.invalid',
            'user-agent': `plugin ${grants.plugin}`,
            ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
            ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
            ...(ifMatch === undefined
                ? {}
                : { 'if-match': /^"|^\*$|^W\//.test(ifMatch) ? ifMatch : `"${ifMatch}"` })
        },
        ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
        app: { caller: via, ...mode } as never // hapi types `app` by a global interface
    });
    try {
        return await cancellable(sending, signal);
    } catch (error) {
        if (isFailure(error)) {
            // The plugin behind the route is being swapped, and that takes too long.
            return refusal(error.code, error.reason, error.message, error.data ?? {});
        }
        throw error;
    }
}

/** What a route answered, as plugins see it. */
export function answerOf(response: ServerInjectResponse): ApiAnswer {
    const { statusCode, payload, headers } = response;
    const {
        code = 0,
        message = '',
        data = null
    } = (payload === '' ? {} : JSON.parse(payload)) as Partial<ApiAnswer>;
    const { location, 'x-total-count': total } = headers;
    return {
        status: statusCode,
        code,
        message,
        data,
        ...pageOf(response),
        total: total === undefined ? null : Number(total),
        location: location ?? null
    };
}

/** The version of what was answered, and the cursor of the next page. */
export function pageOf({ headers: { etag, link } }: ServerInjectResponse): Pick<ApiAnswer, 'etag' | 'next'> {
    return {
        etag: etag === undefined ? null : etag.replace(/^"(.*)"$/, '$1'),
        next: typeof link === 'string' ? cursorIn(link) : null
    };
}

/** Whether something that may be an answer is one. */
export function isAnswer(value: object): value is ApiAnswer {
    return 'status' in value && 'code' in value;
}

/** A failure as an answer. */
export function refusal(code: number, reason: string, message: string, more: object = {}): ApiAnswer {
    return {
        status: Math.floor(code / 100),
        code,
        message,
        data: { reason, ...more },
        etag: null,
        next: null,
        total: null,
        location: null
    };
}

function cursorIn(link: string): string | null {
    const url = /<([^>]*)>; rel="next"/.exec(link)?.[1];
    return url === undefined ? null : new URL(url, 'http://panel.invalid').searchParams.get('cursor');
}

/** The route's own work goes on: only the waiting ends. */
async function cancellable<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
    if (signal === null) {
        return work;
    }
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    try {
        return await Promise.race([work, promise]);
    } finally {
        signal.removeEventListener('abort', abort);
    }
}
