/** The calls that the host makes most often. Members that are seldom read are made on first use; for another thread, all of them are made. */
import type { Asker, PlainActor, PlainRequest } from './protocol.ts';

/** The request as the host has it. */
export type RequestSource = Omit<PlainRequest, keyof Asker | 'type' | 'length'> & {
    readonly signal: AbortSignal;
};

/** A request whose caller and headers are read on first use. Getters on each object, in place of a class, would cost more than the rest of the request. */
class LazyRequest implements PlainRequest {
    readonly id: string;
    readonly params: unknown;
    readonly query: unknown;
    readonly payload: unknown;
    readonly ip: string;
    readonly ifMatch: string | null;
    readonly idempotencyKey: string | null;
    readonly ticket: unknown;
    readonly #asker: Asker;
    readonly #source: RequestSource;

    constructor(asker: Asker, source: RequestSource) {
        this.#asker = asker;
        this.id = source.id;
        this.params = source.params;
        this.query = source.query;
        this.payload = source.payload;
        this.ip = source.ip;
        this.ifMatch = source.ifMatch;
        this.idempotencyKey = source.idempotencyKey;
        this.ticket = source.ticket;
        this.#source = source;
    }

    get handle(): number {
        return this.#asker.handle;
    }

    get actor(): PlainActor {
        return this.#asker.actor;
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
        const { route, request, signal } = this;
        const { handle, actor, headers, lastEventId } = request;
        return { route, signal, request: { ...request, handle, actor, headers, lastEventId } };
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
