/** The handlers of one route: each gives the plugin a handle for its caller, and takes it back when the request ends. */
import type { AuditDetail, Bytes, Download, Socket, StreamEvent } from '@portico/sdk';
import {
    allowedHeaders,
    Asked,
    type Asker,
    type Guest,
    type JsonAnswer,
    type PlainRequest
} from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import type { Database } from '../../../platform/database/database.ts';
import { type Serialised, serialised } from '../../../server/http/answer/serialised.ts';
import type { HttpCall } from '../../../server/http/request/http-call.ts';
import type { RouteRequest } from '../../../server/http/route.ts';
import type { Handles, LentAsker } from '../api/handles.ts';
import type { Journal } from '../records/journal.ts';

/** What routes need of their generation. */
export interface RouteHost {
    readonly plugin: string;
    readonly guest: Guest;
    readonly handles: Handles;
    readonly journal: Journal;
    readonly db: Database;
    /** The permissions that the manifest declares, `read` and `write` included. */
    readonly permissions: ReadonlySet<string>;
    /** Whether an admin granted this reason of a public route. */
    isPublic(reason: string): boolean;
    /** Called before the first change that the plugin accepts. */
    accept(): Promise<void>;
    takeTicket(
        ticket: string,
        permission: string
    ): Promise<{ readonly caller: Caller; readonly data: unknown }>;
}

/** What comes with an upload beside its parameters. */
export type Extra = { readonly body: Bytes; readonly type: string; readonly length: number | null };

type Answer = Awaited<ReturnType<Guest['http']>>;

/** The panel's request as plain data. Parts that are seldom needed are made when they are read. */
function plainOf(call: HttpCall, asker: Asker, extra: Partial<Extra> = {}): PlainRequest {
    return {
        handle: asker.handle,
        actor: asker.actor,
        id: call.id,
        params: call.params,
        query: call.query,
        payload: call.payload,
        ip: call.ip,
        ifMatch: call.ifMatch,
        idempotencyKey: call.idempotencyKey,
        ticket: call.ticket,
        get headers() {
            return call.headers;
        },
        get lastEventId() {
            return call.lastEventId;
        },
        ...(extra.type === undefined ? {} : { type: extra.type, length: extra.length ?? null })
    };
}

/** Calls the plugin's code for the requests of one route. */
export class RouteHandlers {
    readonly #id: string;
    /** The route's id in the whole panel. */
    readonly #name: string;
    readonly #host: RouteHost;
    readonly #isRead: () => boolean;
    readonly #stepUp: boolean;

    /** @param isRead - whether the route only reads, so that no journal entry is needed */
    constructor(id: string, host: RouteHost, isRead: () => boolean, stepUp: boolean) {
        this.#id = id;
        this.#name = `${host.plugin}.${id}`;
        this.#host = host;
        this.#isRead = isRead;
        this.#stepUp = stepUp;
    }

    /** Checks a request before its body is journalled. */
    async prepare(request: RouteRequest): Promise<void> {
        const { call, asker } = this.#begin(request);
        try {
            await this.#host.guest.check({ route: this.#id, request: plainOf(call, asker) });
        } finally {
            asker.end();
        }
    }

    async json(request: RouteRequest): Promise<Serialised> {
        if (!this.#isRead()) {
            return this.#change(request, (call, asker) => this.#host.guest.json(this.#asked(call, asker)));
        }
        const { call, asker } = this.#begin(request);
        try {
            return answered(this.#id, await this.#host.guest.json(new Asked(this.#id, asker, call)));
        } finally {
            asker.end();
        }
    }

    upload(request: RouteRequest & Extra): Promise<Serialised> {
        return this.#change(request, (call, asker) =>
            this.#host.guest.upload(Object.assign(this.#asked(call, asker, request), { body: request.body }))
        );
    }

    async stream(request: RouteRequest): Promise<AsyncIterable<StreamEvent>> {
        const { call, asker } = this.#begin(request);
        const end = (): void => asker.end();
        call.signal.addEventListener('abort', end, { once: true });
        return whileRead(end, (await this.#host.guest.stream(this.#asked(call, asker))).events);
    }

    async download(request: RouteRequest): Promise<Download> {
        const { call, asker } = this.#beginUntilAbort(request);
        const { open, close, ...file } = await this.#host.guest.download(this.#asked(call, asker));
        return { ...file, open: (range) => opened(open(range)), close };
    }

    async http(request: globalThis.Request, caller: RouteRequest): Promise<globalThis.Response> {
        const { call, asker } = this.#beginUntilAbort(caller);
        const { method, url, body, signal } = request;
        const send = async (): Promise<Answer> =>
            this.#host.guest.http({ ...this.#asked(call, asker), signal, method, url, body });
        const reply = ({ status }: Answer): unknown => ({
            '~portico': 'reply',
            status,
            message: 'ok',
            headers: {},
            data: null
        });
        const answer = ['GET', 'HEAD', 'OPTIONS'].includes(method)
            ? await send()
            : await this.#journalled(call, send, reply);
        return new Response(answer.status === 204 || answer.status === 304 ? null : answer.body, {
            status: answer.status,
            headers: allowedHeaders(Object.fromEntries(answer.headers))
        });
    }

    async socket(socket: Socket, request: RouteRequest): Promise<void> {
        const { call, asker } = this.#begin(request);
        try {
            await this.#host.guest.socket({
                ...this.#asked(call, asker),
                messages: socket,
                send: ({ data }) => socket.send(data),
                close: ({ code, reason }) => socket.close(code, reason)
            });
        } finally {
            asker.end();
        }
    }

    async #change(
        request: RouteRequest,
        run: (call: HttpCall, asker: Asker) => ReturnType<Guest['json']>
    ): Promise<Serialised> {
        const { call, asker } = this.#begin(request);
        try {
            const answer = async (): Promise<Serialised> => answered(this.#id, await run(call, asker));
            return await this.#journalled(call, answer, (done) => done);
        } finally {
            asker.end();
        }
    }

    /** Gives the caller a handle. The handle is worth nothing after `end`. */
    #begin(request: RouteRequest): { readonly call: HttpCall; readonly asker: LentAsker } {
        const call = request as HttpCall;
        const asker = this.#host.handles.lend(() => ({
            caller: call.actor,
            ip: call.ip,
            requestId: call.id,
            route: this.#name,
            audit: (detail: AuditDetail) => call.audit(detail),
            stepUp: this.#stepUp
        }));
        return { call, asker };
    }

    /** The same, for answers that go on after the handler: the handle ends with the request. */
    #beginUntilAbort(request: RouteRequest): { readonly call: HttpCall; readonly asker: LentAsker } {
        const { call, asker } = this.#begin(request);
        call.signal.addEventListener('abort', () => asker.end(), { once: true });
        return { call, asker };
    }

    #asked(
        call: HttpCall,
        asker: Asker,
        extra?: Partial<Extra>
    ): { route: string; request: PlainRequest; signal: AbortSignal } {
        return {
            route: this.#id,
            request: plainOf(call, asker, extra),
            get signal() {
                return call.signal;
            }
        };
    }

    /** Runs a change between its journal row and its audit entry. */
    async #journalled<T extends { readonly status: number }>(
        call: HttpCall,
        run: () => Promise<T>,
        reply: (answer: T) => unknown
    ): Promise<T> {
        const { journal, db } = this.#host;
        if (this.#isRead()) {
            return run();
        }
        await this.#host.accept();
        const row = await journal.begin(call.entry(0, 0));
        let answer: T;
        try {
            answer = await run();
        } catch (error) {
            await journal.drop(row);
            throw error;
        }
        if (answer.status >= 400) {
            await journal.drop(row);
            return answer;
        }
        await db.write(async (tx) => {
            await call.complete(tx, { reply: reply(answer) });
            await journal.end(tx, row);
        });
        return answer;
    }
}

function answered(id: string, { status, message, headers, json }: JsonAnswer): Serialised {
    if (!isEnvelopeStatus(status)) {
        throw new Error(`Route ${id} answered with the status ${status}`);
    }
    return serialised({ status, message, headers: allowedHeaders(headers), json });
}

async function* opened(
    opening: Promise<{ readonly body: AsyncIterable<Uint8Array> }>
): AsyncGenerator<Uint8Array> {
    yield* (await opening).body;
}

/** Passes a series on, and calls `end` when the reader leaves. */
async function* whileRead<T>(end: () => void, events: AsyncIterable<T>): AsyncGenerator<T> {
    try {
        yield* events;
    } finally {
        end();
    }
}

/** Whether answers of this status have a body, which the envelope needs. */
function isEnvelopeStatus(status: number): boolean {
    return (
        Number.isInteger(status) &&
        status >= 200 &&
        status <= 599 &&
        status !== 204 &&
        status !== 205 &&
        status !== 304
    );
}
