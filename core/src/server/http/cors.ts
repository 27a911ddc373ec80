/** Cross-origin calls: off unless an origin is listed by exact name; an origin is never reflected unlisted, and `null` never passes. */
import type { Request, Server } from '@hapi/hapi';

import { fail } from '../../platform/errors.ts';
import { envelope, jsonType } from './answer/envelope.ts';
import type { HttpPorts } from './ports.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const requestHeaders =
    'authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id, mcp-protocol-version, mcp-session-id, x-request-id';
const exposed =
    'etag, link, location, mcp-session-id, retry-after, www-authenticate, x-engine-reload, x-request-id, x-total-count';

/** Headers for a request that came from a listed origin; none otherwise. */
export function corsHeaders(request: Request, ports: HttpPorts): Record<string, string> {
    const { origin } = request.raw.req.headers;
    if (origin === undefined || origin === 'null') {
        return {};
    }
    return ports.corsOrigins().includes(origin)
        ? { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, vary: 'origin' }
        : { vary: 'origin' };
}

/** What OPTIONS answers is made from. */
export interface OptionsAnswer {
    readonly prefix: string;
    readonly ports: HttpPorts;
    /** What an unknown path answers; default: 40400. */
    readonly unknown?: (path: string) => Error;
}

/**
 * Answers OPTIONS of every path: to a listed origin what a browser asks before a call, to all others the methods of the path. A path without
 * a route answers as it does to every other method.
 */
export function answerOptions(hapi: Server, { prefix, ports, unknown }: OptionsAnswer): void {
    hapi.route({
        method: 'OPTIONS',
        path: `${prefix}/{any*}`,
        options: {
            auth: false,
            handler(request, h) {
                const found = methods.filter((method) => hasRoute(hapi, method, request.path));
                const isListed = 'access-control-allow-origin' in corsHeaders(request, ports);
                if (found.length === 0 && !isListed) {
                    throw unknown?.(request.path) ?? fail.NOT_FOUND();
                }
                const names = found.includes('GET') ? ['HEAD', ...found] : found;
                const answer = h
                    .response(envelope(0, 'ok', { methods: names }))
                    .code(200)
                    .type(jsonType);
                if (found.length > 0) {
                    answer.header('allow', [...names, 'OPTIONS'].join(', '));
                }
                return isListed
                    ? answer
                          .header('access-control-allow-methods', methods.join(', '))
                          .header('access-control-allow-headers', requestHeaders)
                          .header('access-control-max-age', '600')
                    : answer;
            }
        }
    });
}

function hasRoute(hapi: Server, method: string, path: string): boolean {
    const route = hapi.match(method.toLowerCase() as 'get', path); // hapi's type knows fewer methods
    return route !== null && (route.settings.plugins as { readonly portico?: unknown }).portico !== undefined;
}
