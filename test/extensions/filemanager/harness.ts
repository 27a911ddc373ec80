/** The file manager behind the real boundary, on the real database and the real descriptor walk; only the doors that reach the panel itself are stand-ins. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Grants } from '@portico/sdk/host';

import { openPluginDatabase } from '../../../core/src/plugins/runtime/database.ts';
import { createFiles } from '../../../core/src/plugins/runtime/files/files.ts';
import { machinePrograms } from '../../../core/src/plugins/runtime/programs/machine.ts';
import { Programs } from '../../../core/src/plugins/runtime/programs/programs.ts';
import definition from '../../../extensions/filemanager/src/index.ts';
import {
    createGuest,
    type Guest,
    type HostApi,
    type PlainRequest,
    type RouteDocument,
    Scope
} from '../../../sdk/src/host.ts';
import { type Child, isFailure, type SpawnOptions, type TaskView } from '../../../sdk/src/index.ts';

export interface Answer {
    readonly status: number;
    readonly code: number;
    readonly reason: string | null;
    readonly headers: Readonly<Record<string, string>>;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
    readonly data: any;
}

export interface Ask {
    readonly role?: string;
    readonly user?: string;
    readonly query?: object;
    readonly payload?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    readonly ifMatch?: string;
    readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
    /** Announced length; default: that of the body. */
    readonly length?: number | null;
    readonly signal?: AbortSignal;
}

export interface HarnessOptions {
    readonly settings?: object;
    readonly roles?: readonly string[];
    /** Stands for a terminal: this machine may have none. */
    readonly pty?: (args: readonly string[], options: SpawnOptions) => Promise<Child>;
}

export class Harness {
    /** The folder of the root `main`. */
    readonly folder: string;
    /** A folder beside the root, which nothing may touch. */
    readonly outside: string;
    readonly logged: string[] = [];
    readonly audited: unknown[] = [];
    guest!: Guest;
    routes: readonly RouteDocument[] = [];
    scope = new Scope();
    readonly #base: string;
    readonly #options: HarnessOptions;
    readonly #tasks = new Map<
        number,
        { view: TaskView; readonly done: Promise<void>; readonly abort: AbortController }
    >();
    readonly schedules = new Map<
        string,
        (input: {
            readonly at: Date;
            readonly missed: boolean;
            readonly signal: AbortSignal;
        }) => Promise<void>
    >();

    private constructor(base: string, options: HarnessOptions) {
        this.#base = base;
        this.#options = options;
        this.folder = join(base, 'root');
        this.outside = join(base, 'outside');
    }

    static async start(options: HarnessOptions = {}): Promise<Harness> {
        const harness = new Harness(mkdtempSync(join(tmpdir(), 'portico-filemanager-')), options);
        const { mkdir } = await import('node:fs/promises');
        await Promise.all(['root', 'outside', 'data'].map((name) => mkdir(join(harness.#base, name))));
        await harness.begin();
        return harness;
    }

    /** A new generation on the same data. */
    async begin(): Promise<void> {
        const scope = (this.scope = new Scope());
        const grants = new Grants('filemanager', { files: ['*'], exec: ['*'], users: ['*'] }, () => ({
            files: ['*'],
            exec: ['*'],
            users: ['*']
        }));
        const data = join(this.#base, 'data');
        const db = await openPluginDatabase({
            dataDir: data,
            entities: definition.entities,
            migrations: definition.migrations
        });
        const programs = new Programs({
            grants,
            scope,
            machine: machinePrograms,
            folder: data,
            used: () => undefined
        });
        const local = {
            db,
            fetch: globalThis.fetch,
            files: (root: string) =>
                createFiles(root, { grants, scope, own: data, machine: '', forbidden: () => [] }),
            dial: () => {
                throw new Error('not here');
            },
            exec: (file: string, args: readonly string[], options = {}) => programs.exec(file, args, options),
            spawn: (file: string, args: readonly string[], options: SpawnOptions = {}) =>
                options.pty !== undefined && this.#options.pty !== undefined
                    ? this.#options.pty(args, options)
                    : programs.spawn(file, args, options),
            release: async () => {
                const release = await scope.release();
                await db.close();
                return release;
            }
        };
        this.guest = createGuest({
            name: 'filemanager',
            version: '1.0.0',
            dataDir: data,
            definition,
            hostApi: this.#doors(),
            local: local as never,
            checkReturns: true
        });
        const { values } = await this.guest.readSettings({
            values: {
                roots: [
                    {
                        name: 'main',
                        path: this.folder,
                        roles: [...(this.#options.roles ?? ['operator', 'viewer'])]
                    }
                ],
                ...this.#options.settings
            }
        });
        this.routes = (await this.guest.setup({ settings: values, partners: [] })).routes;
        await this.guest.start({ signal: new AbortController().signal });
    }

    /** Ends the generation, as disabling does. */
    async end(): Promise<Awaited<ReturnType<Guest['end']>>> {
        this.#tasks.forEach(({ abort }) => abort.abort(new Error('ended')));
        await Promise.all([...this.#tasks.values()].map(({ done }) => done));
        await this.guest.stop({ signal: new AbortController().signal });
        return this.guest.end({});
    }

    async close(): Promise<void> {
        await this.end();
        rmSync(this.#base, { recursive: true, force: true });
    }

    at(...names: string[]): string {
        return join(this.folder, ...names);
    }

    async get(path: string, query: object = {}, ask: Ask = {}): Promise<Answer> {
        return this.call('GET', path, { query, ...ask });
    }

    async post(path: string, payload: unknown, ask: Ask = {}): Promise<Answer> {
        return this.call('POST', path, { payload, ...ask });
    }

    async put(path: string, body: NonNullable<Ask['body']>, ask: Ask = {}): Promise<Answer> {
        return this.call('PUT', '/content', { query: { root: 'main', path }, body, ...ask });
    }

    async remove(path: string, query: object, ask: Ask = {}): Promise<Answer> {
        return this.call('DELETE', path, { query, ...ask });
    }

    async call(method: string, path: string, ask: Ask = {}): Promise<Answer> {
        const route = this.routes.find((one) => one.path === path && one.methods.includes(method));
        if (route === undefined) {
            throw new Error(`No route ${method} ${path}`);
        }
        return this.#answering(async () => {
            const input = {
                route: route.id,
                request: this.#request(ask),
                signal: ask.signal ?? new AbortController().signal
            };
            const { status, headers, json } =
                route.kind === 'upload'
                    ? await this.guest.upload({
                          ...input,
                          request: {
                              ...input.request,
                              type: 'application/octet-stream',
                              length: lengthOf(ask)
                          },
                          body: ReadableStream.from(chunks(ask.body ?? '')) as never
                      })
                    : await this.guest.json(input);
            return { status, code: 0, reason: null, headers, data: JSON.parse(json) as unknown };
        });
    }

    /** Reads a file, or a part of it. */
    async read(
        path: string,
        ask: Ask & { readonly range?: { readonly start: number; readonly end: number | null } } = {}
    ): Promise<Answer> {
        return this.#answering(async () => {
            const file = await this.guest.download({
                route: 'read',
                request: this.#request({ query: { root: 'main', path }, ...ask }),
                signal: new AbortController().signal
            });
            try {
                const parts: Uint8Array[] = [];
                for await (const chunk of (await file.open(ask.range ?? { start: 0, end: null })).body) {
                    parts.push(chunk);
                }
                return {
                    status: 200,
                    code: 0,
                    reason: null,
                    headers: { etag: file.version ?? '', type: file.type, size: String(file.size) },
                    data: Buffer.concat(parts).toString('utf8')
                };
            } finally {
                await file.close();
            }
        });
    }

    /** Speaks tus. */
    async tus(
        method: string,
        path: string,
        { headers = {}, body, ...ask }: Ask = {}
    ): Promise<{ readonly status: number; readonly headers: Headers; readonly reason: string | null }> {
        const [base = '', id] = path.split('?')[0]?.replace(/^\//, '').split('/') ?? [];
        const route = this.routes.find(
            (one) => one.kind === 'http' && one.path === (id === undefined ? `/${base}` : `/${base}/{id}`)
        );
        const url = new URL(path, 'http://panel/api/plugins/filemanager/');
        const sent = { ...(method === 'OPTIONS' ? {} : { 'tus-resumable': '1.0.0' }), ...headers };
        const answer = await this.guest.http({
            route: route?.id ?? '',
            method,
            url: url.href,
            body: body === undefined ? null : (ReadableStream.from(chunks(body)) as never),
            signal: ask.signal ?? new AbortController().signal,
            request: {
                ...this.#request({ ...ask, query: Object.fromEntries(url.searchParams), headers: sent }),
                params: id === undefined ? {} : { id }
            }
        });
        const text = answer.body === null ? '' : await new Response(answer.body).text();
        return {
            status: answer.status,
            headers: new Headers(answer.headers.map(([name, value]) => [name, value])),
            reason: text === '' ? null : (JSON.parse(text) as { data: { reason: string } }).data.reason
        };
    }

    /** Waits for the task of an answer and gives how it ended. */
    async task(answer: Answer): Promise<TaskView> {
        if (answer.status !== 202) {
            throw new Error(`No task, but ${answer.status} ${answer.reason ?? ''}`);
        }
        const task = this.#tasks.get(answer.data.id as number);
        await task?.done;
        return task?.view as TaskView;
    }

    cancel(answer: Answer): void {
        this.#tasks.get(answer.data.id as number)?.abort.abort(new Error('cancelled'));
    }

    request(ask: Ask): PlainRequest {
        return this.#request(ask);
    }

    #request({ role = 'admin', user = role, query = {}, payload, headers = {}, ifMatch }: Ask): PlainRequest {
        const permissions = {
            admin: ['read', 'content', 'write', 'terminal'],
            operator: ['read', 'content', 'write']
        }[role] ?? ['read'];
        return {
            handle: 1,
            actor: {
                kind: 'user',
                id: 1,
                username: user,
                role,
                tokenId: null,
                permissions: permissions.map((name) => `filemanager:${name}`),
                key: `user:${user}`,
                all: false
            },
            id: 'test',
            params: {},
            query,
            payload,
            headers,
            ip: '127.0.0.1',
            ifMatch: ifMatch ?? null,
            idempotencyKey: null,
            lastEventId: null,
            ticket: null
        };
    }

    async #answering(work: () => Promise<Answer>): Promise<Answer> {
        try {
            return await work();
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            return {
                status: Math.floor(error.code / 100),
                code: error.code,
                reason: error.reason,
                headers: {},
                data: error.data
            };
        }
    }

    #doors(): HostApi {
        const doors: Partial<HostApi> = {
            log: async ({ level, message, fields }) =>
                void this.logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
            detail: async () => undefined,
            audit: async (entry) => void this.audited.push(entry),
            schedule: async ({ name, run }) => void this.schedules.set(name, run),
            ticket: async () => ({ ticket: 'one-time', expiresAt: new Date(Date.now() + 30_000) }),
            task: async ({ options, run }) => {
                const id = this.#tasks.size + 1;
                const abort = new AbortController();
                const now = new Date().toISOString();
                const entry = {
                    view: {
                        id,
                        kind: options.kind,
                        state: 'running',
                        progress: null,
                        startedAt: now,
                        finishedAt: null,
                        result: null,
                        error: null
                    } as TaskView,
                    abort,
                    done: Promise.resolve()
                };
                const work = run({
                    id,
                    signal: abort.signal,
                    asker: null,
                    progress: async () => undefined,
                    log: async () => undefined
                });
                const done = work.then(
                    ({ result }) => {
                        entry.view = { ...entry.view, state: 'succeeded', result };
                    },
                    (error: unknown) => {
                        const { code, reason, message, data } = error as {
                            code: number;
                            reason: string;
                            message: string;
                            data: unknown;
                        };
                        entry.view = {
                            ...entry.view,
                            state: abort.signal.aborted ? 'cancelled' : 'failed',
                            error: { code, reason, message, data }
                        };
                    }
                );
                entry.done = done;
                this.#tasks.set(id, entry);
                return { ...entry.view };
            }
        };
        return doors as HostApi;
    }
}

function lengthOf({ body = '', length }: Ask): number | null {
    return length !== undefined
        ? length
        : typeof body === 'string'
          ? Buffer.byteLength(body)
          : body instanceof Uint8Array
            ? body.byteLength
            : null;
}

async function* chunks(body: NonNullable<Ask['body']>): AsyncGenerator<Uint8Array> {
    if (typeof body === 'string' || body instanceof Uint8Array) {
        yield Buffer.from(body as string);
    } else {
        yield* body;
    }
}
