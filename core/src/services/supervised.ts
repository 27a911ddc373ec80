/** Services under the panel's own supervisor: a process that outlives the panel, and is found again by its socket and its lock. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { readLog } from '../platform/log/file.ts';
import {
    type OutputOptions,
    type ServiceCommand,
    type ServiceLine,
    serviceName,
    type ServicesPort,
    type ServiceStatus,
    ServicesUnavailable,
    ServiceUnknown
} from './port.ts';
import { startSupervisor } from './supervisor/service/watchdog.ts';
import { Connection } from './supervisor/socket/connection.ts';
import { type Calls, ownerMark, protocolVersion, servicesFolder } from './supervisor/socket/protocol.ts';

/** What supervised services work with. */
export interface SupervisedOptions {
    /** The supervisor's own folder, absolute. */
    readonly folder: string;
    readonly log: { warn(message: string, fields?: object): void };
    /** Is done before the supervisor is asked for the first time. */
    readonly prepare?: () => Promise<void>;
}

/** How long a supervisor may take until its socket answers. */
const startMs = 15_000;
const pollMs = 20;
const againMs = 1_000;

/** Services under the panel's own supervisor. */
export class SupervisedServices implements ServicesPort {
    readonly #options: SupervisedOptions;
    readonly #closing = new AbortController();
    /** Followers of the output of a service end when the service is removed. */
    readonly #followed = new Map<string, AbortController>();
    #connection: Promise<Connection> | null = null;
    #prepared: Promise<void> | null = null;
    /** What `#connection` became. */
    #current: Connection | null = null;

    constructor(options: SupervisedOptions) {
        this.#options = options;
    }

    async open(): Promise<void> {
        if (this.#hasServices()) {
            await this.#connected().catch((error: unknown) =>
                this.#options.log.warn('The supervisor of services does not answer', { error })
            );
        }
    }

    put(owner: string, name: string, command: ServiceCommand): Promise<ServiceStatus> {
        return this.#call('put', { owner, name, command });
    }

    async list(owner: string): Promise<readonly ServiceStatus[]> {
        return this.#hasServices() ? this.#call('list', { owner }) : [];
    }

    start(owner: string, name: string): Promise<ServiceStatus> {
        return this.#known(owner, name, () => this.#call('start', { owner, name }));
    }

    stop(owner: string, name: string): Promise<ServiceStatus> {
        return this.#known(owner, name, () => this.#call('stop', { owner, name }));
    }

    restart(owner: string, name: string): Promise<ServiceStatus> {
        return this.#known(owner, name, () => this.#call('restart', { owner, name }));
    }

    reload(owner: string, name: string): Promise<ServiceStatus> {
        return this.#known(owner, name, () => this.#call('reload', { owner, name }));
    }

    async remove(owner: string, name: string): Promise<void> {
        if (this.#hasServices()) {
            await this.#call('remove', { owner, name });
        }
        this.#followed.get(`${owner}${ownerMark}${name}`)?.abort();
    }

    async adopt(from: string, to: string): Promise<void> {
        const before = `${from}${ownerMark}`;
        if (this.#names().some((id) => id.startsWith(before))) {
            await this.#call('adopt', { from, to });
        }
        this.#followed.forEach((following, id) => id.startsWith(before) && following.abort());
    }

    async *output(owner: string, name: string, options: OutputOptions): AsyncGenerator<ServiceLine> {
        const id = `${owner}${ownerMark}${name}`;
        const folder = join(this.#options.folder, servicesFolder, id);
        if (!serviceName.test(name) || !this.#names().includes(id)) {
            throw new ServiceUnknown(`There is no service ${name}`);
        }
        const removed = this.#followed.get(id) ?? new AbortController();
        this.#followed.set(id, removed);
        const lines = readLog(
            { paths: [join(folder, 'output.log')], uids: [process.getuid?.() ?? 0] },
            {
                lines: options.tail,
                follow: options.follow,
                signal: AbortSignal.any([options.signal, removed.signal, this.#closing.signal])
            }
        );
        for await (const line of lines) {
            const [, at, stream, text] = /^(\d+) (stdout|stderr) (.*)$/.exec(line) ?? [];
            if (at !== undefined && text !== undefined) {
                yield { at: Number(at), stream: stream as ServiceLine['stream'], text };
            }
        }
    }

    async close(): Promise<void> {
        this.#closing.abort();
        const connection = await this.#connection?.catch(() => null);
        this.#connection = null;
        connection?.close();
    }

    /** A name that is on no disk is unknown: no supervisor is started to say so. */
    async #known<T>(owner: string, name: string, work: () => Promise<T>): Promise<T> {
        if (!this.#names().includes(`${owner}${ownerMark}${name}`)) {
            throw new ServiceUnknown(`There is no service ${name}`);
        }
        return work();
    }

    #names(): readonly string[] {
        try {
            return readdirSync(join(this.#options.folder, servicesFolder));
        } catch {
            return [];
        }
    }

    #hasServices(): boolean {
        return this.#names().length > 0;
    }

    /** Calls the supervisor. A supervisor that ends during the call is replaced, and asked once more: each call may be repeated. */
    async #call<K extends keyof Calls>(
        method: K,
        input: Parameters<Calls[K]>[0]
    ): Promise<ReturnType<Calls[K]>> {
        const first = await this.#connected();
        try {
            return await first.call(method, input);
        } catch (error) {
            if (!(error instanceof ServicesUnavailable) || this.#closing.signal.aborted) {
                throw error;
            }
            this.#drop(first);
            return (await this.#connected()).call(method, input);
        }
    }

    #drop(connection: Connection): void {
        if (this.#current === connection) {
            this.#current = this.#connection = null;
        }
    }

    #connected(): Promise<Connection> {
        this.#connection ??= this.#connect().catch((error: unknown) => {
            this.#connection = null;
            throw error;
        });
        return this.#connection;
    }

    /** Connects to the supervisor. Where none is, one is started; one of another version is replaced. */
    async #connect(): Promise<Connection> {
        const { folder } = this.#options;
        await this.#prepare();
        const end = performance.now() + startMs;
        let startedAt = -Infinity;
        for (;;) {
            this.#closing.signal.throwIfAborted();
            const connection = await Connection.open(folder);
            if (connection !== null && (await this.#isCurrent(connection))) {
                this.#current = connection;
                void connection.closed.then(() => this.#lost(connection));
                return connection;
            }
            if (performance.now() > end) {
                throw new ServicesUnavailable(
                    `The supervisor of services does not answer; ${join(folder, 'supervisor.log')} may say why`
                );
            }
            if (connection === null && performance.now() - startedAt > againMs) {
                startSupervisor(folder);
                startedAt = performance.now();
            }
            await wait(pollMs);
        }
    }

    /** What failed is tried again by the next call. */
    #prepare(): Promise<void> {
        this.#prepared ??= (this.#options.prepare?.() ?? Promise.resolve()).catch((error: unknown) => {
            this.#prepared = null;
            throw error;
        });
        return this.#prepared;
    }

    /** False when the supervisor ended, or is another version, which is then asked to end. */
    async #isCurrent(connection: Connection): Promise<boolean> {
        try {
            const { version } = await connection.call('hello', {});
            if (version === protocolVersion) {
                return true;
            }
            await connection.call('retire', {});
            await connection.closed;
        } catch (error) {
            if (!(error instanceof ServicesUnavailable)) {
                throw error;
            }
        }
        return false;
    }

    /** The supervisor ended. Where there are services it is started again at once. */
    async #lost(connection: Connection): Promise<void> {
        this.#drop(connection);
        while (!this.#closing.signal.aborted && this.#connection === null && this.#hasServices()) {
            await wait(againMs, undefined, { ref: false });
            if (!this.#closing.signal.aborted) {
                await this.open();
            }
        }
    }
}
