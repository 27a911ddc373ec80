/** The calls that the host makes most often. Members that are seldom read are made on first use; for another thread, all of them are made. */
import type { Asker, PlainActor, PlainRequest } from './protocol.ts';

/** The request as the host has it. */
export type RequestSource = Omit<PlainRequest, keyof Asker | 'type' | 'length'> & {
    readonly signal: AbortSignal;
};

/** A request whose members are read from the host's own on use. Getters on each object, in place of a class, would cost more than the rest of the request. */
class LazyRequest implements PlainRequest {
    readonly #asker: Asker;
    readonly #source: RequestSource;

    constructor(asker: Asker, source: RequestSource) {
        this.#asker = asker;
        this.#source = source;
    }

    get handle(): number {
        return this.#asker.handle;
    }

    get actor(): PlainActor {
        return this.#asker.actor;
    }

    get id(): string {
        return this.#source.id;
    }

    get params(): unknown {
        return this.#source.params;
    }

    get query(): unknown {
        return this.#source.query;
    }

    get payload(): unknown {
        return this.#source.payload;
    }

    get ip(): string {
        return this.#source.ip;
    }

    get ifMatch(): string | null {
        return this.#source.ifMatch;
    }

    get idempotencyKey(): string | null {
        return this.#source.idempotencyKey;
    }

    get ticket(): unknown {
        return this.#source.ticket;
    }

    get headers(): Readonly<Record<string, string>> {
        return this.#source.headers;
    }

    get lastEventId(): string | null {
        return this.#source.lastEventId;
    }
}

/** A call of a route. */
export class Asked {
    readonly route: string;
    readonly request: PlainRequest;
    readonly #source: RequestSource;

    constructor(route: string, asker: Asker, source: RequestSource) {
        this.route = route;
        this.request = new LazyRequest(asker, source);
        this.#source = source;
    }

    get signal(): AbortSignal {
        return this.#source.signal;
    }

    /** The same call as a plain object with all its members. */
    whole(): { readonly route: string; readonly request: PlainRequest; readonly signal: AbortSignal } {
        const { route, request: asked, signal } = this;
        const request = {
            handle: asked.handle,
            actor: asked.actor,
            id: asked.id,
            params: asked.params,
            query: asked.query,
            payload: asked.payload,
            ip: asked.ip,
            ifMatch: asked.ifMatch,
            idempotencyKey: asked.idempotencyKey,
            ticket: asked.ticket,
            headers: asked.headers,
            lastEventId: asked.lastEventId
        };
        return { route, signal, request };
    }
}

/** A call of a tap. Few taps read their signal, so it is made when a tap does. */
export class AskedTap {
    readonly tap: number;
    readonly payload: unknown;
    readonly #call: { readonly signal: AbortSignal };

    constructor(tap: number, payload: unknown, call: { readonly signal: AbortSignal }) {
        this.tap = tap;
        this.payload = payload;
        this.#call = call;
    }

    get signal(): AbortSignal {
        return this.#call.signal;
    }

    /** The same call as a plain object with all its members. */
    whole(): { readonly tap: number; readonly payload: unknown; readonly signal: AbortSignal } {
        const { tap, payload, signal } = this;
        return { tap, payload, signal };
    }
}

/** The second argument of a tap in its guest runtime. */
export class LentSignal {
    readonly #of: { readonly signal: AbortSignal };

    constructor(of: { readonly signal: AbortSignal }) {
        this.#of = of;
    }

    get signal(): AbortSignal {
        return this.#of.signal;
    }
}
