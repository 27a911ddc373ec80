/** Makes releases serve: start, health, switch, drain, and the way back. */
import { setTimeout as wait } from 'node:timers/promises';

import { isFailure } from '@portico/sdk';

import type { ReleasePlan } from '../build/plan.ts';
import type { Images } from '../containers/images.ts';
import { isContained, planOfRow } from '../containers/plans.ts';
import type { Stacks } from '../containers/stacks.ts';
import type { DeploymentRow } from '../entities.ts';
import { DeploymentFailed, switchFailed } from '../errors.ts';
import { holdsSockets, listeners, openConnections } from '../machine.ts';
import type { Sandboxes } from '../sandbox/programs.ts';
import type { Ctx } from '../settings.ts';
import type { Candidate } from './candidate.ts';
import type { Folders } from './folders.ts';
import type { Hosts } from './hosts.ts';
import { type Processes, releaseBinds, workingFolder } from './processes.ts';

/** A deployment whose programs end. */
type Ended = Pick<DeploymentRow, 'projectId' | 'number' | 'plan'>;

const checkMs = 250;
const hookSeconds = 600;
const drainMs = 100;

/** What the releases of one generation need. */
interface Parts {
    readonly ctx: Ctx;
    readonly folders: Folders;
    readonly hosts: Hosts;
    readonly processes: Processes;
    readonly sandboxes: Sandboxes;
    readonly stacks: Stacks;
    readonly images: Images;
}

/** Starts, checks, switches and ends releases. */
export class Releases {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Runs the project's commands around a release, one after the other. @throws DeploymentFailed HOOK_FAILED */
    async runHooks(candidate: Candidate, commands: readonly (readonly string[])[]): Promise<void> {
        const { project, plan, env, log, signal } = candidate;
        for (const command of commands) {
            log.say(`$ ${command.join(' ')}`, 'hooks');
            if (isContained(plan.runtime)) {
                await this.#runInside(candidate, command);
                continue;
            }
            const child = await this.#parts.sandboxes.spawn({
                binds: releaseBinds(this.#parts.folders, project, plan),
                cwd: workingFolder(plan),
                network: true,
                command,
                env,
                limits: {},
                timeoutSeconds: hookSeconds,
                signal
            });
            await Promise.all([
                log.read(child.stdout, 'stdout', 'hooks'),
                log.read(child.stderr, 'stderr', 'hooks')
            ]);
            const { code, timedOut } = await child.exited;
            signal.throwIfAborted();
            if (code !== 0) {
                throw new DeploymentFailed(
                    'HOOK_FAILED',
                    timedOut
                        ? `${command[0]} took too long`
                        : `${command[0]} ended with ${code ?? 'a signal'}`
                );
            }
        }
    }

    /** Runs a command in the container that answers requests. @throws DeploymentFailed HOOK_FAILED */
    async #runInside(
        { deployment, plan, log, signal }: Candidate,
        command: readonly string[]
    ): Promise<void> {
        const { stacks } = this.#parts;
        const { code, stdout, stderr } = await stacks.exec(deployment, plan, command, hookSeconds, signal);
        for (const [stream, text] of [
            ['stdout', stdout],
            ['stderr', stderr]
        ] as const) {
            text.split('\n')
                .filter((line) => line !== '')
                .forEach((line) => log.print(line, stream, 'hooks'));
        }
        if (code !== 0) {
            throw new DeploymentFailed(
                'HOOK_FAILED',
                `${command[0]} ${code === null ? 'took too long' : `ended with ${code}`}`
            );
        }
    }

    /** Starts the programs of a release. @throws DeploymentFailed START_FAILED */
    async start(candidate: Candidate): Promise<void> {
        const { project, deployment, plan, env, log } = candidate;
        if (isContained(plan.runtime)) {
            await this.#parts.stacks.start(candidate, log);
            return;
        }
        await this.#parts.processes.start(project, deployment, plan, env).catch((error: unknown) => {
            if (isFailure(error) && error.code === 50302) {
                throw error;
            }
            throw new DeploymentFailed(
                'START_FAILED',
                `It could not be started: ${(error as Error).message}`,
                {
                    cause: error
                }
            );
        });
    }

    /** Asks the release for its health until it gave enough good answers. @throws DeploymentFailed START_FAILED, UNHEALTHY */
    async check(candidate: Candidate): Promise<void> {
        const { project, deployment, log, signal } = candidate;
        const { startSeconds, successes } = project.config.health;
        const port = deployment.port as number;
        const end = performance.now() + startSeconds * 1_000;
        let good = 0;
        let last = 'There was no answer';
        while (good < successes) {
            signal.throwIfAborted();
            const answer = await this.#ask(candidate, port);
            const problem = (await this.#refuseEnded(candidate)) ?? answer;
            good = problem === null ? good + 1 : 0;
            last = problem ?? last;
            if (performance.now() > end) {
                throw new DeploymentFailed('UNHEALTHY', `It is not healthy after ${startSeconds} s: ${last}`);
            }
            if (good < successes) {
                await wait(checkMs, undefined, { signal });
            }
        }
        await this.#refuseForeign(candidate, port);
        log.say(`It gave ${successes} good answers`, 'check');
    }

    /** What is wrong with the release now; null when it is as the project wants it. */
    async problem(candidate: Candidate): Promise<string | null> {
        return this.#ask(candidate, candidate.deployment.port as number);
    }

    /** What is wrong with one answer; null when it is as the project wants it. */
    async #ask({ project, signal }: Candidate, port: number): Promise<string | null> {
        const { path, expectStatus, contains } = project.config.health;
        try {
            const { status, body } = await this.#parts.ctx.hosts.probe(`127.0.0.1:${port}`, { path, signal });
            const isGood =
                expectStatus < 10 ? Math.floor(status / 100) === expectStatus : status === expectStatus;
            if (!isGood) {
                return `It answered ${status}`;
            }
            return contains === null || body.includes(contains)
                ? null
                : 'The answer does not contain the text';
        } catch (error) {
            signal.throwIfAborted();
            return (error as Error).message;
        }
    }

    /**
     * Resolves with why it cannot be known now; null when all programs run.
     *
     * @throws DeploymentFailed START_FAILED when a program of the release ended
     */
    async #refuseEnded({ deployment, plan, signal }: Candidate): Promise<string | null> {
        if (isContained(plan.runtime)) {
            return this.#refuseStack(deployment, plan, signal);
        }
        const ended = (await this.#parts.processes.of(deployment)).find(
            ({ exits, state }) => exits > 0 || state === 'failed'
        );
        if (ended !== undefined) {
            const { code = null, signal = null } = ended.lastExit ?? {};
            throw new DeploymentFailed(
                'START_FAILED',
                `${ended.name} ended with ${code ?? signal ?? 'an unknown code'}`
            );
        }
        return null;
    }

    /** @throws DeploymentFailed START_FAILED when what listens on the port is not of this release */
    async #refuseForeign({ deployment, plan }: Candidate, port: number): Promise<void> {
        if (isContained(plan.runtime)) {
            // The last good answer came with the engine's word that the port is theirs.
            return;
        }
        const service = await this.#parts.processes.web(deployment);
        const inodes = (await listeners()).get(port) ?? [];
        const owned =
            service?.pid !== undefined &&
            service.pid !== null &&
            inodes.length > 0 &&
            (await holdsSockets(service.pid, inodes));
        if (!owned) {
            throw new DeploymentFailed(
                'START_FAILED',
                `What listens on port ${port} is no program of this release`
            );
        }
    }

    /**
     * Resolves with why the engine cannot be asked now, which may pass; null when all containers run.
     *
     * @throws DeploymentFailed START_FAILED when a container ended, or the engine gave the port to none of them
     */
    async #refuseStack(
        deployment: DeploymentRow,
        plan: ReleasePlan,
        signal: AbortSignal
    ): Promise<string | null> {
        let problem: string | null;
        try {
            problem = await this.#parts.stacks.problem(deployment, plan);
        } catch (error) {
            signal.throwIfAborted();
            if (isFailure(error) && error.code === 50302) {
                throw error;
            }
            return (error as Error).message;
        }
        if (problem !== null) {
            throw new DeploymentFailed('START_FAILED', problem);
        }
        return null;
    }

    /** Lets the host of the project lead to the release. @throws DeploymentFailed SWITCH_FAILED; nothing was changed then */
    async switch({
        project,
        deployment,
        plan
    }: Pick<Candidate, 'project' | 'deployment' | 'plan'>): Promise<number | null> {
        const { folders, hosts } = this.#parts;
        const link = `projects/${project.id}/current`;
        try {
            if (plan.runtime !== 'static') {
                const shares = [{ port: deployment.port as number, weight: 1 }];
                return await hosts.lead(project, { runtime: 'process', shares });
            }
            const before = await folders.files.readLink(link).catch(() => null);
            await folders.point(link, `releases/${plan.release}`);
            const found = await hosts.find(project);
            if (found !== null && found['type'] === 'static' && found.enabled) {
                return found.id;
            }
            return await hosts.lead(project, { runtime: 'static' }).catch(async (error: unknown) => {
                await (before === null ? folders.remove(link) : folders.point(link, before));
                throw error;
            });
        } catch (error) {
            throw switchFailed(error);
        }
    }

    /** Waits until no connection to a release that got its last request is open, at most as long as the project says. */
    async drain(deployment: DeploymentRow, seconds: number, signal: AbortSignal): Promise<void> {
        if (deployment.port === null) {
            return;
        }
        const end = performance.now() + seconds * 1_000;
        while (performance.now() < end && !signal.aborted && (await openConnections(deployment.port)) > 0) {
            await wait(drainMs);
        }
    }

    /** Ends the programs of a deployment; `next`: the release that takes the place of its own, which may go on in the same stack. */
    async end(deployment: Ended, next: ReleasePlan | null = null): Promise<void> {
        const { processes, stacks } = this.#parts;
        await processes.remove(deployment);
        const plan = planOfRow(deployment);
        if (isContained(plan?.runtime) && !(plan?.runtime === 'compose' && next?.runtime === 'compose')) {
            await stacks.remove(deployment, false);
        }
    }

    /** Ends the programs of a deployment whose project goes; `keepFiles`: what its volumes hold stays. */
    async forget(deployment: Ended, keepFiles: boolean): Promise<void> {
        const { processes, stacks } = this.#parts;
        await processes.remove(deployment);
        await stacks.remove(deployment, !keepFiles);
    }

    /** Removes images that no release which is kept has. */
    async removeImages(ids: readonly string[]): Promise<void> {
        await this.#parts.images.remove(ids);
    }

    /** Takes back what a deployment began that never served; `live`: the one that serves, whose compose file is applied again. */
    async undo(deployment: DeploymentRow, live: Omit<Candidate, 'log' | 'signal'> | null): Promise<void> {
        const { ctx, stacks } = this.#parts;
        if (planOfRow(deployment)?.runtime === 'compose' && live?.plan.runtime === 'compose') {
            await stacks.start({ ...live, signal: ctx.signal }, null);
        } else {
            await this.end(deployment);
        }
    }

    /** Removes the files of a release that is kept no longer. */
    async discard(projectId: number, release: number, images: readonly string[]): Promise<void> {
        const { folders, images: built } = this.#parts;
        await built.remove(images);
        await folders.remove(`projects/${projectId}/releases/${release}`);
        await folders.remove(`projects/${projectId}/artifacts/${release}.tar`);
    }
}
