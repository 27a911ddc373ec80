/** One request as a plugin's handler sees it. Members that are seldom read are made on first use. */
import type { Actor, AuditDetail } from '../../../routes/route.ts';
import type { HostApi, PlainRequest } from '../../protocol.ts';
import type { GuestActors } from '../actors.ts';

/** What a request needs from the generation. */
export interface RequestPorts {
    readonly actors: GuestActors;
    readonly hostApi: HostApi;
}

/** A request as a handler of the plugin sees it. */
export class GuestRequest {
    readonly params: unknown;
    readonly query: unknown;
    readonly payload: unknown;
    readonly #input: { readonly request: PlainRequest; readonly signal: AbortSignal };
    readonly #ports: RequestPorts;
    #actor: Actor | null = null;

    constructor(
        input: { readonly request: PlainRequest; readonly signal: AbortSignal },
        valid: { readonly params: unknown; readonly query: unknown; readonly payload: unknown },
        ports: RequestPorts
    ) {
        this.params = valid.params;
        this.query = valid.query;
        this.payload = valid.payload;
        this.#input = input;
        this.#ports = ports;
    }

    get id(): string {
        return this.#input.request.id;
    }

    get actor(): Actor {
        return (this.#actor ??= this.#ports.actors.of(this.#input.request));
    }

    get headers(): Readonly<Record<string, string>> {
        return this.#input.request.headers;
    }

    get ip(): string {
        return this.#input.request.ip;
    }

    get ifMatch(): string | null {
        return this.#input.request.ifMatch;
    }

    get idempotencyKey(): string | null {
        return this.#input.request.idempotencyKey;
    }

    get lastEventId(): string | null {
        return this.#input.request.lastEventId;
    }

    get ticket(): unknown {
        return this.#input.request.ticket;
    }

    get type(): string | undefined {
        return this.#input.request.type;
    }

    get length(): number | null | undefined {
        return this.#input.request.length;
    }

    get signal(): AbortSignal {
        return this.#input.signal;
    }

    /** Works without its request, because handlers destructure the request. */
    get audit(): (detail: AuditDetail) => void {
        return (detail) =>
            void this.#ports.hostApi.detail({
                handle: this.#input.request.handle,
                detail: JSON.parse(JSON.stringify(detail)) as AuditDetail
            });
    }
}
