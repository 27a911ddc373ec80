/** Turns a commit into an archive: fetch, install, build, pack. */
import type { ImageBuilder } from '../containers/builder.ts';
import { isContained } from '../containers/plans.ts';
import type { StepName } from '../deployments/steps.ts';
import type { Project } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import { DeploymentFailed } from '../errors.ts';
import type { Git } from '../git/git.ts';
import type { Lfs } from '../git/lfs.ts';
import type { Folders } from '../releases/folders.ts';
import { sharedName } from '../releases/processes.ts';
import type { Sandboxes } from '../sandbox/programs.ts';
import { appFolder, type Bind, cacheFolder } from '../sandbox/sandbox.ts';
import type { Ctx } from '../settings.ts';
import type { Artifact, Artifacts } from './artifacts.ts';
import type { Build, Built } from './build.ts';
import { planOf } from './detect.ts';
import type { BuildPlan, ReleasePlan } from './plan.ts';
import { checkTools } from './tools.ts';

/** What the builder needs. */
interface Parts {
    readonly ctx: Ctx;
    readonly folders: Folders;
    readonly git: Git;
    readonly lfs: Lfs;
    readonly sandboxes: Sandboxes;
    readonly artifacts: Artifacts;
    readonly imageBuilder: ImageBuilder;
}

/** A file of this size is no part of a build. */
const fileBytes = 8 * 2 ** 30;

/** Builds a commit to what is deployed. */
export class Builder {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Builds a commit, and unpacks it as the release of its number. @throws DeploymentFailed */
    async build(build: Build): Promise<Built> {
        const { folders } = this.#parts;
        const { project, deployment } = build;
        const top = await folders.project(project.id);
        const place = `${top}/builds/${deployment.number}`;
        try {
            if (deployment.clearCache) {
                await folders.remove(`${top}/cache`);
                await folders.remove(`${top}/git`);
                await folders.project(project.id);
            }
            await checkTools(this.#parts.ctx, project.config);
            const checkout = await this.#fetch(build, top, place);
            const plan = await planOf(folders, checkout, project.config);
            build.log.say(`Recognised: ${plan.framework}`, 'build');
            const binds = await this.#binds(top, place, project, plan);
            if (isContained(plan.runtime)) {
                const { imageBuilder } = this.#parts;
                return await imageBuilder.build(build, { top, checkout, plan, binds });
            }
            await this.#make(build, plan, binds);
            return await build.step('pack', () => this.#pack(build, top, plan, binds));
        } finally {
            await folders.remove(place);
            await this.#trimCache(top);
        }
    }

    /** Fetches and checks out, and gives the folder of the project in the checkout. */
    async #fetch(
        { project, deployment, remote, signal, step, found, log }: Build,
        top: string,
        place: string
    ): Promise<string> {
        const { folders, git, lfs } = this.#parts;
        const { source } = project.config;
        return step('fetch', async () => {
            const store = `${top}/git/repository`;
            await folders.own(store);
            await folders.remove(place);
            await folders.own(place);
            const checkout = `${place}/checkout`;
            await folders.own(checkout);
            log.say(`Fetching ${deployment.commit} of ${remote.address.url}`, 'fetch');
            await found(await git.fetch(store, remote, deployment.commit, signal));
            await git.checkout(store, deployment.commit, checkout, signal);
            if (source.submodules) {
                await git.submodules(store, deployment.commit, checkout, remote, signal);
            }
            if (source.lfs) {
                const count = await lfs.replace(checkout, remote, signal);
                log.say(`Fetched ${count} files of Git LFS`, 'fetch');
            }
            const folder = source.path === '' ? checkout : `${checkout}/${source.path}`;
            const entry = await folders.files.stat(folder).catch(() => null);
            if (entry?.type !== 'folder') {
                throw new DeploymentFailed('FETCH_FAILED', `The commit has no folder ${source.path}`);
            }
            return folder;
        });
    }

    /** What the programs of a build see: the checkout, the cache, and over the checkout the folders that are cached. */
    async #binds(top: string, place: string, project: Project, plan: BuildPlan): Promise<readonly Bind[]> {
        const { folders } = this.#parts;
        const cached: Bind[] = [];
        for (const path of plan.cache) {
            const source = await folders.own(`${top}/cache/${encodeURIComponent(path)}`);
            const target = [appFolder, project.config.source.path, path]
                .filter((part) => part !== '')
                .join('/');
            cached.push({ source: folders.absolute(source), target, writable: true });
        }
        await folders.own(`${top}/cache/.home`);
        return [
            { source: folders.absolute(`${place}/checkout`), target: appFolder, writable: true },
            { source: folders.absolute(`${top}/cache`), target: cacheFolder, writable: true },
            ...cached
        ];
    }

    async #make(build: Build, plan: BuildPlan, binds: readonly Bind[]): Promise<void> {
        const end = performance.now() + build.project.config.build.timeoutSeconds * 1_000;
        const { install, commands } = plan;
        if (install === null) {
            await build.skip('install');
        } else {
            await build.step('install', () => this.#program(build, plan, binds, 'install', install, end));
        }
        if (commands.length === 0) {
            await build.skip('build');
            return;
        }
        await build.step('build', async () => {
            for (const command of commands) {
                await this.#program(build, plan, binds, 'build', command, end);
            }
        });
    }

    async #program(
        build: Build,
        plan: BuildPlan,
        binds: readonly Bind[],
        step: StepName,
        command: readonly string[],
        end: number
    ): Promise<void> {
        const { ctx, sandboxes } = this.#parts;
        const { project, log, signal } = build;
        const {
            buildMemoryBytes: memoryBytes,
            buildCpuPercent: cpuPercent,
            buildProcesses: processes
        } = ctx.settings;
        const { path } = project.config.source;
        log.say(`$ ${command.join(' ')}`, step);
        const child = await sandboxes.spawn({
            binds,
            cwd: path === '' ? appFolder : `${appFolder}/${path}`,
            network: project.config.build.network,
            command,
            env: { ...plan.env, ...buildEnvironment(build), ...build.env },
            limits: { memoryBytes, cpuPercent, processes },
            fileBytes,
            timeoutSeconds: Math.max(1, Math.ceil((end - performance.now()) / 1_000)),
            signal
        });
        await Promise.all([log.read(child.stdout, 'stdout', step), log.read(child.stderr, 'stderr', step)]);
        const { code, timedOut, limit } = await child.exited;
        signal.throwIfAborted();
        if (timedOut) {
            throw new DeploymentFailed(
                'BUILD_TIMEOUT',
                `The build took longer than ${project.config.build.timeoutSeconds} s`
            );
        }
        if (code !== 0) {
            const why =
                limit === 'memory'
                    ? `used more than ${memoryBytes} bytes of memory`
                    : `ended with ${code ?? 'a signal'}`;
            throw new DeploymentFailed('BUILD_FAILED', `${command[0]} ${why}`);
        }
    }

    async #pack(
        { project, deployment, signal, log }: Build,
        top: string,
        plan: BuildPlan,
        binds: readonly Bind[]
    ): Promise<Built> {
        const { folders, artifacts } = this.#parts;
        const { path } = project.config.source;
        const archive = `${top}/artifacts/${deployment.number}.tar`;
        const release = `${top}/releases/${deployment.number}`;
        const inner =
            plan.output === null
                ? ''
                : [path, plan.output === '.' ? '' : plan.output].filter((part) => part !== '').join('/');
        try {
            const artifact = await artifacts.pack({ binds, folder: inner, target: archive, signal });
            if (artifact.inventory.files === 0) {
                throw new DeploymentFailed('BUILD_FAILED', 'The build made no file');
            }
            log.say(
                `Packed ${artifact.inventory.files} files, ${artifact.bytes} bytes, SHA-256 ${artifact.sha256}`,
                'pack'
            );
            await artifacts.unpack(archive, release, signal);
            const kept: ReleasePlan = {
                release: deployment.number,
                runtime: plan.runtime,
                command: plan.command,
                port: plan.port,
                env: plan.env,
                path: plan.output === null ? path : ''
            };
            await this.#share(project, release, kept, artifact);
            return { artifact, plan: kept };
        } catch (error) {
            await folders.remove(archive);
            await folders.remove(release);
            throw error;
        }
    }

    /** Makes the shared folders, and the places in the release where they appear. @throws DeploymentFailed BUILD_FAILED */
    async #share(
        { id, config }: Project,
        release: string,
        { path }: ReleasePlan,
        { inventory }: Artifact
    ): Promise<void> {
        const { folders } = this.#parts;
        for (const shared of config.run.shared) {
            const place = [path, shared].filter((part) => part !== '').join('/');
            const steps = place.split('/');
            const link = steps.findIndex((_, at) => inventory.isLink(steps.slice(0, at + 1).join('/')));
            if (link !== -1) {
                throw new DeploymentFailed(
                    'BUILD_FAILED',
                    `The shared folder ${shared} is a link in the release`
                );
            }
            await folders.own(`projects/${id}/shared/${sharedName(shared)}`);
            await folders.own(`${release}/${place}`, 0o755);
        }
    }

    /** Empties a cache that is too large. */
    async #trimCache(top: string): Promise<void> {
        const { ctx, folders } = this.#parts;
        if ((await folders.bytes(`${top}/cache`)) > ctx.settings.cacheBytes) {
            await folders.remove(`${top}/cache`);
        }
    }
}

/** What every build is told. */
function buildEnvironment({ project, deployment }: Build): Readonly<Record<string, string>> {
    return {
        CI: 'true',
        HOME: `${cacheFolder}/.home`,
        XDG_CACHE_HOME: `${cacheFolder}/xdg`,
        npm_config_cache: `${cacheFolder}/npm`,
        npm_config_update_notifier: 'false',
        ...deploymentEnvironment(project, deployment)
    };
}

/** What builds and releases are told of themselves. */
export function deploymentEnvironment(
    project: Project,
    { commit, ref, number }: DeploymentRow
): Readonly<Record<string, string>> {
    return {
        DEPLOY_PROJECT: project.name,
        DEPLOY_NUMBER: String(number),
        DEPLOY_COMMIT: commit ?? '',
        DEPLOY_BRANCH: (ref ?? '').replace(/^refs\/heads\//, '')
    };
}
