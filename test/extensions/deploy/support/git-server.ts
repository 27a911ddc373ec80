/** A git server: bare repositories behind `git http-backend`, as forges serve them, and commits to push there. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';

/** Files of a commit: their texts, or `{ link }` for a symbolic link. */
export type Tree = Readonly<Record<string, string | Buffer | { readonly link: string }>>;

const environment = {
    PATH: '/usr/bin:/bin',
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.test',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.test'
};

/** Runs git. */
export function git(folder: string, ...args: readonly string[]): string {
    return execFileSync('git', ['-C', folder, ...args], {
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe']
    })
        .toString()
        .trim();
}

/** Serves the bare repositories of a folder over HTTP, some of them for a password only. */
export class GitServer {
    readonly top: string;
    /** What was asked: path, and the user that was let in. */
    readonly asked: { readonly path: string; readonly user: string | null }[] = [];
    /** Repositories that need `user:password`. */
    readonly passwords = new Map<string, string>();
    /** Answers before git does, where it returns true. */
    intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
    readonly #server: Server;

    constructor(top: string) {
        this.top = top;
        mkdirSync(top, { recursive: true });
        this.#server = createServer((request, response) => this.#answer(request, response));
    }

    get port(): number {
        return (this.#server.address() as AddressInfo).port;
    }

    async start(): Promise<void> {
        await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    }

    url(name: string): string {
        return `http://127.0.0.1:${this.port}/${name}.git`;
    }

    /** Makes a repository with a first commit on `main`, and gives its id. */
    create(name: string, tree: Tree): string {
        const bare = join(this.top, `${name}.git`);
        mkdirSync(bare, { recursive: true });
        git(bare, 'init', '--quiet', '--bare', '--initial-branch=main');
        const work = this.work(name);
        mkdirSync(work, { recursive: true });
        git(work, 'init', '--quiet', '--initial-branch=main');
        git(work, 'remote', 'add', 'origin', bare);
        return this.commit(name, tree, 'First');
    }

    /** The folder in which commits of a repository are made. */
    work(name: string): string {
        return join(this.top, `${name}.work`);
    }

    /** Commits files over those that are there, pushes, and gives the id. */
    commit(name: string, tree: Tree, message = 'Change', branch = 'main'): string {
        const work = this.work(name);
        for (const [path, content] of Object.entries(tree)) {
            const file = join(work, path);
            mkdirSync(dirname(file), { recursive: true });
            rmSync(file, { force: true });
            if (typeof content === 'string' || Buffer.isBuffer(content)) {
                writeFileSync(file, content);
            } else {
                symlinkSync(content.link, file);
            }
        }
        git(work, 'add', '--all');
        git(work, 'commit', '--quiet', '--allow-empty', '--message', message);
        git(work, 'push', '--quiet', 'origin', `HEAD:refs/heads/${branch}`);
        return git(work, 'rev-parse', 'HEAD');
    }

    async close(): Promise<void> {
        this.#server.closeAllConnections();
        await new Promise((resolve) => this.#server.close(resolve));
    }

    #answer(request: IncomingMessage, response: ServerResponse): void {
        const url = new URL(request.url ?? '/', 'http://server');
        const name = /^\/(.+?)\.git\//.exec(url.pathname)?.[1] ?? '';
        const [, sent = ''] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
        const given = Buffer.from(sent, 'base64').toString();
        this.asked.push({ path: url.pathname, user: given === '' ? null : given });
        if (this.intercept(request, response)) {
            return;
        }
        const wanted = this.passwords.get(name);
        if (wanted !== undefined && wanted !== given) {
            response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
            return;
        }
        const child = spawn('git', ['http-backend'], {
            env: {
                ...environment,
                GIT_PROJECT_ROOT: this.top,
                GIT_HTTP_EXPORT_ALL: '1',
                PATH_INFO: url.pathname,
                QUERY_STRING: url.search.slice(1),
                REQUEST_METHOD: request.method ?? 'GET',
                CONTENT_TYPE: request.headers['content-type'] ?? '',
                HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
                GIT_PROTOCOL: String(request.headers['git-protocol'] ?? '')
            },
            stdio: ['pipe', 'pipe', 'ignore']
        });
        request.pipe(child.stdin);
        child.stdin.on('error', () => undefined);
        let head: Buffer | null = Buffer.alloc(0);
        child.stdout.on('data', (chunk: Buffer) => {
            if (head === null) {
                response.write(chunk);
                return;
            }
            head = Buffer.concat([head, chunk]);
            const end = head.indexOf('\r\n\r\n');
            if (end !== -1) {
                const lines = head.toString('latin1', 0, end).split('\r\n');
                const fields = lines.map((line) => line.split(': ') as [string, string]);
                const status = fields.find(([field]) => field === 'Status')?.[1] ?? '200';
                response.writeHead(
                    Number.parseInt(status, 10),
                    Object.fromEntries(fields.filter(([field]) => field !== 'Status'))
                );
                response.write(head.subarray(end + 4));
                head = null;
            }
        });
        child.once('close', () => response.end());
    }
}
