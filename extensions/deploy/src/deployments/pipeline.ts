/** One deployment from its commit, or from a kept release, to the switch. */
import { isFailure } from '@portico/sdk';

import type { Builder } from '../build/builder.ts';
import type { ReleasePlan } from '../build/plan.ts';
import type { Provenance } from '../build/provenance.ts';
import { isContained, planOfRow } from '../containers/plans.ts';
import type { Released } from '../contract.ts';
import type { DeploymentRow } from '../entities.ts';
import { environmentOf, type Variables } from '../env/variables.ts';
import { DeploymentFailed, type Reason } from '../errors.ts';
import type { Connections } from '../git/connections.ts';
import type { Git } from '../git/git.ts';
import type { Canaries } from '../releases/canary.ts';
import type { Candidate } from '../releases/candidate.ts';
import { runEnvironment } from '../releases/environment.ts';
import { freePort } from '../releases/ports.ts';
import type { Releases } from '../releases/releases.ts';
import type { Ctx } from '../settings.ts';
import type { RequiredChecks } from '../triggers/checks.ts';
import type { DeploymentLog, Logs } from './log.ts';
import { Progress } from './progress.ts';
import type { Retention } from './retention.ts';
import { type StepName, stepReasons } from './steps.ts';
import type { Project, Store } from './store.ts';
import type { Strays } from './strays.ts';

/** What a pipeline works with. */
export interface PipelineParts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly logs: Logs;
    readonly variables: Variables;
    readonly connections: Connections;
    readonly git: Git;
    readonly provenance: Provenance;
    readonly builder: Builder;
    readonly releases: Releases;
    readonly canaries: Canaries;
    readonly retention: Retention;
    readonly strays: Strays;
    readonly checks: RequiredChecks;
    /** Is told of each deployment that is over, with its project. */
    readonly over: (project: Project) => Promise<void>;
    /** Runs the hook `deploy.released`. */
    readonly released: (release: Released) => Promise<void>;
}

/** What the pipeline is told of the work around it. */
export interface PipelineRun {
    readonly taskId: number;
    /** Aborts when the deployment is cancelled or the plugin ends. */
    readonly signal: AbortSignal;
    told(fraction: number, text: string): void;
    /** From here on the deployment cannot be cancelled. @throws when it was cancelled already */
    beginSwitch(): void;
}

/** Runs the steps of a deployment. */
export class Pipeline {
    readonly #parts: PipelineParts;

    constructor(parts: PipelineParts) {
        this.#parts = parts;
    }

    /** Runs a deployment to its end; what fails is in its record, never thrown. */
    async run(id: number, run: PipelineRun): Promise<void> {
        const { store, logs } = this.#parts;
        const log = await logs.open(id);
        try {
            await store.change(id, { state: 'building', startedAt: Date.now(), taskId: run.taskId });
            const deployment = await store.deployment(id);
            const project = await store.anyProject(deployment.projectId);
            const progress = new Progress(store, deployment, run.told);
            // What is left of one before is no reason to fail: it is tried again.
            await this.#parts.strays.end(project.id).catch(() => this.#parts.ctx.signal.throwIfAborted());
            try {
                await this.#deploy(project, deployment, progress, log, run);
            } catch (error) {
                await this.#fail(project, id, error, { log, failed: progress.failed, signal: run.signal });
            }
            await progress.end();
            await store.change(id, { finishedAt: Date.now() });
            await this.#parts.over(project);
        } catch (error) {
            // The plugin ends: what is left is taken up by its next start.
            if (!this.#parts.ctx.signal.aborted) {
                throw error;
            }
        } finally {
            await log.close();
        }
    }

    async #deploy(
        project: Project,
        deployment: DeploymentRow,
        progress: Progress,
        log: DeploymentLog,
        run: PipelineRun
    ): Promise<void> {
        const { store, variables } = this.#parts;
        const { signal } = run;
        const vars = await variables.ofProject(project);
        log.hide(vars.filter(({ secret }) => secret).map(({ value }) => value));
        const plan =
            deployment.from === null
                ? await this.#build(project, deployment, environmentOf(vars, 'build'), progress, log, signal)
                : await this.#again(deployment, progress);
        signal.throwIfAborted();
        const port = await this.#portOf(project, plan);
        await store.change(deployment.id, { state: 'releasing', port });
        const begun = await store.deployment(deployment.id);
        const env = runEnvironment(project, begun, plan, vars);
        const candidate = { project, deployment: begun, plan, env, log, signal };
        await this.#release(candidate, progress, run);
    }

    /** The port of this machine that a release listens on. A compose file that is applied in place keeps the one that it has. */
    async #portOf({ id, config }: Project, { runtime, port }: ReleasePlan): Promise<number | null> {
        const { ctx, store } = this.#parts;
        if (runtime === 'static') {
            return null;
        }
        if (runtime === 'compose') {
            const { live } = await store.anyProject(id);
            const before = live === null ? null : await store.deployment(live);
            const kept = before !== null && planOfRow(before)?.runtime === 'compose' ? before.port : null;
            return config.run.port ?? kept ?? (await freePort(ctx));
        }
        return (runtime === 'process' ? port : null) ?? (await freePort(ctx));
    }

    async #build(
        project: Project,
        deployment: DeploymentRow,
        env: Readonly<Record<string, string>>,
        progress: Progress,
        log: DeploymentLog,
        signal: AbortSignal
    ): Promise<ReleasePlan> {
        const { store, connections, builder, git } = this.#parts;
        const remote = await connections.remote(project.config.source);
        let { commit } = deployment;
        if (commit === null) {
            const ref = deployment.ref ?? `refs/heads/${project.config.source.branch}`;
            commit = await git.head(remote, ref, signal);
            if (commit === null) {
                throw new DeploymentFailed('FETCH_FAILED', `The repository has no ${ref}`);
            }
            await store.change(deployment.id, { commit, ref });
        }
        await this.#parts.checks.wait(project, commit, (text) => log.say(text, 'fetch'), signal);
        const built = await builder.build({
            project,
            deployment: { ...deployment, commit },
            remote,
            env,
            log,
            signal,
            step: (name, work) => progress.step(name, work),
            skip: (...names) => progress.skip(...names),
            found: ({ message, author }) => store.change(deployment.id, { message, author })
        });
        const envelope = await this.#parts.provenance.attest(
            project,
            await store.deployment(deployment.id),
            commit,
            built
        );
        const { artifact, plan } = built;
        await store.change(deployment.id, {
            provenance: JSON.stringify(envelope),
            plan: JSON.stringify(plan),
            artifactSha256: artifact.sha256,
            artifactBytes: artifact.bytes,
            kept: true
        });
        return plan;
    }

    /** Takes a kept release again. */
    async #again(deployment: DeploymentRow, progress: Progress): Promise<ReleasePlan> {
        const { store } = this.#parts;
        const before = await store.deployment(deployment.from as number);
        if (!before.kept || before.plan === null) {
            throw new DeploymentFailed(
                'FETCH_FAILED',
                `The release of deployment ${before.number} is not kept any more`
            );
        }
        await progress.skip('fetch', 'install', 'build', 'pack');
        const { commit, message, author, plan, artifactSha256, artifactBytes, provenance } = before;
        await store.change(deployment.id, {
            commit,
            message,
            author,
            plan,
            artifactSha256,
            artifactBytes,
            provenance,
            kept: true
        });
        return JSON.parse(plan) as ReleasePlan;
    }

    async #release(candidate: Candidate, progress: Progress, run: PipelineRun): Promise<void> {
        const { store, releases, retention } = this.#parts;
        const { project, deployment, plan } = candidate;
        const { hooks, run: running } = project.config;
        const contained = isContained(plan.runtime);
        const hasPrograms = plan.runtime !== 'static' || running.workers.length > 0;
        // Containers run these commands themselves, before the service that answers requests.
        await (hooks.pre.length === 0 || contained
            ? progress.skip('hooks')
            : progress.step('hooks', () => releases.runHooks(candidate, hooks.pre)));
        await (hasPrograms
            ? progress.step('start', () => releases.start(candidate))
            : progress.skip('start'));
        const isAsked = plan.runtime === 'compose' ? project.config.host !== null : plan.runtime !== 'static';
        await (isAsked ? progress.step('check', () => releases.check(candidate)) : progress.skip('check'));
        const { live: before } = await store.anyProject(project.id);
        await this.#canary(candidate, before);
        run.beginSwitch();
        await progress.step('switch', async () => {
            const hostId = await releases.switch(candidate);
            await store.makeLive(project.id, deployment.id, hostId);
        });
        candidate.log.say('It serves', 'switch');
        void this.#tell(candidate);
        await progress.step('drain', async () => {
            if (before !== null && before !== deployment.id) {
                const old = await store.deployment(before);
                await releases.drain(old, running.drainSeconds, this.#parts.ctx.signal);
                await this.#endOld(old, candidate);
            }
        });
        await this.#after(candidate, hooks.post);
        await retention.prune(project);
    }

    /** Ends the release before. One that cannot be ended now is ended later; the new one serves in any case. */
    async #endOld(old: DeploymentRow, { plan, log }: Candidate): Promise<void> {
        const { ctx, store, releases } = this.#parts;
        try {
            await releases.end(old, plan);
            await store.change(old.id, { port: null });
        } catch (error) {
            ctx.signal.throwIfAborted();
            log.say(`The release before could not be ended: ${(error as Error).message}`, 'drain');
        }
    }

    /** Says to other plugins that a release serves. What they do with it delays nothing. */
    async #tell({ project, deployment }: Candidate): Promise<void> {
        const { ctx, released } = this.#parts;
        const { id: deploymentId, number, trigger, commit } = deployment;
        const domain = project.config.host?.domain ?? null;
        await released({
            projectId: project.id,
            project: project.name,
            ...{ deploymentId, number, trigger, commit, domain }
        }).catch((error: unknown) => {
            if (!ctx.signal.aborted) {
                ctx.log.warn('The hook deploy.released failed', { error: String(error) });
            }
        });
    }

    /** Gives the release a share of the requests first, where the project wants that and programs serve it now. */
    async #canary(candidate: Candidate, before: number | null): Promise<void> {
        const { store, canaries } = this.#parts;
        const { config } = candidate.project;
        if (
            config.canary === null ||
            config.host === null ||
            before === null ||
            candidate.plan.runtime === 'compose'
        ) {
            return;
        }
        // The kind of the build may not tell before the repository is seen.
        if (candidate.plan.runtime === 'static') {
            candidate.log.say('There is no canary: files are switched at once', 'switch');
            return;
        }
        await store.change(candidate.deployment.id, { state: 'canary' });
        await canaries.observe(candidate, await store.deployment(before));
    }

    /** Commands after the switch: a failure is told, not undone. */
    async #after(candidate: Candidate, commands: readonly (readonly string[])[]): Promise<void> {
        const { ctx, releases } = this.#parts;
        const { project, deployment, log } = candidate;
        await releases.runHooks({ ...candidate, signal: ctx.signal }, commands).catch((error: unknown) => {
            log.say(`A command after the switch failed: ${(error as Error).message}`, 'hooks');
        });
        await ctx.notify({
            event: 'live',
            severity: 'info',
            title: `${project.name}: deployment ${deployment.number} serves`,
            data: { projectId: project.id, deploymentId: deployment.id }
        });
    }

    /** Takes back what a deployment that failed has begun, and writes down why. */
    async #fail(
        project: Project,
        id: number,
        error: unknown,
        {
            log,
            failed,
            signal
        }: {
            readonly log: DeploymentLog;
            readonly failed: StepName | null;
            readonly signal: AbortSignal;
        }
    ): Promise<void> {
        const { ctx, store, strays } = this.#parts;
        if (ctx.signal.aborted) {
            throw error;
        }
        const reason = reasonOf(error, failed, signal);
        const deployment = await store.deployment(id);
        log.say(
            reason === 'CANCELLED' ? 'It was cancelled' : `It failed (${reason}): ${(error as Error).message}`
        );
        // While the plugin `container` or its engine is gone, nothing of theirs can be removed; the deployment ends all the same.
        const left = await strays.fail(deployment, {
            state: reason === 'CANCELLED' ? 'cancelled' : 'failed',
            reason
        });
        if (left !== null) {
            log.say(`What it made cannot be removed now, and is removed later: ${left}`);
        }
        if (reason !== 'CANCELLED') {
            await ctx.notify({
                event: 'failed',
                severity: 'error',
                title: `${project.name}: deployment ${deployment.number} failed`,
                text: reason,
                data: { projectId: project.id, deploymentId: id, reason }
            });
        }
        if (!(error instanceof DeploymentFailed) && !isFailure(error) && reason !== 'CANCELLED') {
            ctx.log.error('A deployment failed in an unexpected way', {
                deployment: id,
                error: String((error as Error).stack)
            });
        }
    }
}

/** Why a deployment ends, from what was thrown. */
function reasonOf(error: unknown, failed: StepName | null, signal: AbortSignal): Reason {
    if (signal.aborted) {
        return 'CANCELLED';
    }
    if (error instanceof DeploymentFailed) {
        return error.reason;
    }
    if (isFailure(error) && error.code === 50302) {
        return 'TOOL_MISSING';
    }
    // What is refused before the first step is the repository.
    return stepReasons[failed ?? 'fetch'];
}
