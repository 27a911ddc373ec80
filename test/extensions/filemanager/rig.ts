/** The file manager in the test kit, with a root `main` on the machine of the test. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import {
    type Body,
    type Boundary,
    createTestHost,
    type TestClient,
    type TestHost,
    type TestTask
} from '@portico/testing';

import definition from '../../../extensions/filemanager/src/index.ts';
import { until } from '../../support/until.ts';

export const base = '/api/plugins/filemanager';

/** Where the root `main` is, as the plugin sees it. */
export const rootPath = '/root';

/** Of a failure, `data` is without its `reason`. Headers of failures are left out: they differ with each request. */
export interface Answer {
    readonly status: number;
    readonly code: number;
    readonly reason: string | null;
    readonly headers: Readonly<Record<string, string>>;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
    readonly data: any;
}

type Query = Readonly<Record<string, string | undefined>>;

export interface Ask {
    readonly role?: string;
    readonly user?: string;
    readonly query?: Query;
    readonly payload?: object;
    readonly headers?: Readonly<Record<string, string>>;
    readonly ifMatch?: string;
    readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
    /** Announced length; null or absent: that of the body, or none for a stream. */
    readonly length?: number | null;
}

export interface FilesRigOptions {
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly roles?: readonly string[];
    readonly forbidden?: readonly string[];
    readonly boundary?: Boundary;
}

/** What each role may do; `guests` is a role that the root `main` does not name. */
const permissions: Readonly<Record<string, readonly string[]>> = {
    admin: ['read', 'content', 'write', 'terminal', 'share', 'recordings'],
    operator: ['read', 'content', 'write'],
    viewer: ['read'],
    guests: ['read', 'content', 'write']
};

export class FilesRig {
    readonly host: TestHost;
    /** The folder of the root `main`. */
    readonly folder: string;
    /** A folder beside the root, which nothing may touch. */
    readonly outside: string;
    /** Kinds of what a generation holds without a request, such as its routes. */
    readonly #idle: ReadonlySet<string>;
    readonly #clients = new Map<string, TestClient>();

    constructor(host: TestHost) {
        this.host = host;
        this.folder = join(host.machine, rootPath);
        this.outside = join(host.machine, 'outside');
        // The thread for many small files waits some seconds for more work.
        this.#idle = new Set([...host.held().map(({ kind }) => kind), 'thread']);
    }

    at(...names: string[]): string {
        return join(this.folder, ...names);
    }

    as(role: string, user = role): TestClient {
        const key = `${role} ${user}`;
        const known = this.#clients.get(key);
        if (known !== undefined) {
            return known;
        }
        const client = this.host.as({
            username: user,
            permissions: permissions[role] ?? [],
            ...(role === 'admin' || role === 'operator' || role === 'viewer' ? { role } : {})
        });
        this.#clients.set(key, client);
        return client;
    }

    async get(path: string, query: Query = {}, ask: Ask = {}): Promise<Answer> {
        return this.call('GET', path, { query, ...ask });
    }

    async post(path: string, payload: object, ask: Ask = {}): Promise<Answer> {
        return this.call('POST', path, { payload, ...ask });
    }

    async put(path: string, body: NonNullable<Ask['body']>, ask: Ask = {}): Promise<Answer> {
        return this.call('PUT', '/content', { query: { root: 'main', path }, body, ...ask });
    }

    async remove(path: string, query: Query, ask: Ask = {}): Promise<Answer> {
        return this.call('DELETE', path, { query, ...ask });
    }

    async call(method: string, path: string, ask: Ask = {}): Promise<Answer> {
        const { role = 'admin', user, query = {}, payload, ifMatch, body, length } = ask;
        const headers = {
            ...(body === undefined ? {} : { 'content-type': 'application/octet-stream' }),
            ...(typeof length === 'number' ? { 'content-length': String(length) } : {}),
            ...ask.headers
        };
        const answer = await this.as(role, user).ask(method, path, payload ?? bodyOf(body), {
            query,
            headers,
            ...(ifMatch === undefined ? {} : { ifMatch })
        });
        const { status, reason } = answer;
        const code = answer.code ?? 0;
        if (code === 0) {
            return { status, code, reason, headers: Object.fromEntries(answer.headers), data: answer.data };
        }
        const { reason: _reason, ...data } = answer.data as { readonly reason: string };
        return { status, code, reason, headers: {}, data };
    }

    /** Reads a file, or a part of it. */
    async read(path: string, range?: string): Promise<Answer> {
        const answer = await this.as('admin').get('/content', {
            query: { root: 'main', path },
            headers: range === undefined ? {} : { range }
        });
        const { status, reason, code, text } = answer;
        const headers = Object.fromEntries(answer.headers);
        return { status, code: code ?? 0, reason, headers, data: code === null ? text : answer.data };
    }

    /** Speaks tus. */
    async tus(
        method: string,
        path: string,
        { role = 'admin', headers = {}, body }: Ask = {}
    ): Promise<{ readonly status: number; readonly headers: Headers; readonly reason: string | null }> {
        const sent = { ...(method === 'OPTIONS' ? {} : { 'tus-resumable': '1.0.0' }), ...headers };
        return this.as(role).ask(method, `/${path}`, bodyOf(body), { headers: sent });
    }

    /** Waits for the task of an answer and gives how it ended. */
    async task(answer: Answer): Promise<TestTask> {
        if (answer.status !== 202) {
            throw new Error(`No task, but ${answer.status} ${answer.reason ?? ''}`);
        }
        return this.host.tasks.wait(answer.data.id as number);
    }

    /** Cancels the task of an answer and gives how it ended. */
    async cancel(answer: Answer): Promise<TestTask> {
        return this.host.tasks.cancel(answer.data.id as number);
    }

    /** Files and programs that are still open when all requests are over: what a request held ends just after its answer. */
    async held(): Promise<readonly { readonly kind: string; readonly name: string }[]> {
        const held = (): ReturnType<TestHost['held']> =>
            this.host.held().filter(({ kind }) => !this.#idle.has(kind));
        await until(() => held().length === 0, 'everything to be closed').catch(() => undefined);
        return held();
    }

    /** Starts the plugin on the same data and ends it: what a start cleans up is then done. */
    async cleanUp(): Promise<void> {
        await this.host.start();
        await this.host.stop();
    }

    close(): Promise<void> {
        return this.host.close();
    }
}

export async function createFilesRig({
    settings = {},
    roles = ['operator', 'viewer'],
    forbidden = [],
    boundary = 'copy'
}: FilesRigOptions = {}): Promise<FilesRig> {
    const host = await createTestHost(definition, {
        package: new URL('../../../extensions/filemanager', import.meta.url),
        forbidden,
        boundary,
        // Copies of hundreds of files take longer on a busy machine than a test usually waits.
        timing: { patienceMs: 60_000 }
    });
    const rig = new FilesRig(host);
    mkdirSync(rig.folder);
    mkdirSync(rig.outside);
    host.programs.real('getent');
    host.programs.real('bash');
    await host.setSettings({ roots: [{ name: 'main', path: rootPath, roles }], ...settings });
    return rig;
}

function bodyOf(body: Ask['body']): Body {
    return typeof body === 'object' && !(body instanceof Uint8Array) ? ReadableStream.from(body) : body;
}
