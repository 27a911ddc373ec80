/** Releases that run in containers, as stacks of the plugin `container`. */
import type { ApplyInput, ContainerStack } from '@portico/plugin-container/contract';
import { type ExecResult, isFailure, type ServiceLine } from '@portico/sdk';

import type { ReleasePlan } from '../build/plan.ts';
import type { DeploymentLog } from '../deployments/log.ts';
import type { Project } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import { DeploymentFailed } from '../errors.ts';
import type { Candidate, ProcessView } from '../releases/candidate.ts';
import type { Ctx } from '../settings.ts';
import { composeOf, isHook, linesOf, webService } from './compose.ts';
import { containerOf } from './images.ts';
import { isContained, planOfRow } from './plans.ts';

/** A deployment with how its release runs. */
type Placed = Pick<DeploymentRow, 'projectId' | 'number' | 'plan'>;

/** The contract waits no longer. */
const mostWaitSeconds = 900;
/** What the release that serves gets at least to come up again. */
const returnSeconds = 120;
const logLines = 200;
/** Code of the plugin `container` for a stack whose containers do not run as they should. */
const deployFailed = 42252;

/** Starts, lists and ends stacks of releases. */
export class Stacks {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Makes the stack of a release what it should be, and waits until its containers run. An image gets a stack of its own; a compose file is applied
     * in place, and goes back by itself when it does not come up.
     *
     * @param log - null on the way back to the release that serves, which gets more time: another one's limit is no measure for it
     * @throws DeploymentFailed START_FAILED, HOOK_FAILED; TOOL_MISSING 50302
     */
    async start(candidate: Omit<Candidate, 'log'>, log: DeploymentLog | null): Promise<void> {
        const { project, deployment, plan, env, signal } = candidate;
        const stack = nameOf(deployment, plan);
        const own = plan.runtime === 'container';
        const container = containerOf(this.#ctx);
        const { startSeconds } = project.config.health;
        const waitSeconds = Math.min(
            mostWaitSeconds,
            log === null ? Math.max(startSeconds, returnSeconds) : startSeconds
        );
        const source = sourceOf(project, deployment, plan, env);
        try {
            await container.apply(
                {
                    ...{ name: stack, waitSeconds, ...source },
                    description: `${project.name}, deployment ${deployment.number}`,
                    // What a new stack printed is read before it goes. The way back never leads to what it is a way from.
                    onFailure: own || log === null ? 'keep' : 'rollback'
                },
                { signal }
            );
        } catch (error) {
            signal.throwIfAborted();
            if (!isFailure(error) || error.code === 50302) {
                throw error;
            }
            const { service = '' } = (error.data ?? {}) as { readonly service?: string };
            if (own && log !== null) {
                await this.#tell(stack, log);
            }
            throw new DeploymentFailed(
                error.code === deployFailed && isHook(service) ? 'HOOK_FAILED' : 'START_FAILED',
                `It could not be started: ${error.message}${detailsOf(error.data)}`,
                { cause: error }
            );
        }
    }

    /** What is wrong with the containers of a release; null when all of them run, and one of them has the port. */
    async problem(deployment: DeploymentRow, plan: ReleasePlan): Promise<string | null> {
        const view = await this.#view(deployment, plan);
        const down = view === null ? null : lasting(view).find(({ state }) => state !== 'running');
        if (view === null || down != null) {
            return `${down?.name ?? 'The stack'} is ${down?.state ?? 'gone'}`;
        }
        const ports = view.services.flatMap((each) => each.ports);
        return ports.some(({ hostPort, hostIp }) => hostPort === deployment.port && hostIp === '127.0.0.1')
            ? null
            : `No service publishes port ${deployment.port} of 127.0.0.1: a compose file can name it \${PORT}`;
    }

    /** Whether the containers of a release run, as far as the plugin `container` can be asked. */
    async isRunning(deployment: DeploymentRow, plan: ReleasePlan): Promise<boolean> {
        const view = await this.#view(deployment, plan).catch(() => undefined);
        return (
            view === undefined ||
            (view !== null && lasting(view).every(({ state }) => state === 'running' || state === 'starting'))
        );
    }

    /** Removes the stack of a release. Nothing there is no error. */
    async remove(deployment: Placed, volumes: boolean): Promise<void> {
        const plan = planOfRow(deployment);
        if (plan !== null && isContained(plan.runtime)) {
            await containerOf(this.#ctx).remove({ stack: nameOf(deployment, plan), volumes });
        }
    }

    /** Stops, starts or restarts the containers of a release, or those of one service. Resolves with how many services that were. */
    async change(
        deployment: Placed,
        action: 'start' | 'stop' | 'restart',
        service?: string
    ): Promise<number> {
        const plan = planOfRow(deployment);
        if (plan === null || !isContained(plan.runtime)) {
            return 0;
        }
        const view = await this.#view(deployment, plan);
        const names = view === null ? [] : lasting(view).map(({ name }) => name);
        const services = names.filter((name) => service === undefined || name === service);
        if (services.length > 0) {
            const stack = nameOf(deployment, plan);
            await containerOf(this.#ctx).control({ stack, action, services });
        }
        return services.length;
    }

    /** The containers of a release as programs are shown. */
    async views(deployment: DeploymentRow, plan: ReleasePlan): Promise<ProcessView[]> {
        const view = await this.#view(deployment, plan);
        return (view === null ? [] : lasting(view)).flatMap(({ name, state, containers, ports }) =>
            containers.map((_, instance) => ({
                ...{ name, instance, pid: null, since: null, restarts: 0, memoryBytes: null },
                state: state === 'stopped' || state === 'running' ? state : ('failed' as const),
                port: ports[0]?.hostPort ?? null
            }))
        );
    }

    /** Lines that a service of a release prints. */
    async *output(
        deployment: DeploymentRow,
        plan: ReleasePlan,
        options: {
            readonly service: string;
            readonly tail: number;
            readonly follow: boolean;
            readonly signal: AbortSignal;
        }
    ): AsyncGenerator<ServiceLine> {
        const { signal, ...query } = options;
        const input = { stack: nameOf(deployment, plan), ...query };
        for await (const { at, stream, text } of containerOf(this.#ctx).logs(input, { signal })) {
            yield { at: new Date(at), stream, text };
        }
    }

    /** Runs a command in the container that answers requests. */
    async exec(
        deployment: DeploymentRow,
        plan: ReleasePlan,
        command: readonly string[],
        timeoutSeconds: number,
        signal: AbortSignal
    ): Promise<ExecResult> {
        const view = await this.#view(deployment, plan);
        const isWeb = ({ ports }: ContainerStack['services'][number]): boolean =>
            ports.some(({ hostPort }) => hostPort === deployment.port);
        const service = (view?.services.find(isWeb) ?? view?.services[0])?.name ?? webService;
        const { exitCode, ...said } = await containerOf(this.#ctx).exec(
            {
                ...{ stack: nameOf(deployment, plan), service, command },
                timeoutSeconds
            },
            { signal }
        );
        return { ...said, code: exitCode, signal: null, timedOut: exitCode === null };
    }

    async #view(deployment: Placed, plan: ReleasePlan): Promise<ContainerStack | null> {
        return containerOf(this.#ctx).stack({ name: nameOf(deployment, plan) });
    }

    /** Says in the log of a deployment what the containers of its stack printed. */
    async #tell(stack: string, log: DeploymentLog): Promise<void> {
        try {
            for await (const { service, stream, text } of containerOf(this.#ctx).logs({
                stack,
                tail: logLines
            })) {
                log.print(`${service}: ${text}`, stream, 'start');
            }
        } catch (error) {
            log.say(`What its containers printed cannot be read: ${(error as Error).message}`, 'start');
        }
    }
}

/** The services that go on: commands before the start are over then. */
function lasting({ services }: ContainerStack): ContainerStack['services'] {
    return services.filter(({ name }) => !isHook(name));
}

/** The stack of a deployment: an image has one of its own, a compose file that of its project. */
export function nameOf(
    { projectId, number }: Pick<DeploymentRow, 'projectId' | 'number'>,
    { runtime }: ReleasePlan
): string {
    return runtime === 'compose' ? `deploy-p${projectId}` : `deploy-p${projectId}-${number}`;
}

/** What a stack is made of. Every service of an image runs exactly the one that was built. */
function sourceOf(
    project: Project,
    { port }: DeploymentRow,
    { compose, command, images = [], digests = {}, ...plan }: ReleasePlan,
    env: Readonly<Record<string, string>>
): Pick<ApplyInput, 'compose' | 'env' | 'digests'> {
    if (compose !== undefined) {
        return { compose, env: linesOf(env), digests };
    }
    const [image = ''] = images;
    const release = { image, port: port as number, containerPort: plan.port as number, command, env };
    const { services } = composeOf(project, release);
    const id = digests[webService] as string;
    return {
        compose: JSON.stringify({ services }),
        env: '',
        digests: Object.fromEntries(Object.keys(services).map((name) => [name, id]))
    };
}

/** What the policy, or the reader of compose files, has against a stack. */
function detailsOf(data: unknown): string {
    const {
        errors: faults = [],
        findings = [],
        plan,
        keys = []
    } = (data ?? {}) as {
        readonly errors?: readonly { readonly message: string }[];
        readonly findings?: readonly { readonly rule: string; readonly detail: string }[];
        readonly plan?: {
            readonly exposure?: {
                readonly added?: readonly { readonly rule: string; readonly detail: string }[];
            };
        };
        readonly keys?: readonly unknown[];
    };
    const rules = [...findings, ...(plan?.exposure?.added ?? [])].map(
        ({ rule, detail }) => `${rule} ${detail}`
    );
    const texts = [
        ...faults.map(({ message }) => message),
        ...rules,
        ...keys.map((key) => JSON.stringify(key))
    ];
    return texts.length === 0 ? '' : ` (${texts.slice(0, 10).join('; ')})`;
}
