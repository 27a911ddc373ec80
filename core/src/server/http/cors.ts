/** Cross-origin calls: off unless an origin is listed by exact name; an origin is never reflected unlisted, and `null` never passes. */
import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';

import type { HttpPorts } from './ports.ts';

const methods = 'GET, POST, PUT, DELETE';
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

/** Answers a browser's question before the call. */
export function preflight(request: Request, h: ResponseToolkit, ports: HttpPorts): Lifecycle.ReturnValue {
    const answer = h.response('').code(200).type('text/plain');
    if ('access-control-allow-origin' in corsHeaders(request, ports)) {
        answer
            .header('access-control-allow-methods', methods)
            .header('access-control-allow-headers', requestHeaders)
            .header('access-control-max-age', '600');
    }
    return answer;
}
