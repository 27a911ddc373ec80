/** The API of a forge, as GitHub, GitLab and Gitea answer: tokens of an app, repositories, checks of commits, comments. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Sender } from '../forges/deliveries.ts';

/** What was asked. */
export interface Asked {
    readonly method: string;
    readonly path: string;
    readonly authorization: string;
    readonly body: Readonly<Record<string, unknown>> | null;
}

/** The most repositories on a page: Gitea gives fewer than it is asked for. */
const pageSizes = { github: 100, gitlab: 100, gitea: 50 };

/** A forge that knows one token. GitHub gives it to one app with one installation. */
export class Forge {
    readonly kind: Sender;
    readonly asked: Asked[] = [];
    readonly token = 'token-of-the-forge';
    readonly repositories: object[] = [];
    /** Conclusions of check runs by name; null: it runs. */
    readonly checks = new Map<string, string | null>();
    /** Texts of comments by id. */
    readonly comments = new Map<number, string>();
    readonly #server: Server;

    constructor(kind: Sender = 'github') {
        this.kind = kind;
        this.#server = createServer((request, response) => void this.#answer(request, response));
    }

    get url(): string {
        return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    }

    async start(): Promise<void> {
        await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    }

    async close(): Promise<void> {
        this.#server.closeAllConnections();
        await new Promise((resolve) => this.#server.close(resolve));
    }

    async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const chunks: Buffer[] = [];
        for await (const chunk of request) {
            chunks.push(chunk as Buffer);
        }
        const text = Buffer.concat(chunks).toString();
        const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://forge');
        const authorization = request.headers.authorization ?? '';
        const body = text === '' ? null : (JSON.parse(text) as Asked['body']);
        const method = request.method ?? '';
        this.asked.push({ method, path, authorization, body });
        const [status, answer] = this.#find({ method, path, authorization, body }, searchParams);
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }

    #find({ method, path, authorization, body }: Asked, query: URLSearchParams): [number, unknown] {
        if (this.kind === 'github' && path === '/app/installations/42/access_tokens' && method === 'POST') {
            return [201, { token: this.token, expires_at: '2030-01-01T00:00:00Z' }];
        }
        if (authorization !== `${this.kind === 'gitea' ? 'token' : 'Bearer'} ${this.token}`) {
            return [401, { message: 'Bad credentials' }];
        }
        return (
            this.#list(path, query) ??
            this.#checksOf(path) ??
            this.#comment(method, path, String(body?.['body'])) ?? [404, { message: 'Not Found' }]
        );
    }

    #list(path: string, query: URLSearchParams): [number, unknown] | null {
        const places = { github: '/installation/repositories', gitlab: '/projects', gitea: '/user/repos' };
        if (path !== places[this.kind]) {
            return null;
        }
        const size = pageSizes[this.kind];
        const from = (Number(query.get('page') ?? 1) - 1) * size;
        const page = this.repositories.slice(from, from + size);
        return [
            200,
            this.kind === 'github' ? { total_count: this.repositories.length, repositories: page } : page
        ];
    }

    #checksOf(path: string): [number, unknown] | null {
        const all = [...this.checks];
        if (this.kind === 'github' && path.endsWith('/check-runs')) {
            const runs = all.map(([name, conclusion]) => ({
                ...{ name, conclusion },
                status: conclusion === null ? 'in_progress' : 'completed'
            }));
            return [200, { total_count: runs.length, check_runs: runs }];
        }
        if (this.kind === 'gitlab' && path.endsWith('/statuses')) {
            const states = { success: 'success', failure: 'failed' } as const;
            return [
                200,
                all.map(([name, conclusion]) => ({
                    ...{ id: 1, name, ref: 'main', allow_failure: false },
                    status: conclusion === null ? 'running' : states[conclusion as keyof typeof states]
                }))
            ];
        }
        if (this.kind !== 'gitlab' && path.endsWith('/status')) {
            const statuses = all.map(([context, conclusion]) => ({
                context,
                status: conclusion ?? 'pending'
            }));
            return [200, { state: 'success', statuses: this.kind === 'gitea' ? statuses : [] }];
        }
        return null;
    }

    #comment(method: string, path: string, text: string): [number, unknown] | null {
        const isGitlab = this.kind === 'gitlab';
        const place = isGitlab
            ? /^\/projects\/acme%2Fshop\/merge_requests\/\d+\/notes(?:\/(\d+))?$/
            : /^\/repos\/acme\/shop\/issues\/(?:\d+\/comments|comments\/(\d+))$/;
        const found = place.exec(path);
        if (found === null) {
            return null;
        }
        const isNew = method === 'POST' && found[1] === undefined;
        if (!isNew && (method !== (isGitlab ? 'PUT' : 'PATCH') || found[1] === undefined)) {
            return [405, { message: 'Method Not Allowed' }];
        }
        const comment = isNew ? this.comments.size + 1 : Number(found[1]);
        this.comments.set(comment, text);
        return [isNew ? 201 : 200, { id: comment, body: text }];
    }
}
