/** Turns a checkout into images: of a Dockerfile, or of the services of a compose file. */
import type { Artifact, Artifacts } from '../build/artifacts.ts';
import type { Build, Built } from '../build/build.ts';
import type { BuildPlan, ReleasePlan } from '../build/plan.ts';
import { DeploymentFailed } from '../errors.ts';
import type { Folders } from '../releases/folders.ts';
import type { Bind } from '../sandbox/sandbox.ts';
import { type ComposeBuild, composeNames, readCompose, webService } from './compose.ts';
import type { ImageBuild, Images } from './images.ts';

/** Where a build happens. */
export interface ImagePlace {
    /** Folder of the project, and its checkout, relative to the folder of the plugin. */
    readonly top: string;
    readonly checkout: string;
    readonly plan: BuildPlan;
    readonly binds: readonly Bind[];
}

interface Parts {
    readonly folders: Folders;
    readonly artifacts: Artifacts;
    readonly images: Images;
}

const usualPort = 8080;
const mostBytes = 2 ** 20;
/** A line of a Dockerfile that begins a stage, or names a port of the one that it is in. */
const stageLine = /^\s*FROM\s/i;
const portLine = /^\s*EXPOSE\s+(\d{1,5})\b/i;

/** The port that the last stage of a Dockerfile names first. */
export function exposedPort(text: string): number {
    let port = usualPort;
    for (const line of text.split('\n')) {
        const [, found] = portLine.exec(line) ?? [];
        port = stageLine.test(line)
            ? usualPort
            : found !== undefined && port === usualPort
              ? Number(found)
              : port;
    }
    return port;
}

/** Builds images. The context is the archive that is kept. */
export class ImageBuilder {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Builds the images of a commit. @throws DeploymentFailed BUILD_FAILED, BUILD_TIMEOUT, TOO_LARGE; TOOL_MISSING 50302 */
    async build(build: Build, place: ImagePlace): Promise<Built> {
        const { seconds, signal } = deadlineOf(build);
        const limited = { ...build, signal };
        await build.skip('install');
        try {
            return await (place.plan.runtime === 'compose'
                ? this.#compose(limited, place)
                : this.#image(limited, place));
        } catch (error) {
            build.signal.throwIfAborted();
            throw signal.aborted
                ? new DeploymentFailed('BUILD_TIMEOUT', `The build took longer than ${seconds} s`, {
                      cause: error
                  })
                : error;
        }
    }

    async #image(build: Build, place: ImagePlace): Promise<Built> {
        const { folders, images } = this.#parts;
        const { project, deployment, step, log } = build;
        const archive = archiveOf(place, deployment.number);
        const dockerfile = project.config.build.dockerfile ?? 'Dockerfile';
        const one = { service: webService, context: '', dockerfile, target: null, args: {} };
        const image = this.#buildOf(build, place, one);
        try {
            const artifact = await step('pack', () => images.pack(image, archive));
            log.say(packedText(artifact), 'pack');
            const port =
                place.plan.port ?? exposedPort(await this.#read(folders, `${place.checkout}/${dockerfile}`));
            const id = await step('build', () => images.build(image, archive));
            return {
                artifact,
                plan: { ...keptOf(build, place), port, images: [image.tag], digests: { [webService]: id } }
            };
        } catch (error) {
            await folders.remove(archive);
            throw error;
        }
    }

    async #compose(build: Build, place: ImagePlace): Promise<Built> {
        const { folders, artifacts, images } = this.#parts;
        const { project, deployment, signal, step, log } = build;
        const archive = archiveOf(place, deployment.number);
        const { builds, compose } = await this.#composeFile(build, place);
        const wanted = builds.map((each) => this.#buildOf(build, place, each));
        const digests: Record<string, string> = {};
        try {
            const folder = project.config.source.path;
            const artifact = await step('pack', () =>
                artifacts.pack({ binds: place.binds, folder, target: archive, names: null, signal })
            );
            log.say(packedText(artifact), 'pack');
            await (wanted.length === 0
                ? build.skip('build')
                : step('build', async () => {
                      for (const [at, image] of wanted.entries()) {
                          const context = `${archive}.context`;
                          await images.pack(image, context);
                          digests[builds[at]?.service ?? ''] = await images.build(image, context);
                          await folders.remove(context);
                      }
                  }));
            return {
                artifact,
                plan: { ...keptOf(build, place), compose, images: wanted.map(({ tag }) => tag), digests }
            };
        } catch (error) {
            await folders.remove(archive);
            await folders.remove(`${archive}.context`);
            await images.remove(Object.values(digests));
            throw error;
        }
    }

    async #composeFile({ project, deployment }: Build, { checkout }: ImagePlace) {
        const { folders } = this.#parts;
        for (const name of composeNames) {
            if (await folders.has(`${checkout}/${name}`)) {
                const text = await this.#read(folders, `${checkout}/${name}`);
                return readCompose(text, (service) => tagOf(project.id, deployment.number, service));
            }
        }
        throw new DeploymentFailed('BUILD_FAILED', `There is no ${composeNames.join(', ')}`);
    }

    #buildOf(
        { project, deployment, env, log, signal }: Build,
        { binds, checkout }: ImagePlace,
        { service, context, dockerfile, target, args }: ComposeBuild
    ): ImageBuild {
        return {
            ...{ binds, checkout, dockerfile, target, log, signal },
            folder: [project.config.source.path, context].filter((part) => part !== '').join('/'),
            inner: context,
            args: { ...args, ...env },
            tag: tagOf(project.id, deployment.number, service),
            noCache: deployment.clearCache,
            network: project.config.build.network
        };
    }

    async #read(folders: Folders, path: string): Promise<string> {
        await using file = await folders.files.open(path);
        const { size } = await file.stat();
        if (size > mostBytes) {
            throw new DeploymentFailed('BUILD_FAILED', `${path.split('/').at(-1)} is too large`);
        }
        return await file.readFile('utf8');
    }
}

/** The name of an image: of a project, a deployment and a service. */
function tagOf(projectId: number, number: number, service: string): string {
    return `portico-deploy/p${projectId}-${service.toLowerCase().replace(/[^a-z0-9]+/g, '-')}:${number}`;
}

function archiveOf({ top }: ImagePlace, number: number): string {
    return `${top}/artifacts/${number}.tar`;
}

function keptOf({ deployment }: Build, { plan }: ImagePlace): ReleasePlan {
    const { runtime, command, port, env } = plan;
    return { release: deployment.number, runtime, command, port, env, path: '' };
}

function deadlineOf({ project, signal }: Build): { readonly seconds: number; readonly signal: AbortSignal } {
    const seconds = project.config.build.timeoutSeconds;
    return { seconds, signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1_000)]) };
}

function packedText({ inventory, bytes, sha256 }: Artifact): string {
    return `Packed ${inventory.files} files, ${bytes} bytes, SHA-256 ${sha256}`;
}
