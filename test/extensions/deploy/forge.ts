/** The API of a forge, as GitHub answers: tokens of an app, repositories, checks of commits, comments. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What was asked. */
export interface Asked {
    readonly method: string;
    readonly path: string;
    readonly authorization: string;
    readonly body: Readonly<Record<string, unknown>> | null;
}

/** A GitHub that knows one app with one installation. */
export class Forge {
    readonly asked: Asked[] = [];
    /** The token that the app gets. */
    readonly token = 'ghs_installation-of-the-test';
    readonly repositories: object[] = [];
    /** Conclusions of check runs by name; null: it runs. */
    readonly checks = new Map<string, string | null>();
    /** Texts of comments by id. */
    readonly comments = new Map<number, string>();
    readonly #server: Server;

    constructor() {
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
        const { pathname: path } = new URL(request.url ?? '/', 'http://forge');
        const authorization = request.headers.authorization ?? '';
        const body = text === '' ? null : (JSON.parse(text) as Asked['body']);
        const method = request.method ?? '';
        this.asked.push({ method, path, authorization, body });
        const [status, answer] = this.#find(method, path, authorization, body);
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }

    #find(method: string, path: string, authorization: string, body: Asked['body']): [number, unknown] {
        if (path === '/app/installations/42/access_tokens' && method === 'POST') {
            return [201, { token: this.token, expires_at: '2030-01-01T00:00:00Z' }];
        }
        if (authorization !== `Bearer ${this.token}`) {
            return [401, { message: 'Bad credentials' }];
        }
        if (path === '/installation/repositories') {
            return [200, { total_count: this.repositories.length, repositories: this.repositories }];
        }
        if (path.endsWith('/check-runs')) {
            const runs = [...this.checks].map(([name, conclusion]) => ({
                ...{ name, conclusion },
                status: conclusion === null ? 'in_progress' : 'completed'
            }));
            return [200, { total_count: runs.length, check_runs: runs }];
        }
        if (path.endsWith('/status')) {
            return [200, { state: 'success', statuses: [] }];
        }
        const [, id] = /\/issues\/comments\/(\d+)$/.exec(path) ?? [];
        const isNew = method === 'POST' && path.endsWith('/comments');
        if (isNew || (method === 'PATCH' && id !== undefined)) {
            const comment = isNew ? this.comments.size + 1 : Number(id);
            this.comments.set(comment, String(body?.['body']));
            return [isNew ? 201 : 200, { id: comment }];
        }
        return [404, { message: 'Not Found' }];
    }
}
