/** Servers in containers: each is a stack of the plugin `container`, with one service and one volume. */
import type { ContainerContract, ContainerStack } from '@portico/plugin-container/contract';
import { errors, isFailure, type Remote, type ServiceInfo } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { KindName } from '../../kinds/kind.ts';
import type { Ctx } from '../../settings.ts';
import type { OptionValue } from '../engine.ts';
import type { ManagedServer } from '../rows.ts';
import { images } from './images.ts';

const [service, volume] = ['server', 'data'] as const;
const stopSeconds = 60;
/** Lines that say why a server did not start. */
const lastLines = 8;
/** From here on the last two digits of a code mean what the plugin says that failed. */
const firstOwnCode = 50;
/** Containers do not run as they should. */
const deployFailed = 42252;

/** Makes, starts, stops and removes them. */
export class Containers {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** @throws TOOL_MISSING 50302 without the plugin `container` or its engine, SERVER_OFFLINE 50350 where that gives no answer */
    async check(): Promise<void> {
        await this.#ask(null, (container) => container.engine({}));
    }

    /** How a server runs; null where there is no stack of it. @throws TOOL_MISSING 50302, SERVER_OFFLINE 50350 without an engine */
    async info(id: number): Promise<ServiceInfo | null> {
        const stack = await this.#ask(id, (container) => container.stack({ name: stackOf(id) }));
        return stack === null ? null : infoOf(stack);
    }

    /** As {@link info}; where the engine cannot be asked, whether the server answers says how it is. */
    async look(id: number): Promise<ServiceInfo | null> {
        return this.info(id).catch(() => ({ ...infoAt(id), state: 'running' as const }));
    }

    /** Brings the image of a release where the engine has none, so that a server need not wait for it. @throws SERVER_OFFLINE 50350 */
    async pull(kind: KindName, release: string, signal: AbortSignal): Promise<void> {
        const image = imageOf(kind, release);
        await this.#ask(null, (container) => container.pull({ image, missing: true }, { signal }));
    }

    /** Makes the stack of a server what it should be, and starts it. A change that does not start is taken back. @throws SERVER_OFFLINE 50350 */
    async put(
        { server, managed }: ManagedServer,
        options: Readonly<Record<string, OptionValue>>
    ): Promise<void> {
        const { id, kind, port } = server;
        const password = server.password === null ? '' : await this.#ctx.secrets.open(server.password);
        const compose = composeOf({ kind, port, ...managed }, options, password);
        await this.#ask(id, (container) =>
            container.apply({
                name: stackOf(id),
                compose,
                description: `Database server ${server.name}`,
                // What a new server, or one of another release, has printed is read before it goes.
                onFailure: managed.phase === 'ready' ? 'rollback' : 'keep'
            })
        );
    }

    /** Starts, stops or restarts a server, and waits until its container did so. @throws SERVER_OFFLINE 50350 */
    async change(id: number, action: 'start' | 'stop' | 'restart'): Promise<void> {
        await this.#ask(id, (container) => container.control({ stack: stackOf(id), action }));
    }

    /** Removes a server. Returns the name of the volume with its data; null where they are gone, too. */
    async remove(id: number, keepsData: boolean): Promise<string | null> {
        await this.#ask(id, (container) => container.remove({ stack: stackOf(id), volumes: !keepsData }));
        return keepsData ? `volume ${stackOf(id)}_${volume}` : null;
    }

    /** Lines that a server prints. */
    async *lines(
        id: number,
        {
            signal,
            ...options
        }: { readonly tail: number; readonly follow: boolean; readonly signal: AbortSignal }
    ): AsyncGenerator<string> {
        for await (const { text } of this.#container.logs({ stack: stackOf(id), ...options }, { signal })) {
            yield text;
        }
    }

    /** Keeps the data of a server as they are now; stop it before. */
    async snapshot(id: number): Promise<{ readonly snapshot: string; readonly bytes: number }> {
        return this.#ask(id, (container) => container.snapshot({ stack: stackOf(id), volumes: [volume] }));
    }

    /** Brings data back as they were. */
    async restore(id: number, snapshot: string): Promise<void> {
        await this.#ask(id, (container) => container.restore({ stack: stackOf(id), snapshot }));
    }

    /** Forgets data that were kept. */
    async drop(id: number, snapshot: string): Promise<void> {
        await this.#ask(id, (container) => container.dropSnapshot({ stack: stackOf(id), snapshot }));
    }

    /** What a server printed before it ended; nothing where it cannot be read. */
    async #lastLines(id: number): Promise<readonly string[]> {
        const lines: string[] = [];
        try {
            const options = { tail: lastLines, follow: false, signal: this.#ctx.signal };
            for await (const line of this.lines(id, options)) {
                lines.push(line);
            }
        } catch {
            // Then what the engine said is all that there is.
        }
        return lines;
    }

    get #container(): Remote<ContainerContract> {
        const { container } = this.#ctx.plugins;
        if (container === undefined) {
            throw errors.toolMissing('the plugin container', 'portico plugin enable container');
        }
        return container;
    }

    /** Codes that only the plugin `container` knows would mean something else here. */
    async #ask<T>(
        id: number | null,
        work: (container: Remote<ContainerContract>) => PromiseLike<T>
    ): Promise<T> {
        try {
            return await work(this.#container);
        } catch (error) {
            if (isFailure(error) && error.code % 100 >= firstOwnCode) {
                const lines = id !== null && error.code === deployFailed ? await this.#lastLines(id) : [];
                const message = [`its container: ${error.message}`, ...lines].join('; ').slice(0, 2_000);
                throw fail.SERVER_OFFLINE({ message }, { cause: error });
            }
            throw error;
        }
    }
}

function imageOf(kind: KindName, release: string): string {
    return `${images[kind].name}:${release}`;
}

function stackOf(id: number): string {
    return `database-${id}`;
}

function infoAt(id: number): ServiceInfo {
    return { name: stackOf(id), state: 'stopped', pid: null, startedAt: null, exits: 0, lastExit: null };
}

function infoOf({ name, state }: ContainerStack): ServiceInfo {
    const isUp = state === 'running' || state === 'starting';
    return {
        ...{ name, pid: null, startedAt: null, exits: 0, lastExit: null },
        state: isUp ? 'running' : state === 'degraded' ? 'failed' : 'stopped'
    };
}

/** The compose file of a server. In its texts `$` would begin a variable. */
function composeOf(
    {
        kind,
        port,
        release,
        memoryBytes
    }: Pick<ManagedServer['server'], 'kind' | 'port'> &
        Pick<ManagedServer['managed'], 'release' | 'memoryBytes'>,
    options: Readonly<Record<string, OptionValue>>,
    password: string
): string {
    const image = images[kind];
    const { command, environment, files, secrets } = image.run(options, password);
    const [configs, hidden] = [files, secrets].map((texts) =>
        Object.entries(texts).map(([target, content], index) => ({ key: `file${index}`, target, content }))
    );
    const declared = (given: typeof configs = []) =>
        Object.fromEntries(
            given.map(({ key, content }) => [key, { content: content.replaceAll('$', '$$$$') }])
        );
    const used = (given: typeof configs = []) => given.map(({ key, target }) => ({ source: key, target }));
    return JSON.stringify({
        services: {
            [service]: {
                image: imageOf(kind, release),
                command,
                environment,
                ports: [`127.0.0.1:${port}:${image.port}`],
                volumes: [`${volume}:${image.folder}`],
                configs: used(configs),
                secrets: used(hidden),
                restart: 'unless-stopped',
                stop_grace_period: `${stopSeconds}s`,
                // What parallel workers of PostgreSQL share.
                shm_size: '256m',
                ...(memoryBytes === null ? {} : { mem_limit: `${memoryBytes}b` })
            }
        },
        volumes: { [volume]: {} },
        configs: declared(configs),
        secrets: declared(hidden)
    });
}
