/** The endpoint of the agents: tells the protocol's generations apart, and hands each request to what serves it. */
import {
    createMcpHandler,
    isJsonContentType,
    isLegacyRequest,
    type McpHttpHandler,
    type Server
} from '@modelcontextprotocol/server';

import type { Ctx } from '../settings.ts';
import type { DirectCalls } from './direct.ts';
import { checkSource } from './guard.ts';
import type { Sessions } from './sessions.ts';
import { authOf, type Visit } from './visit.ts';

/** Bytes of a request. */
export const maxRequestBytes = 4 * 1024 * 1024;
/** The protocol's revisions, the newest first. */
export const protocols: readonly string[] = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'];

/** Answers the requests of agents. */
export class Endpoint {
    readonly #ctx: Ctx;
    readonly #sessions: Sessions;
    readonly #direct: DirectCalls;
    readonly #modern: McpHttpHandler;

    /** @param make - makes the server of one request */
    constructor(ctx: Ctx, sessions: Sessions, direct: DirectCalls, make: () => Server) {
        this.#ctx = ctx;
        this.#sessions = sessions;
        this.#direct = direct;
        this.#modern = createMcpHandler(make, {
            legacy: 'reject',
            maxRequestBodySize: maxRequestBytes,
            onerror: (error) => ctx.log.debug('The protocol refused a request', { error: error.message })
        });
    }

    /** @throws HOST_REFUSED 40351; ORIGIN_REFUSED 40350; TOO_MANY_SESSIONS 42951 */
    async answer(request: Request, visit: Visit): Promise<Response> {
        const { hosts, origins } = this.#ctx.settings;
        checkSource(request.headers, { url: await this.#ctx.panel.url(), hosts, origins });
        if (request.method !== 'POST') {
            return this.#sessions.answer(request, visit, undefined);
        }
        if (!isJsonContentType(request.headers.get('content-type') ?? '')) {
            return refuse(415, -32_600, 'Content-Type must be application/json');
        }
        const text = await request.text();
        let body: unknown;
        try {
            body = JSON.parse(text);
        } catch {
            return refuse(400, -32_700, 'Parse error: the body is not JSON');
        }
        const answer = await this.#direct.answer(request.headers, body, visit);
        if (answer !== null) {
            return answer;
        }
        return (await isLegacyRequest(request, body))
            ? this.#sessions.answer(request, visit, body)
            : this.#modern.fetch(request, { parsedBody: body, authInfo: authOf(visit) });
    }

    /** Tells all clients that their tools, or prompts, may be others now. */
    async announce(what: 'tools' | 'prompts'): Promise<void> {
        if (what === 'tools') {
            this.#modern.notify.toolsChanged();
        } else {
            this.#modern.notify.promptsChanged();
        }
        await this.#sessions.announce(what);
    }

    /** Ends all sessions and all that is under way. */
    async close(): Promise<void> {
        await Promise.all([this.#modern.close(), this.#sessions.close()]);
    }
}

function refuse(status: number, code: number, message: string): Response {
    return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });
}
