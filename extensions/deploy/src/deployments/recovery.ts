/** What a start of the plugin finds of deployments that were under way when it ended. */
import type { ReleasePlan } from '../build/plan.ts';
import type { DeploymentRow } from '../entities.ts';
import type { Folders } from '../releases/folders.ts';
import type { Hosts } from '../releases/hosts.ts';
import type { Releases } from '../releases/releases.ts';
import type { Ctx } from '../settings.ts';
import type { Logs } from './log.ts';
import type { Step } from './steps.ts';
import { activeStates, type Project, type Store } from './store.ts';
import type { Strays } from './strays.ts';

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly logs: Logs;
    readonly folders: Folders;
    readonly hosts: Hosts;
    readonly releases: Releases;
    readonly strays: Strays;
}

/** Names of services: the project and the number of the deployment. */
const serviceForm = /^p(\d+)-(\d+)-/;

/**
 * Fails builds that were cut, and finishes or undoes switches that were cut: what the engine serves decides. Then ends the programs that belong to no
 * deployment that serves.
 */
export async function recoverDeployments(parts: Parts): Promise<void> {
    const { store, folders } = parts;
    for (const deployment of await store.inStates(activeStates)) {
        const project = await store.anyProject(deployment.projectId);
        await ((await serves(parts, project, deployment))
            ? finish(parts, project, deployment)
            : undo(parts, deployment));
        await folders.remove(`projects/${project.id}/builds/${deployment.number}`);
    }
    for (const deployment of await store.inStates(['live'])) {
        if (deployment.finishedAt === null) {
            await store.change(deployment.id, {
                finishedAt: Date.now(),
                steps: endedSteps(deployment, 'done')
            });
        }
    }
    await parts.strays.endAll();
    await endPrograms(parts);
    parts.logs.wake();
}

/** Whether requests go to the release of a deployment whose switch may have been made. */
async function serves(
    { folders, hosts }: Parts,
    project: Project,
    { plan, port, steps }: DeploymentRow
): Promise<boolean> {
    const begun = (JSON.parse(steps) as Step[]).some(
        ({ name, state }) => name === 'switch' && state !== 'waiting'
    );
    if (plan === null || !begun) {
        return false;
    }
    const { runtime, release } = JSON.parse(plan) as ReleasePlan;
    if (runtime === 'static') {
        const target = await folders.files.readLink(`projects/${project.id}/current`).catch(() => null);
        return (
            target === `releases/${release}` &&
            (project.config.host === null || (await hosts.find(project)) !== null)
        );
    }
    const ports = await hosts.ports(project);
    return port !== null && ports?.length === 1 && ports[0] === port;
}

async function finish(
    { store, hosts, logs }: Parts,
    project: Project,
    deployment: DeploymentRow
): Promise<void> {
    const host = await hosts.find(project);
    await store.makeLive(project.id, deployment.id, host?.id ?? null);
    await store.change(deployment.id, { finishedAt: Date.now(), steps: endedSteps(deployment, 'done') });
    await say(logs, deployment, 'The panel ended during the switch, which the engine had made: it serves');
}

async function undo(
    { store, hosts, releases, strays, logs }: Parts,
    deployment: DeploymentRow
): Promise<void> {
    const project = await store.anyProject(deployment.projectId);
    await restoreLive({ store, hosts, releases }, project, deployment);
    await strays.fail(deployment, {
        state: 'failed',
        reason: 'PANEL_DIED',
        finishedAt: Date.now(),
        steps: endedSteps(deployment, 'failed')
    });
    await say(logs, deployment, 'The panel ended meanwhile, so it failed (PANEL_DIED)');
}

/** Lets the host lead to the release that serves again, where a part of a switch is left of the cut one. */
async function restoreLive(
    { store, releases, hosts }: Pick<Parts, 'store' | 'releases' | 'hosts'>,
    project: Project,
    cut: DeploymentRow
): Promise<void> {
    if (project.live === null || cut.plan === null) {
        return;
    }
    const live = await store.deployment(project.live);
    if (live.plan === null) {
        return;
    }
    const plan = JSON.parse(live.plan) as ReleasePlan;
    const ports = await hosts.ports(project);
    if (plan.runtime === 'static' || ports?.length !== 1 || ports[0] !== live.port) {
        await releases.switch({ project, deployment: live, plan });
    }
}

/** Ends programs of releases that got their last request before the plugin ended. */
async function endPrograms({ ctx, store, releases }: Parts): Promise<void> {
    const projects = new Map((await store.everyProject()).map((project) => [project.id, project]));
    if (projects.size === 0) {
        return;
    }
    const seen = new Set<string>();
    for (const { name } of await ctx.services.list()) {
        const [prefix = '', id, number] = serviceForm.exec(name) ?? [];
        if (prefix === '' || seen.has(prefix)) {
            continue;
        }
        seen.add(prefix);
        const live = projects.get(Number(id))?.live ?? null;
        if (live === null || (await store.deployment(live)).number !== Number(number)) {
            await releases.end({ projectId: Number(id), number: Number(number), plan: null });
        }
    }
}

function endedSteps({ steps }: DeploymentRow, running: 'done' | 'failed'): string {
    return JSON.stringify(
        (JSON.parse(steps) as Step[]).map((step) =>
            step.state === 'running'
                ? { ...step, state: running }
                : step.state === 'waiting'
                  ? { ...step, state: 'skipped' }
                  : step
        )
    );
}

async function say(logs: Logs, { id }: DeploymentRow, text: string): Promise<void> {
    const log = await logs.open(id);
    log.say(text);
    await log.close();
}
