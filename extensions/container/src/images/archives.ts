/** Images as archives: taken in, and given out; and images that a registry finds. */
import { type Actor, type FailureError, isFailure, type TaskView } from '@portico/sdk';

import { type Engine, wholly } from '../engine/engine.ts';
import { engineWords, fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Storage } from '../storage/storage.ts';
import { progressOf } from './progress.ts';
import { familiarName } from './reference.ts';

/** An image that a registry found. */
export interface FoundImage {
    readonly name: string;
    readonly description: string;
    readonly stars: number;
    readonly official: boolean;
}

interface Found {
    readonly name: string;
    readonly description?: string;
    readonly star_count?: number;
    readonly is_official?: boolean;
}

/** The most bytes of an archive of images. */
export const archiveBytes = 20 * 1024 * 1024 * 1024;
const mostFound = 50;
const notLoaded = (said: string): FailureError =>
    fail.ENGINE_REFUSED({ engine: said, status: 200 }, { message: `This is no archive of images: ${said}` });

/** Loads, saves and searches images. */
export class ImageArchives {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #storage: Storage;

    constructor(ctx: Ctx, parts: { readonly engine: Engine; readonly storage: Storage }) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#storage = parts.storage;
    }

    /** Keeps an archive that comes, and begins a task that loads its images. */
    async load(source: AsyncIterable<Uint8Array>, actor: Actor): Promise<TaskView> {
        const path = this.#storage.newPath('.uploads');
        try {
            await this.#storage.append(path, source, archiveBytes);
            return await this.#ctx.task(
                { kind: 'load', title: 'Load images', access: 'write', actor },
                async ({ signal, log }) => {
                    try {
                        return { images: await this.#load(path, signal, log) };
                    } finally {
                        await this.#storage.remove(path);
                    }
                }
            );
        } catch (error) {
            await this.#storage.remove(path);
            throw error;
        }
    }

    async #load(path: string, signal: AbortSignal, log: (line: string) => void): Promise<string[]> {
        const response = await this.#engine.open('POST', '/images/load', {
            body: this.#storage.read(path),
            signal,
            patienceMs: 0
        });
        const images: string[] = [];
        for await (const { stream = '' } of progressOf(response, signal, notLoaded)) {
            const [, name] = /^Loaded image(?: ID|\(s\))?: (\S+)/.exec(stream) ?? [];
            if (name !== undefined) {
                images.push(...name.split(',').map(familiarName));
                log(stream.trim());
            }
        }
        return images;
    }

    /** An image with all its layers, as a tar archive. @throws NOT_FOUND 40400 */
    async *save(reference: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
        const response = await this.#engine.open('GET', `/images/${encodeURIComponent(reference)}/get`, {
            signal,
            patienceMs: 300_000
        });
        yield* wholly(response, signal);
    }

    /** Images that the engine finds by a word. @throws REGISTRY_FAILED 50250 */
    async search(term: string): Promise<readonly FoundImage[]> {
        try {
            const found = await this.#engine.call<readonly Found[] | null>('GET', '/images/search', {
                query: { term, limit: mostFound },
                patienceMs: 25_000
            });
            return (found ?? []).map((each) => ({
                name: each.name,
                description: each.description ?? '',
                stars: each.star_count ?? 0,
                official: each.is_official ?? false
            }));
        } catch (error) {
            if (isFailure(error) && (error.code === 42254 || error.code === 40400)) {
                throw fail.REGISTRY_FAILED({ message: engineWords(error) });
            }
            throw error;
        }
    }

    /** Removes what a panel that was killed left. */
    async sweep(): Promise<void> {
        for (const name of await this.#storage.list('.uploads')) {
            await this.#storage.remove(`.uploads/${name}`);
        }
    }
}
