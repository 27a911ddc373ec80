/** One request as handlers and services see it, and the place where its audit entry and its answer to retries are put on record. */
import type { IncomingMessage, ServerResponse } from 'node:http';

import type { AuditDetail } from '@portico/sdk';

import { type Caller, type Done, recordedActor } from '../../../platform/call.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { wireOf } from '../answer/envelope.ts';
import type { AuditEntry, HttpPorts, KeyInUse } from '../ports.ts';
import { effectOf, type Route, type RouteRequest } from '../route.ts';
import { Rehearsed } from './rehearsal.ts';

const hiddenHeaders = new Set([
    'authorization',
    'cookie',
    'proxy-authorization',
    'forwarded',
    'via',
    'x-real-ip'
]);
const actions = { GET: 'read', POST: 'create', PUT: 'update', DELETE: 'delete', '*': 'run' } as const;

/** Why a call's signal aborts. One for all: an exception of its own, with its stack, for each request is dear. */
const over = new DOMException('The answer is over, or the caller may not go on', 'AbortError');

/** What the server knows of a request before its handler runs. */
export interface HttpCallInput {
    readonly id: string;
    readonly route: Route;
    /** Path that the routes of its server are below, such as `/api/plugins/hello`; default: the core's. */
    readonly prefix?: string;
    readonly caller: Caller;
    readonly ip: string;
    /** The request's own path with its query, below the root of the site. */
    readonly url: string;
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly bearer: string | null;
    /** What the route's own ticket was issued with; null without one. */
    readonly ticket: unknown;
    readonly ports: HttpPorts;
    /** Aborts when the server is about to go: streams and sockets end then, plain requests finish. */
    readonly ending: AbortSignal;
    /** The call is only tried: what it would change is rolled back. */
    readonly isRehearsal?: boolean;
}

/** One request as a call: what handlers and services see of it. */
export class HttpCall implements RouteRequest {
    readonly id: string;
    readonly actor: Caller;
    readonly ip: string;
    readonly userAgent: string | null;
    readonly ifMatch: string | null;
    readonly idempotencyKey: string | null;
    readonly bearer: string | null;
    readonly ticket: unknown;
    params: unknown;
    query: unknown;
    payload: unknown;
    /** Set by the idempotency check of a first request. */
    key: KeyInUse | null = null;
    readonly #input: HttpCallInput;
    #detail: AuditDetail = {};
    #completed = false;
    #signal: AbortSignal | null = null;
    #headers: Record<string, string> | null = null;

    constructor(input: HttpCallInput) {
        const { headers } = input.request;
        this.#input = input;
        this.id = input.id;
        this.actor = input.caller;
        this.ip = input.ip;
        this.bearer = input.bearer;
        this.ticket = input.ticket;
        this.userAgent = headers['user-agent'] ?? null;
        this.ifMatch = version(headers['if-match']);
        this.idempotencyKey = (headers['idempotency-key'] as string | undefined) ?? null;
    }

    get route(): string {
        const { route, prefix = '' } = this.#input;
        return prefix === '' ? route.id : `${prefix.slice(prefix.lastIndexOf('/') + 1)}.${route.id}`;
    }

    get headers(): Readonly<Record<string, string>> {
        this.#headers ??= Object.fromEntries(
            Object.entries(this.#input.request.headers)
                .filter(([name]) => !hiddenHeaders.has(name) && !name.startsWith('x-forwarded-'))
                .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')])
        );
        return this.#headers;
    }

    get lastEventId(): string | null {
        return this.headers['last-event-id'] ?? null;
    }

    /** Aborts when the answer is over, however it ended, and when the caller's session ends. */
    get signal(): AbortSignal {
        if (this.#signal === null) {
            const controller = new AbortController();
            this.#signal = controller.signal;
            const { response, ports, caller, route } = this.#input;
            const end = (): void => controller.abort(over);
            if (response.closed) {
                end();
            }
            const stop = ports.authenticator.onEnd(caller, route, end);
            response.once('close', () => {
                stop();
                end();
            });
        }
        return this.#signal;
    }

    get ending(): AbortSignal {
        return this.#input.ending;
    }

    /** For a call that outlives its response, as a WebSocket does. */
    live(signal: AbortSignal): void {
        this.#signal = signal;
    }

    audit(detail: AuditDetail): void {
        this.#detail = { ...this.#detail, ...detail };
    }

    async complete<T>(tx: Transaction, done: Done<T>): Promise<T> {
        const { reply, ...detail } = done;
        if (this.#input.isRehearsal === true) {
            throw new Rehearsed(reply);
        }
        this.audit(detail);
        const wire = wireOf(reply, this.#input.url);
        await this.#input.ports.recorder.record(tx, this.entry(wire.status, 0));
        await this.key?.keep(tx, wire);
        tx.afterCommit(() => {
            this.#completed = true;
        });
        return reply;
    }

    /** True when the change put itself on record. */
    get completed(): boolean {
        return this.#completed;
    }

    entry(status: number, code: number): AuditEntry {
        const { route, request } = this.#input;
        const declared = typeof route.audit === 'object' ? route.audit : null;
        return {
            actor: recordedActor(this.actor),
            action: declared?.action ?? (effectOf(route) === 'read' ? 'read' : actions[route.method]),
            resource: declared?.resource ?? resourceOf(this.#input.url),
            ...this.#detail,
            outcome: code === 0 ? 'success' : 'failure',
            status,
            code,
            ip: this.ip,
            userAgent: request.headers['user-agent'] ?? null,
            requestId: this.id
        };
    }
}

function resourceOf(url: string): string {
    return /^\/api\/(?:plugins\/)?([a-z0-9-]+)/.exec(url)?.[1] ?? 'panel';
}

/** `"5"` and `5` are version 5; `*` and weak tags match nothing by themselves and are passed on as they are. */
function version(header: string | undefined): string | null {
    return header === undefined ? null : header.trim().replace(/^"(.*)"$/, '$1');
}
