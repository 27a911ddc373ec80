/** Builds of images: begun with their options, given their context, and run. */
import { randomBytes } from 'node:crypto';

import { type Actor, errors, type TaskView } from '@portico/sdk';

import { type Engine, wholly } from '../engine/engine.ts';
import { fail } from '../errors.ts';
import type { ProgressLine } from '../images/progress.ts';
import type { Registries } from '../images/registries.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import type { Storage } from '../storage/storage.ts';
import { readJsonLines } from '../streams/frames.ts';

/** What an image is built from, and the name that it gets. */
export interface BuildInput {
    /** The name that the image gets. */
    readonly tag: string;
    /** Path in the context. */
    readonly dockerfile: string;
    /** A stage of the file; null: the last. */
    readonly target: string | null;
    readonly args: Readonly<Record<string, string>>;
    readonly noCache: boolean;
    /** Whether its commands have a network. */
    readonly network: boolean;
    /** The most that one of its commands takes; null: what there is. */
    readonly memoryBytes: number | null;
    readonly cpus: number | null;
}

/** A step of a build: text that it printed, how far it is, or at the end the id of the image. */
export interface BuildEvent {
    readonly text?: string;
    /** 0 to 1. */
    readonly progress?: number;
    readonly image?: string;
}

interface Begun extends BuildInput {
    readonly path: string;
    readonly plugin: string | null;
    at: number;
    running: boolean;
}

/** The most bytes of a context. */
export const contextBytes = 2 * 1024 * 1024 * 1024;
const mostBegun = 50;
/** A build that was begun and then left alone is forgotten after this time. */
const forgottenMs = 3_600_000;
/** In microseconds; the kernel's own. */
const cpuperiod = 100_000;
/** A shorter value would mask common words of the output. */
const shortestMasked = 4;

/** Builds images by the engine, and follows each build. */
export class Builds {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #registries: Registries;
    readonly #storage: Storage;
    readonly #begun = new Map<string, Begun>();

    constructor(
        ctx: Ctx,
        parts: { readonly engine: Engine; readonly registries: Registries; readonly storage: Storage }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#registries = parts.registries;
        this.#storage = parts.storage;
    }

    /** Begins a build; `plugin`: who made it. @throws IN_USE 40901 while 50 builds wait for their context */
    begin(input: BuildInput, plugin: string | null): { readonly id: string } {
        if (this.#begun.size >= mostBegun) {
            throw errors.inUse(
                'builds',
                `${mostBegun} builds wait for their context already: send theirs, or try again in an hour`
            );
        }
        const id = randomBytes(12).toString('hex');
        const path = this.#storage.newPath('.builds');
        this.#begun.set(id, { ...input, path, plugin, at: Date.now(), running: false });
        return { id };
    }

    /** Adds to the context, a tar archive that may be compressed, and says how many bytes it has. @throws NOT_FOUND 40400, STORAGE_FULL 50700, VALIDATION_FAILED 40001 */
    async write(id: string, plugin: string | null, source: AsyncIterable<Uint8Array>): Promise<number> {
        const build = this.#find(id, plugin);
        build.at = Date.now();
        try {
            return await this.#storage.append(build.path, source, contextBytes);
        } catch (error) {
            await this.#forget(id, build);
            throw error;
        }
    }

    /** Begins a task that builds. Its result has the image. @throws NOT_FOUND 40400 */
    async beginTask(id: string, actor: Actor): Promise<TaskView> {
        const build = this.#find(id, null);
        const { tag } = build;
        return this.#ctx.task(
            { kind: 'build', title: `Build ${tag}`, access: 'write', resource: tag, actor },
            async (run) => {
                let image: string | null = null;
                for await (const event of this.run(id, null, run.signal)) {
                    if (event.text !== undefined) {
                        run.log(event.text);
                    }
                    if (event.progress !== undefined) {
                        run.progress(event.progress);
                    }
                    image = event.image ?? image;
                }
                return { id: image, tag };
            }
        );
    }

    /** Builds. A build runs once; its context is gone afterwards. @throws NOT_FOUND 40400, ENGINE_REFUSED 42254 with what failed, ENGINE_DOWN 50350 */
    async *run(id: string, plugin: string | null, signal: AbortSignal): AsyncGenerator<BuildEvent> {
        const build = this.#find(id, plugin);
        build.running = true;
        try {
            const { kind } = await this.#engine.info();
            const response = await this.#engine.open('POST', '/build', {
                query: {
                    t: build.tag,
                    dockerfile: build.dockerfile,
                    target: build.target ?? undefined,
                    buildargs: JSON.stringify(build.args),
                    nocache: build.noCache,
                    ...networkOf(kind, build),
                    ...limitsOf(build),
                    rm: true,
                    forcerm: true,
                    // The engine's labels win over those of the file: no file names itself another's.
                    labels: JSON.stringify({ [labelOf.owner]: build.plugin ?? '' })
                },
                headers: await this.#registries.headersForBuild(),
                body: this.#storage.read(build.path),
                signal,
                patienceMs: 0
            });
            yield* eventsOf(readJsonLines<ProgressLine>(wholly(response, signal)), maskOf(build.args));
        } finally {
            await this.#forget(id, build);
        }
    }

    /** Forgets builds that were begun and left alone. */
    async expire(): Promise<void> {
        const before = Date.now() - forgottenMs;
        for (const [id, build] of this.#begun) {
            if (!build.running && build.at < before) {
                await this.#forget(id, build);
            }
        }
    }

    /** Removes what a panel that was killed left. */
    async sweep(): Promise<void> {
        for (const name of await this.#storage.list('.builds')) {
            await this.#storage.remove(`.builds/${name}`);
        }
    }

    #find(id: string, plugin: string | null): Begun {
        const build = this.#begun.get(id);
        if (build === undefined || build.plugin !== plugin || build.running) {
            throw errors.notFound('There is no such build');
        }
        return build;
    }

    async #forget(id: string, { path }: Begun): Promise<void> {
        this.#begun.delete(id);
        await this.#storage.remove(path);
    }
}

/** A network of the build's own, or none. Podman takes that of the machine where nothing is said, and what Docker calls `none` for nothing said. */
function networkOf(kind: 'docker' | 'podman', { network }: BuildInput): Readonly<Record<string, string>> {
    if (kind === 'docker') {
        return network ? {} : { networkmode: 'none' };
    }
    return {
        nsoptions: JSON.stringify([{ Name: 'network', Host: false, Path: '' }]),
        networkmode: network ? 'NetworkEnabled' : 'NetworkDisabled'
    };
}

/** Limits as the engine takes them. Without a share of its own, swap is as large as the memory. */
function limitsOf({ memoryBytes, cpus }: BuildInput): Readonly<Record<string, number>> {
    return {
        ...(memoryBytes === null ? {} : { memory: memoryBytes, memswap: memoryBytes }),
        ...(cpus === null ? {} : { cpuperiod, cpuquota: Math.round(cpus * cpuperiod) })
    };
}

async function* eventsOf(
    lines: AsyncIterable<ProgressLine>,
    mask: (text: string) => string
): AsyncGenerator<BuildEvent> {
    let image: string | null = null;
    for await (const { stream = '', status, error, aux } of lines) {
        if (error !== undefined) {
            throw fail.ENGINE_REFUSED({ engine: mask(error).slice(0, 2_000), status: 400 });
        }
        image = aux?.ID ?? image;
        const [, step, steps] = /^STEP (\d+)\/(\d+)/i.exec(stream) ?? [];
        if (step !== undefined) {
            yield { progress: (Number(step) - 1) / Number(steps) };
        }
        const text = mask(stream === '' ? (status ?? '') : stream).replace(/\n$/, '');
        if (text !== '') {
            yield { text };
        }
        // Podman tells the id in its last line.
        const [, last] = /^Successfully built ([0-9a-f]{12,64})/.exec(stream) ?? [];
        image ??= last ?? null;
    }
    if (image !== null) {
        yield { progress: 1, image };
    }
}

/** Values of build arguments may be secrets, and programs print them. */
function maskOf(args: Readonly<Record<string, string>>): (text: string) => string {
    const values = Object.values(args)
        .filter((value) => value.length >= shortestMasked)
        .sort((one, other) => other.length - one.length);
    return (text) => values.reduce((masked, value) => masked.replaceAll(value, '***'), text);
}
