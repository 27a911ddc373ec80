/** The programs of releases, kept by the panel's services: they outlive the plugin, the panel and its sudden end. */
import type { GroupLimits, ServiceInfo, ServiceLine } from '@portico/sdk';

import type { ReleasePlan } from '../build/plan.ts';
import { isContained, planOfRow } from '../containers/plans.ts';
import type { Stacks } from '../containers/stacks.ts';
import type { Project } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import { askToEnd, memoryOf } from '../machine.ts';
import { appFolder, type Bind, sandboxArgs } from '../sandbox/sandbox.ts';
import type { Ctx } from '../settings.ts';
import type { ProcessView } from './candidate.ts';
import type { Folders } from './folders.ts';

/** The program that answers requests. */
const web = 'web';
/** bubblewrap ignores it, so that it stays while the program inside it is asked to end by itself. */
const stopSignal = 'SIGWINCH';

/** Starts, stops and lists programs of releases. */
export class Processes {
    readonly #ctx: Ctx;
    readonly #folders: Folders;
    readonly #stacks: Stacks;

    constructor(ctx: Ctx, folders: Folders, stacks: Stacks) {
        this.#stacks = stacks;
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** Starts all programs of a release. */
    async start(
        project: Project,
        deployment: DeploymentRow,
        plan: ReleasePlan,
        env: Readonly<Record<string, string>>
    ): Promise<void> {
        const { run } = project.config;
        const programs = [
            ...(plan.command === null ? [] : [{ name: web, command: plan.command, instances: 1 }]),
            ...run.workers
        ];
        const accounts = await this.#folders.prepare();
        const { name: user } = await this.#folders.account();
        for (const { name, command, instances } of programs) {
            for (let instance = 0; instance < instances; instance += 1) {
                await this.#ctx.services.put(serviceName(deployment, name, instance), {
                    file: 'bwrap',
                    args: sandboxArgs({
                        accounts,
                        binds: releaseBinds(this.#folders, project, plan),
                        cwd: workingFolder(plan),
                        network: true,
                        command
                    }),
                    env: { HOME: '/tmp', ...env },
                    user,
                    umask: 0o022,
                    restart: 'always',
                    stopSeconds: run.stopSeconds,
                    stopSignal,
                    limits: { group: groupLimits(project) }
                });
            }
        }
    }

    /** The services of a deployment; of its program for requests alone with `name`. */
    async of(
        deployment: Pick<DeploymentRow, 'projectId' | 'number'>,
        name?: string
    ): Promise<readonly ServiceInfo[]> {
        const prefix = `${serviceName(deployment, '')}${name === undefined ? '' : `${name}-`}`;
        return (await this.#ctx.services.list()).filter((each) => each.name.startsWith(prefix));
    }

    /** The service that answers requests; null where the release has none. */
    async web(deployment: Pick<DeploymentRow, 'projectId' | 'number'>): Promise<ServiceInfo | null> {
        return (await this.of(deployment, web))[0] ?? null;
    }

    /** Whether what answers requests runs. */
    async isRunning(deployment: DeploymentRow): Promise<boolean> {
        const plan = planOfRow(deployment);
        return plan !== null && isContained(plan.runtime)
            ? this.#stacks.isRunning(deployment, plan)
            : plan?.runtime !== 'process' || (await this.web(deployment))?.state === 'running';
    }

    /** Asks the programs of a deployment to end, and forgets them. */
    async remove(deployment: Pick<DeploymentRow, 'projectId' | 'number'>): Promise<void> {
        const services = await this.of(deployment);
        await Promise.all(
            services.map(async (service) => {
                await this.#stop(service);
                await this.#ctx.services.remove(service.name);
            })
        );
    }

    /** Stops, starts or restarts the programs of a deployment. */
    async change(
        deployment: Pick<DeploymentRow, 'projectId' | 'number' | 'plan'>,
        change: 'start' | 'stop' | 'restart',
        name?: string
    ): Promise<number> {
        const services = await this.of(deployment, name);
        await Promise.all(
            services.map(async (service) => {
                if (change !== 'start') {
                    await this.#stop(service);
                }
                if (change !== 'stop') {
                    await this.#ctx.services.start(service.name);
                }
            })
        );
        return services.length + (await this.#stacks.change(deployment, change, name));
    }

    /** The programs of a deployment as they are now. */
    async views(deployment: DeploymentRow): Promise<ProcessView[]> {
        const prefix = serviceName(deployment, '');
        const plan = planOfRow(deployment);
        if (plan !== null && isContained(plan.runtime)) {
            return this.#stacks.views(deployment, plan);
        }
        return Promise.all(
            (await this.of(deployment)).map(async ({ name, state, pid, startedAt, exits }) => {
                const [, program = '', instance = '0'] = /^(.*)-(\d+)$/.exec(name.slice(prefix.length)) ?? [];
                return {
                    name: program,
                    instance: Number(instance),
                    state,
                    pid,
                    port: program === web ? deployment.port : null,
                    since: startedAt?.toISOString() ?? null,
                    restarts: exits,
                    memoryBytes: pid === null ? null : await memoryOf(pid)
                };
            })
        );
    }

    /** Lines that a program of a deployment prints. @throws NOT_FOUND 40400 */
    output(
        deployment: DeploymentRow,
        {
            process,
            instance,
            ...options
        }: {
            readonly process: string;
            readonly instance: number;
            readonly tail: number;
            readonly follow: boolean;
            readonly signal: AbortSignal;
        }
    ): AsyncIterable<ServiceLine> {
        const plan = planOfRow(deployment);
        if (plan !== null && isContained(plan.runtime)) {
            return this.#stacks.output(deployment, plan, { service: process, ...options });
        }
        return this.#ctx.services.output(serviceName(deployment, process, instance), options);
    }

    /** Both at once: the service waits for an end that the program inside the sandbox is asked for. */
    async #stop({ name, pid }: ServiceInfo): Promise<void> {
        const stopped = this.#ctx.services.stop(name);
        if (pid !== null) {
            await askToEnd(pid);
        }
        await stopped;
    }
}

/** What the programs of a project may use together. */
export function groupLimits({ config }: Project): GroupLimits {
    const { memoryBytes, cpuPercent, processes } = config.run.limits;
    return {
        ...(memoryBytes === null ? {} : { memoryBytes }),
        ...(cpuPercent === null ? {} : { cpuPercent }),
        ...(processes === null ? {} : { processes })
    };
}

/** What a program of a release sees: the release, which it cannot change, and the shared folders, which it can. */
export function releaseBinds(
    folders: Folders,
    project: Project,
    { path, release }: ReleasePlan
): readonly Bind[] {
    const top = `projects/${project.id}`;
    return [
        { source: folders.absolute(`${top}/releases/${release}`), target: appFolder },
        ...project.config.run.shared.map((shared) => ({
            source: folders.absolute(`${top}/shared/${sharedName(shared)}`),
            target: [appFolder, path, shared].filter((part) => part !== '').join('/'),
            writable: true
        }))
    ];
}

/** The folder that a program of a release starts in. */
export function workingFolder({ path }: ReleasePlan): string {
    return path === '' ? appFolder : `${appFolder}/${path}`;
}

/** The name of a shared folder where all of them lie beside each other. */
export function sharedName(path: string): string {
    return encodeURIComponent(path);
}

/** `p1-4-web-0`: what belongs to a deployment is known by it also when the plugin's memory is lost. */
function serviceName(
    { projectId, number }: Pick<DeploymentRow, 'projectId' | 'number'>,
    program: string,
    instance?: number
): string {
    return `p${projectId}-${number}-${program}${instance === undefined ? '' : `-${instance}`}`;
}
