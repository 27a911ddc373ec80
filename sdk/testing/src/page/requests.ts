/** What a page asks of the API: its own plugin's routes over the network of this machine, those of others past it, all of them through the panel's code. */
import { catalogueEntries, type CatalogueEntry, type Manifest } from '@portico/core/plugin-runtime';
import type { PageAnswer } from '@portico/sdk/page';

import { answerOf, type TestAnswer } from '../client/answer.ts';
import type { TestSocket } from '../client/socket.ts';
import type { Who } from '../doubles/people.ts';
import type { TestHost } from '../panel/host.ts';
import { BridgeRefusal, type PageWork } from './bridge.ts';

type Contributed = NonNullable<NonNullable<Manifest['contributes']>['pages']>[number];

/** A page of the manifest. */
export type Brought = {
    readonly [Key in 'id' | 'title' | 'access' | 'uses' | 'place']: NonNullable<Contributed[Key]>;
};

/** What the requests of a page need. */
export interface RequestPorts {
    readonly host: TestHost;
    readonly page: Brought;
    readonly who: Who;
    called(operationId: string, status: number): void;
    saved(operationId: string, bytes: Uint8Array): void;
    ask(question: string, action: string): boolean;
}

type Row = Readonly<Record<string, unknown>>;

/** An object with names; an empty one for anything else. */
export function record(value: unknown): Row {
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

const kindsOf: Readonly<Record<string, readonly string[]>> = {
    call: ['json', 'download'],
    download: ['download'],
    upload: ['upload', 'http', 'json'],
    follow: ['stream']
};

/** The requests of one page, as its user. */
export class PageRequests {
    readonly #ports: RequestPorts;
    readonly #sockets = new Set<TestSocket>();

    constructor(ports: RequestPorts) {
        this.#ports = ports;
    }

    /** Ends what is open. */
    async close(): Promise<void> {
        const sockets = [...this.#sockets];
        sockets.forEach((socket) => socket.close());
        await Promise.all(sockets.map(({ closed }) => closed));
    }

    /** Does one request. @throws BridgeRefusal */
    async answer(work: PageWork, params: Row): Promise<unknown> {
        if (work.method === 'open') {
            return this.#open(work, String(params['address']));
        }
        const id = String(params['operationId']);
        const found = this.#allowed(id, work.method);
        const path = pathOf(found, record(params['path']));
        if (work.method === 'follow') {
            return this.#follow(work, path, record(params['query']));
        }
        if (params['tus'] !== undefined) {
            throw new BridgeRefusal(
                'WRONG_PARAMS',
                'An upload by tus is not tested here: ask its routes by host.as(…)'
            );
        }
        const answer = await this.#send(found, path, params, work);
        this.#ports.called(id, answer.status);
        if (work.method === 'download' && answer.status < 400) {
            this.#ports.saved(id, answer.bytes);
            return null;
        }
        return pageAnswer(answer, found.info.kind === 'download' && answer.status < 400);
    }

    /** The operation, when the page may call it and the user wants what cannot be undone. */
    #allowed(id: string, method: string): CatalogueEntry {
        const { host, page, ask } = this.#ports;
        const gateway = host.api.behind(host.opened.gateway);
        const found = catalogueEntries({
            gateway,
            isDangerous: (permission) => host.opened.permissions.isDangerous(permission)
        }).find(({ info }) => info.id === id);
        const isOwn = id.startsWith(`${host.name}.`);
        if (found === undefined || (!isOwn && !page.uses.includes(id))) {
            this.#ports.called(id, 0);
            throw new BridgeRefusal(
                'NOT_ALLOWED',
                `${id} is none of the plugin's operations, and not in its "uses"${isOwn || found !== undefined ? '' : ': put the route there with host.api.route'}`
            );
        }
        if (kindsOf[method]?.includes(found.info.kind) !== true) {
            throw new BridgeRefusal('WRONG_PARAMS', `${id} is a ${found.info.kind}: ${method} does not fit`);
        }
        const { ui } = found.route;
        const question =
            found.info.effect === 'destructive'
                ? (ui?.confirm ?? `${ui?.title ?? found.info.summary}?`)
                : null;
        if (question !== null && !ask(question, ui?.title ?? found.info.summary)) {
            throw new BridgeRefusal('CANCELLED', 'The user said no');
        }
        return found;
    }

    async #send(
        { info }: CatalogueEntry,
        path: string,
        { query, body, ifMatch }: Row,
        { signal }: PageWork
    ): Promise<TestAnswer> {
        const { host, who } = this.#ports;
        const bytes = body instanceof Blob ? new Uint8Array(await body.arrayBuffer()) : undefined;
        const options = {
            query: record(query) as Readonly<Record<string, string | number | boolean>>,
            ...(typeof ifMatch === 'string' || typeof ifMatch === 'number' ? { ifMatch } : {}),
            ...(bytes === undefined
                ? {}
                : { headers: { 'content-type': (body as Blob).type || 'application/octet-stream' } })
        };
        if (info.plugin === host.name) {
            return host
                .as(who)
                .ask(info.method, path, bytes ?? (body as object | undefined), { ...options, signal });
        }
        const { token } = host.opened.people.person(who);
        const search = new URLSearchParams(
            Object.entries(options.query).map(([name, value]): [string, string] => [name, String(value)])
        );
        const response = await host.api.behind(host.opened.gateway).inject({
            method: info.method,
            url: `${path}${search.size > 0 ? `?${search.toString()}` : ''}`,
            headers: {
                authorization: `Bearer ${token ?? ''}`,
                'content-type': 'application/json',
                ...(ifMatch === undefined ? {} : { 'if-match': `"${String(ifMatch)}"` })
            },
            ...(body === undefined ? {} : { payload: JSON.stringify(body) })
        });
        const headers = new Headers(
            Object.entries(response.headers).map(([name, value]) => [name, String(value)])
        );
        return answerOf(response.statusCode, headers, response.rawPayload);
    }

    async #follow(work: PageWork, path: string, query: Row): Promise<null> {
        const { host, who } = this.#ports;
        const events = host.as(who).events(path, {
            query: query as Readonly<Record<string, string | number | boolean>>,
            signal: work.signal
        });
        try {
            for await (const { event = 'message', data } of events) {
                work.tell({ event, data });
            }
        } catch (error) {
            if (!work.signal.aborted) {
                throw error;
            }
        }
        return null;
    }

    async #open(work: PageWork, address: string): Promise<{ code: number; reason: string }> {
        const { host, who } = this.#ports;
        if (!address.startsWith(`/api/plugins/${host.name}/`)) {
            throw new BridgeRefusal('NOT_ALLOWED', 'A page opens sockets of its own plugin only');
        }
        const socket = await host.as(who).socket(address);
        this.#sockets.add(socket);
        work.onData = (data) => socket.send(data);
        work.signal.addEventListener('abort', () => socket.close());
        for await (const data of socket) {
            work.tell({ data: typeof data === 'string' ? data : data.slice().buffer });
        }
        this.#sockets.delete(socket);
        return socket.closed;
    }
}

function pathOf({ info }: CatalogueEntry, params: Row): string {
    return info.path.replace(/\{(\w+)\*?\}/g, (_all, name: string) =>
        encodeURIComponent(String(params[name] ?? ''))
    );
}

function pageAnswer(answer: TestAnswer, isFile: boolean): PageAnswer {
    const { status, code, message, data, headers, bytes } = answer;
    const total = headers.get('x-total-count');
    const [, next] = /<([^>]+)>;\s*rel="?next"?/.exec(headers.get('link') ?? '') ?? [];
    return {
        status,
        code: code ?? 0,
        message: message === '' ? 'ok' : message,
        data: isFile
            ? new Blob([bytes as Uint8Array<ArrayBuffer>], { type: headers.get('content-type') ?? '' })
            : data,
        etag: headers.get('etag')?.replace(/^"(.*)"$/, '$1') ?? null,
        total: total === null ? null : Number(total),
        next: next === undefined ? null : new URL(next, 'http://panel').searchParams.get('cursor')
    };
}
