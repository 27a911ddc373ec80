/** Sessions of the protocol's revisions of 2025. A session's id is no credential: each request brings its own bearer. */
import {
    isInitializeRequest,
    type Server,
    WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server';
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import { SessionEvents } from './event-store.ts';
import { authOf, type Visit } from './visit.ts';

interface Session {
    readonly id: string;
    readonly actorKey: string;
    readonly userId: number | null;
    readonly username: string;
    readonly server: Server;
    readonly transport: WebStandardStreamableHTTPServerTransport;
    readonly startedAt: number;
    lastSeenAt: number;
    /** Requests and streams that are open. */
    open: number;
}

/** A session as users see it. Times are ISO 8601. */
export interface SessionView {
    readonly id: string;
    readonly username: string;
    readonly client: string | null;
    readonly protocol: string | null;
    readonly startedAt: string;
    readonly lastSeenAt: string;
}

const mostOfActor = 20;
const mostInAll = 200;
const idleMs = 1_800_000;

/** The sessions that are open. */
export class Sessions {
    readonly #make: () => Server;
    readonly #now: () => number;
    readonly #sessions = new Map<string, Session>();

    /** @param make - makes the server of one session */
    constructor(make: () => Server, now: () => number = Date.now) {
        this.#make = make;
        this.#now = now;
    }

    /** How many are open. */
    get size(): number {
        return this.#sessions.size;
    }

    /**
     * Answers a request of these revisions.
     *
     * @param body - parsed; undefined for GET and DELETE
     * @throws TOO_MANY_SESSIONS 42951
     */
    async answer(request: Request, visit: Visit, body: unknown): Promise<Response> {
        const id = request.headers.get('mcp-session-id');
        if (id === null) {
            const first: unknown = Array.isArray(body) ? body[0] : body;
            return isInitializeRequest(first)
                ? this.#begin(request, visit, body)
                : refuse(400, 'Begin with initialize, and send the session id that it answers');
        }
        const session = this.#sessions.get(id);
        return session === undefined || session.actorKey !== visit.actor.key
            ? refuse(404, 'Session not found')
            : this.#handle(session, request, visit, body);
    }

    /** Those of one user, or all; the newest first. */
    list(userId: number | null): readonly SessionView[] {
        return [...this.#sessions.values()]
            .filter((session) => userId === null || session.userId === userId)
            .reverse()
            .map(({ id, username, server, startedAt, lastSeenAt }) => ({
                id,
                username,
                client: server.getClientVersion()?.name.slice(0, 100) ?? null,
                protocol: server.getNegotiatedProtocolVersion() ?? null,
                startedAt: new Date(startedAt).toISOString(),
                lastSeenAt: new Date(lastSeenAt).toISOString()
            }));
    }

    /** Ends one. @param userId - whose it must be; null: anyone's @throws NOT_FOUND 40400 */
    async end(id: string, userId: number | null): Promise<void> {
        const session = this.#sessions.get(id);
        if (session === undefined || (userId !== null && session.userId !== userId)) {
            throw errors.notFound('There is no such session');
        }
        await this.#close(session);
    }

    /** Ends those that were idle for half an hour. */
    async sweep(): Promise<void> {
        const before = this.#now() - idleMs;
        const idle = [...this.#sessions.values()].filter(
            ({ open, lastSeenAt }) => open === 0 && lastSeenAt < before
        );
        await Promise.all(idle.map((session) => this.#close(session)));
    }

    /** Ends all. */
    async close(): Promise<void> {
        await Promise.all([...this.#sessions.values()].map((session) => this.#close(session)));
    }

    /** Tells all clients that their tools, or prompts, may be others now. */
    async announce(what: 'tools' | 'prompts'): Promise<void> {
        await Promise.allSettled(
            [...this.#sessions.values()].map(({ server }) =>
                what === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged()
            )
        );
    }

    async #begin(request: Request, visit: Visit, body: unknown): Promise<Response> {
        const { actor } = visit;
        const all = [...this.#sessions.values()];
        if (
            all.length >= mostInAll ||
            all.filter(({ actorKey }) => actorKey === actor.key).length >= mostOfActor
        ) {
            throw fail.TOO_MANY_SESSIONS();
        }
        const server = this.#make();
        const now = this.#now();
        let session: Session | undefined;
        const transport = new WebStandardStreamableHTTPServerTransport({
            sessionIdGenerator: () => crypto.randomUUID(),
            eventStore: new SessionEvents(this.#now),
            onsessioninitialized: (id) => {
                session = {
                    id,
                    actorKey: actor.key,
                    userId: actor.id,
                    username: actor.username ?? '',
                    server,
                    transport,
                    startedAt: now,
                    lastSeenAt: now,
                    open: 0
                };
                this.#sessions.set(id, session);
            },
            onsessionclosed: (id) => {
                this.#sessions.delete(id);
            }
        });
        await server.connect(transport);
        const response = await transport.handleRequest(request, {
            parsedBody: body,
            authInfo: authOf(visit)
        });
        if (session === undefined) {
            await server.close();
        }
        return response;
    }

    async #handle(session: Session, request: Request, visit: Visit, body: unknown): Promise<Response> {
        session.lastSeenAt = this.#now();
        session.open += 1;
        let isOpen = true;
        // A read that was under way when the client left ends, too: the request counts once.
        const left = (): void => {
            session.open -= isOpen ? 1 : 0;
            isOpen = false;
            session.lastSeenAt = this.#now();
        };
        const response = await session.transport.handleRequest(request, {
            ...(body === undefined ? {} : { parsedBody: body }),
            authInfo: authOf(visit)
        });
        return watched(response, left);
    }

    async #close(session: Session): Promise<void> {
        this.#sessions.delete(session.id);
        await session.server.close();
    }
}

/** The same answer, whose end is heard of: when its body was read, failed, or was left. */
function watched(response: Response, ended: () => void): Response {
    const reader = response.body?.getReader();
    if (reader === undefined) {
        ended();
        return response;
    }
    const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
            try {
                const { done, value } = await reader.read();
                if (!done) {
                    controller.enqueue(value);
                    return;
                }
                ended();
                controller.close();
            } catch (error) {
                ended();
                controller.error(error);
            }
        },
        cancel(reason) {
            ended();
            return reader.cancel(reason);
        }
    });
    return new Response(body, { status: response.status, headers: response.headers });
}

function refuse(status: number, message: string): Response {
    return Response.json({ jsonrpc: '2.0', error: { code: -32_001, message }, id: null }, { status });
}
