/** Builds images of checkouts, by the plugin `container`. */
import type { ContainerContract } from '@portico/plugin-container/contract';
import { errors, isFailure, type Remote } from '@portico/sdk';

import type { Artifact, Artifacts } from '../build/artifacts.ts';
import type { DeploymentLog } from '../deployments/log.ts';
import type { Store } from '../deployments/store.ts';
import { DeploymentFailed } from '../errors.ts';
import type { Folders } from '../releases/folders.ts';
import type { Bind } from '../sandbox/sandbox.ts';
import type { Ctx } from '../settings.ts';
import { contextFiles } from './ignore.ts';
import { imagesOf } from './plans.ts';

/** What the image of a commit is built from. */
export interface ImageBuild {
    /** What programs of a build see, and the folder of the project in the checkout as the panel sees it. */
    readonly binds: readonly Bind[];
    readonly checkout: string;
    /** Below the checkout as programs see it; empty for all of it. */
    readonly folder: string;
    /** The same below `checkout`. */
    readonly inner: string;
    /** Below that folder. */
    readonly dockerfile: string;
    readonly target: string | null;
    readonly args: Readonly<Record<string, string>>;
    /** The name that the image gets. */
    readonly tag: string;
    readonly noCache: boolean;
    /** Whether its commands have a network. */
    readonly network: boolean;
    readonly log: DeploymentLog;
    readonly signal: AbortSignal;
}

/** How much of an archive is sent at once. */
const chunkBytes = 2 ** 20;
const install = 'apt-get install docker.io';

/** The plugin `container`. @throws TOOL_MISSING 50302 where it does not run */
export function containerOf(ctx: Ctx): Remote<ContainerContract> {
    const { container } = ctx.plugins;
    if (container === undefined) {
        throw errors.toolMissing('the plugin container', `portico plugin enable container, and ${install}`);
    }
    return container;
}

/** Packs contexts, and has them built. */
export class Images {
    readonly #ctx: Ctx;
    readonly #folders: Folders;
    readonly #artifacts: Artifacts;
    readonly #store: Store;

    constructor(ctx: Ctx, folders: Folders, artifacts: Artifacts, store: Store) {
        this.#store = store;
        this.#ctx = ctx;
        this.#folders = folders;
        this.#artifacts = artifacts;
    }

    /** Packs the context of an image, without what `.dockerignore` leaves out. @throws DeploymentFailed BUILD_FAILED, TOO_LARGE */
    async pack(build: ImageBuild, target: string): Promise<Artifact> {
        const { binds, checkout, folder, inner, dockerfile, signal } = build;
        const top = [checkout, inner].filter((part) => part !== '').join('/');
        if (!(await this.#folders.has(`${top}/${dockerfile}`))) {
            throw new DeploymentFailed('BUILD_FAILED', `There is no ${dockerfile}`);
        }
        const names = await contextFiles(this.#folders, top, [dockerfile]);
        return this.#artifacts.pack({ binds, folder, target, names, signal });
    }

    /** Has the engine build an image of a context that was packed. Resolves with its id. @throws DeploymentFailed BUILD_FAILED; TOOL_MISSING 50302 */
    async build({ log, signal, ...build }: ImageBuild, archive: string): Promise<string> {
        const container = containerOf(this.#ctx);
        const { tag, dockerfile, target, args, noCache, network } = build;
        const { buildMemoryBytes: memoryBytes, buildCpuPercent } = this.#ctx.settings;
        const limits = { memoryBytes, cpus: buildCpuPercent / 100 };
        const options = { signal };
        try {
            const { id } = await container.buildBegin(
                {
                    tag,
                    dockerfile,
                    args,
                    noCache,
                    network,
                    ...limits,
                    ...(target === null ? {} : { target })
                },
                options
            );
            await this.#send(container, id, archive, signal);
            let image: string | null = null;
            for await (const event of container.build({ id }, options)) {
                if (event.text !== undefined) {
                    log.say(event.text, 'build');
                }
                image = event.image ?? image;
            }
            signal.throwIfAborted();
            if (image === null) {
                throw new DeploymentFailed('BUILD_FAILED', 'The engine named no image');
            }
            return image;
        } catch (error) {
            signal.throwIfAborted();
            throw isFailure(error) && error.code !== 50302
                ? new DeploymentFailed('BUILD_FAILED', error.message, { cause: error })
                : error;
        }
    }

    /**
     * Removes images by their ids, except those that a release has which is kept: the same files give the same image, in another deployment and in
     * another project, too. One that is gone, or in use, is no error.
     */
    async remove(ids: readonly string[]): Promise<void> {
        const { container } = this.#ctx.plugins;
        if (container === undefined || ids.length === 0) {
            return;
        }
        const kept = new Set((await this.#store.allKept()).flatMap((each) => imagesOf(each)));
        for (const image of ids.filter((id) => !kept.has(id))) {
            await container.removeImage({ image }).catch((error: unknown) => {
                this.#ctx.log.warn('An image could not be removed', {
                    image,
                    error: (error as Error).message
                });
            });
        }
    }

    async #send(
        container: Remote<ContainerContract>,
        id: string,
        archive: string,
        signal: AbortSignal
    ): Promise<void> {
        await using file = await this.#folders.files.open(archive);
        const chunks = file.createReadStream({ autoClose: false, highWaterMark: chunkBytes });
        for await (const chunk of chunks as AsyncIterable<Uint8Array>) {
            await container.buildWrite({ id, chunk: new Uint8Array(chunk) }, { signal });
        }
    }
}
