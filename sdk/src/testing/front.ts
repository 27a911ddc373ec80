/** The front door of the test's panel: identity, access, limits, idempotency, record and envelope, as before every plugin. */
import { createHash, randomUUID } from 'node:crypto';

import { allowedHeaders, sandboxHeaders } from '../boundary/answer-headers.ts';
import type { Asker, Guest, PlainRequest, RouteDocument } from '../boundary/protocol.ts';
import { isFailure } from '../errors.ts';
import type { AuditDetail, Effect } from '../route.ts';
import type { Caller, People } from './actors.ts';
import { bodyOf, limited, queryOf } from './bodies.ts';
import { downloadResponse } from './download.ts';
import { commonHeaders, failureWire, panelFailure, responseOf, type Wire, wireOf } from './envelope.ts';
import { eventText } from './events.ts';
import type { createMatcher, Match } from './matching.ts';
import type { TestTickets } from './tickets.ts';

/** One entry of the audit log. */
export interface AuditRecord extends AuditDetail {
    readonly action: string;
    readonly resource: string;
    readonly outcome: 'success' | 'failure';
    /** 0, or the failure's code. */
    readonly code: number;
    readonly username: string | null;
}

export interface FrontOptions {
    readonly plugin: string;
    readonly people: People;
    readonly tickets: TestTickets;
    readonly audit: AuditRecord[];
    /** Pages that may run scripts. */
    readonly entries: ReadonlySet<string>;
    /** What runs now; null when the plugin does not. */
    running(): {
        readonly guest: Guest;
        readonly match: ReturnType<typeof createMatcher>;
        readonly ending: AbortSignal;
        asset(path: string): Promise<Response | null>;
    } | null;
}

interface Admitted extends Match {
    readonly caller: Caller;
    readonly ticket: unknown;
}

interface Kept {
    readonly fingerprint: string;
    answer: Wire | null;
}

/** One request on its way. */
interface Journey {
    readonly request: Request;
    readonly id: string;
    /** Path and query, below the root of the site. */
    readonly url: string;
    /** The plugin's own permission of the route, or what else lets in. */
    readonly admitted: Admitted;
    readonly guest: Guest;
    readonly signal: AbortSignal;
    /** What is put on record with it. */
    detail: AuditDetail;
}

const mebibyte = 1024 * 1024;
const hidden = new Set(['authorization', 'cookie', 'proxy-authorization', 'forwarded', 'via', 'x-real-ip']);
const actions: Readonly<Record<string, string>> = {
    GET: 'read',
    HEAD: 'read',
    POST: 'create',
    PUT: 'update',
    DELETE: 'delete'
};

export class Front {
    readonly #options: FrontOptions;
    readonly #kept = new Map<string, Kept>();

    constructor(options: FrontOptions) {
        this.#options = options;
    }

    /** Answers a request to a path below the plugin's own. Failures are answers; nothing is thrown. */
    async answer(request: Request, who: Caller): Promise<Response> {
        const { plugin, entries } = this.#options;
        const id = request.headers.get('x-request-id') ?? randomUUID();
        const { pathname, search } = new URL(request.url);
        const finish = (response: Response): Response => {
            for (const [name, value] of Object.entries({ ...commonHeaders, 'x-request-id': id })) {
                if (!response.headers.has(name)) {
                    response.headers.set(name, value);
                }
            }
            const type = response.headers.get('content-type');
            if (type?.startsWith('text/') === true && !type.includes('charset')) {
                response.headers.set('content-type', `${type}; charset=utf-8`);
            }
            Object.entries(sandboxHeaders(entries, pathname)).forEach(([name, value]) =>
                response.headers.set(name, value)
            );
            return response;
        };
        let journey: Journey | null = null;
        let admitted: Admitted | null = null;
        try {
            const running = this.#options.running();
            if (running === null) {
                throw panelFailure.disabled(plugin);
            }
            const below = pathname.slice(`/api/plugins/${plugin}`.length);
            const asset = below.startsWith('/assets/')
                ? await running.asset(below.slice('/assets/'.length))
                : null;
            if (asset !== null) {
                return finish(asset);
            }
            const match = running.match(request.method, below);
            if (match === null) {
                throw panelFailure.notFound();
            }
            admitted = { ...match, caller: who, ticket: null };
            admitted = await this.#admit(match, who);
            const { caller } = admitted;
            journey = {
                request,
                id,
                url: `${pathname}${search}`,
                admitted,
                guest: running.guest,
                signal: AbortSignal.any([request.signal, running.ending, caller.ended]),
                detail: {}
            };
            return finish(await this.#serve(journey));
        } catch (error) {
            const wire = failureWire(error);
            this.#recordFailure(wire.code, admitted, journey?.detail ?? {}, request.method);
            return finish(responseOf(wire));
        }
    }

    /** Who may pass, and as whom. @throws what the panel refuses with */
    async #admit(match: Match, who: Caller): Promise<Admitted> {
        const { plugin, tickets } = this.#options;
        const { access, stepUp } = match.route;
        const named = (permission: string): string => `${plugin}:${permission}`;
        if (typeof access === 'object' && 'ticket' in access) {
            const { caller, data } = tickets.take(
                match.params[access.ticket] ?? '',
                named(access.permission)
            );
            return { ...match, caller, ticket: data };
        }
        if (typeof access === 'object') {
            return { ...match, caller: this.#options.people.caller('anonymous'), ticket: null };
        }
        who.ended.throwIfAborted();
        if (who.plain.id === null) {
            throw panelFailure.unauthenticated();
        }
        if (access !== 'authenticated' && !who.can(named(access))) {
            throw panelFailure.forbidden(named(access));
        }
        if (who.plain.role === 'viewer' && effectOf(match.route) !== 'read') {
            throw panelFailure.forbidden(
                access === 'authenticated' ? access : named(access),
                'The role viewer only reads'
            );
        }
        if (stepUp === true && !who.fresh) {
            throw panelFailure.stepUp();
        }
        return { ...match, caller: who, ticket: null };
    }

    async #serve(journey: Journey): Promise<Response> {
        const {
            request,
            guest,
            admitted: { route },
            signal
        } = journey;
        switch (route.kind) {
            case 'json':
                return this.#json(journey);
            case 'upload': {
                const type =
                    (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
                const accepts = route.accepts ?? [];
                if (!accepts.includes(type) && !accepts.includes('*/*')) {
                    throw panelFailure.mediaType(accepts.join(' or '));
                }
                const length = request.headers.get('content-length');
                const body = limited(request, route.maxBytes ?? mebibyte);
                const answer = await this.#asked(
                    journey,
                    async (asked) => guest.upload({ ...asked, body: body.stream }),
                    { type, length: length === null ? null : Number(length) }
                ).catch((error: unknown) => {
                    throw body.error() ?? error;
                });
                return this.#record(journey, wireOf(answer, journey.url), responseOf);
            }
            case 'stream': {
                const input = await this.#begin(
                    journey,
                    request.method === 'POST' ? await bodyOf(request, mebibyte) : undefined
                );
                const { events } = await guest.stream({ route: route.id, request: input.plain, signal });
                return new Response(
                    ReadableStream.from(ended(eventText(events, signal), input.end)) as ReadableStream,
                    {
                        headers: {
                            'content-type': 'text/event-stream; charset=utf-8',
                            'x-accel-buffering': 'no'
                        }
                    }
                );
            }
            case 'download': {
                const input = await this.#begin(journey, undefined);
                signal.addEventListener('abort', input.end, { once: true });
                return downloadResponse(
                    await guest.download({ route: route.id, request: input.plain, signal }),
                    request
                );
            }
            case 'http':
                return this.#http(journey);
            case 'socket':
                throw panelFailure.badRequest('This is a WebSocket: connect with an upgrade');
        }
    }

    /** For a WebSocket: everything but the talk itself. */
    async open(
        request: Request,
        who: Caller
    ): Promise<{
        readonly guest: Guest;
        readonly route: RouteDocument;
        readonly plain: PlainRequest;
        readonly ending: AbortSignal;
        readonly ended: AbortSignal;
        end(): void;
    }> {
        const running = this.#options.running();
        if (running === null) {
            throw panelFailure.disabled(this.#options.plugin);
        }
        const { pathname, search } = new URL(request.url);
        const match = running.match('GET', pathname.slice(`/api/plugins/${this.#options.plugin}`.length));
        if (match?.route.kind !== 'socket') {
            throw panelFailure.notFound();
        }
        const admitted = await this.#admit(match, who);
        const { plain, end } = await this.#begin(
            {
                request,
                id: randomUUID(),
                url: `${pathname}${search}`,
                admitted,
                guest: running.guest,
                signal: request.signal,
                detail: {}
            },
            undefined
        );
        return {
            guest: running.guest,
            route: match.route,
            plain,
            end,
            ending: running.ending,
            ended: admitted.caller.ended
        };
    }

    async #json(journey: Journey): Promise<Response> {
        const {
            request,
            guest,
            admitted: { route }
        } = journey;
        const isGet = request.method === 'GET' || request.method === 'HEAD';
        const body = isGet ? undefined : await bodyOf(request, route.maxBytes ?? mebibyte);
        const kept = await this.#claim(journey, body);
        if (kept !== null && kept.answer !== null) {
            return responseOf(kept.answer);
        }
        try {
            const answer = await inTime(route.timeoutSeconds ?? 30, () =>
                this.#asked(journey, (asked) => guest.json(asked), {}, body?.value)
            );
            const wire = wireOf(answer, journey.url);
            if (!isGet) {
                this.#keep(kept, route, wire);
                return this.#record(journey, wire, responseOf);
            }
            return tagged(request, wire, answer.json.startsWith('['));
        } catch (error) {
            if (
                kept !== null &&
                isFailure(error) &&
                error.code < 50000 &&
                Math.floor(error.code / 100) !== 429
            ) {
                this.#keep(kept, route, failureWire(error));
            }
            throw error;
        }
    }

    /** A retry gets the first answer. */
    async #claim(
        journey: Journey,
        body: { readonly text: string; readonly value: unknown } | undefined
    ): Promise<Kept | null> {
        const {
            request,
            guest,
            admitted: { route, caller }
        } = journey;
        const key = request.headers.get('idempotency-key');
        if (key === null || request.method !== 'POST' || caller.plain.id === null) {
            return null;
        }
        const { plain, end } = await this.#begin(journey, body);
        await guest.check({ route: route.id, request: plain }).finally(end);
        if (!/^[\x21-\x7e]{1,128}$/.test(key)) {
            throw panelFailure.badRequest('Idempotency-Key must be 1 to 128 visible ASCII characters');
        }
        const fingerprint = createHash('sha256')
            .update(`${request.method} ${journey.url}\n${body?.text ?? ''}`)
            .digest('base64url');
        const known = this.#kept.get(`${caller.plain.key} ${key}`);
        if (known === undefined) {
            const first: Kept = { fingerprint, answer: null };
            this.#kept.set(`${caller.plain.key} ${key}`, first);
            return first;
        }
        if (known.fingerprint !== fingerprint) {
            throw panelFailure.mismatch();
        }
        if (known.answer === null) {
            throw panelFailure.unresolved();
        }
        return known;
    }

    #keep(kept: Kept | null, { stepUp, secret }: RouteDocument, wire: Wire): void {
        if (kept !== null && stepUp !== true && secret !== true) {
            kept.answer = wire;
        }
    }

    async #http(journey: Journey): Promise<Response> {
        const {
            request,
            guest,
            admitted: { route },
            signal
        } = journey;
        const input = await this.#begin(journey, undefined);
        signal.addEventListener('abort', input.end, { once: true });
        const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
        const body = hasBody ? limited(request, route.maxBytes ?? mebibyte) : null;
        const { pathname, search } = new URL(request.url);
        const answer = await guest
            .http({
                route: route.id,
                request: input.plain,
                signal,
                method: request.method,
                url: `http://panel.invalid${pathname}${search}`,
                body: body?.stream ?? null
            })
            .catch((error: unknown) => {
                throw body?.error() ?? error;
            });
        const isBare = answer.status === 204 || answer.status === 304;
        const response = new Response(isBare ? null : answer.body, {
            status: answer.status,
            headers: allowedHeaders(Object.fromEntries(answer.headers))
        });
        return hasBody && effectOf(route) !== 'read' && answer.status < 400
            ? this.#record(journey, { status: answer.status, headers: {}, body: '' }, () => response)
            : response;
    }

    async #asked<T>(
        journey: Journey,
        work: (asked: {
            readonly route: string;
            readonly request: PlainRequest;
            readonly signal: AbortSignal;
        }) => Promise<T>,
        more: Partial<Pick<PlainRequest, 'type' | 'length'>>,
        value?: unknown
    ): Promise<T> {
        const { plain, end } = await this.#begin(journey, value === undefined ? undefined : { value });
        try {
            return await work({
                route: journey.admitted.route.id,
                request: { ...plain, ...more },
                signal: journey.signal
            });
        } finally {
            end();
        }
    }

    /** The request as plain data; its actor is nobody once `end` was called. */
    async #begin(
        journey: Journey,
        body: { readonly value: unknown } | undefined
    ): Promise<{ readonly plain: PlainRequest; end(): void }> {
        const {
            request,
            id,
            admitted: { caller, params, ticket }
        } = journey;
        const { people } = this.#options;
        const asker: Asker = people.begin({
            caller,
            ip: '127.0.0.1',
            requestId: id,
            audit: (detail) => {
                journey.detail = { ...journey.detail, ...detail };
            }
        });
        const ifMatch = request.headers.get('if-match');
        return {
            plain: {
                ...asker,
                id,
                params,
                query: queryOf(new URL(request.url)),
                payload: body?.value,
                ticket,
                headers: Object.fromEntries(
                    [...request.headers].filter(
                        ([name]) => !hidden.has(name) && !name.startsWith('x-forwarded-')
                    )
                ),
                ip: '127.0.0.1',
                ifMatch: ifMatch === null ? null : ifMatch.trim().replace(/^"(.*)"$/, '$1'),
                idempotencyKey: request.headers.get('idempotency-key'),
                lastEventId: request.headers.get('last-event-id')
            },
            end: () => people.finish(asker.handle)
        };
    }

    #record(journey: Journey, wire: Wire, answer: (wire: Wire) => Response): Response {
        const {
            admitted: { route, caller },
            request
        } = journey;
        if (effectOf(route) !== 'read' && route.audit !== false) {
            this.#options.audit.push(this.#entry(route, caller, journey.detail, request.method, 0));
        }
        return answer(wire);
    }

    /** A refusal is on record whatever the route does; other failures where the route would have changed something. */
    #recordFailure(code: number, admitted: Admitted | null, detail: AuditDetail, method: string): void {
        const refused = [401, 403, 429].includes(Math.floor(code / 100));
        if (admitted !== null && (refused || effectOf(admitted.route) !== 'read')) {
            this.#options.audit.push(this.#entry(admitted.route, admitted.caller, detail, method, code));
        }
    }

    #entry(
        route: RouteDocument,
        caller: Caller,
        detail: AuditDetail,
        method: string,
        code: number
    ): AuditRecord {
        const declared = typeof route.audit === 'object' ? route.audit : null;
        const fallback =
            effectOf(route) === 'read' ? 'read' : route.kind === 'http' ? 'run' : (actions[method] ?? 'run');
        return {
            action: declared?.action ?? fallback,
            resource: declared?.resource ?? this.#options.plugin,
            ...detail,
            outcome: code === 0 ? 'success' : 'failure',
            code,
            username: caller.plain.username
        };
    }
}

/** What a route does to the world: its own word, or what its kind and method say. */
function effectOf({ effect, kind, methods }: RouteDocument): Effect {
    const isReading =
        ['stream', 'socket', 'download'].includes(kind) ||
        methods.every((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method));
    return (
        effect ?? (isReading ? 'read' : methods[0] === 'DELETE' && kind === 'json' ? 'destructive' : 'write')
    );
}

async function inTime<T>(seconds: number, work: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(panelFailure.tooSlow()), seconds * 1000);
    });
    try {
        return await Promise.race([work(), late]);
    } finally {
        clearTimeout(timer);
    }
}

/** A list carries a tag of its content, a single object its version; either is revalidated. */
function tagged(request: Request, wire: Wire, isList: boolean): Response {
    const tag =
        wire.headers['etag'] ??
        (isList ? `"${createHash('sha1').update(wire.body).digest('base64url')}"` : undefined);
    const known =
        request.headers
            .get('if-none-match')
            ?.split(',')
            .some((each) => each.trim().replace(/^W\//, '') === tag) === true;
    return known && tag !== undefined
        ? new Response(null, { status: 304, headers: { etag: tag } })
        : responseOf(tag === undefined ? wire : { ...wire, headers: { ...wire.headers, etag: tag } });
}

async function* ended<T>(series: AsyncIterable<T>, end: () => void): AsyncGenerator<T> {
    try {
        yield* series;
    } finally {
        end();
    }
}
