/** Routes that look into a repository before there is a project, and run a command in the release that serves. */
import { errors, joi, reply, taskSchema } from '@portico/sdk';

import { detect } from '../build/detect.ts';
import type { BuildPlan } from '../build/plan.ts';
import { DeploymentFailed } from '../errors.ts';
import { refForm } from '../git/remote/refs.ts';
import { argv, folderPath } from '../projects/schema.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { projectParams } from './params.ts';

const longestSeconds = 600;

/** Declares the routes that detect how a project is built, and that run a command. */
export function registerToolRoutes(ctx: Ctx, services: Services): void {
    registerDetection(ctx, services);
    registerExec(ctx, services);
}

/** What a repository is, and how it would be built. */
interface Detected {
    readonly commit: string;
    readonly plan: BuildPlan | null;
}

function registerDetection(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'POST',
        path: '/detect',
        id: 'detect',
        access: 'write',
        effect: 'read',
        summary: 'Find out what a repository is',
        description:
            'Its task gives the commit, the framework, and how it would be built and run. Nothing of it is run.',
        answers: 'task',
        ui: { title: 'Look into a repository', role: 'action' },
        validate: {
            payload: joi.object({
                url: joi.string().max(2_000).required().label('Address'),
                branch: joi.string().pattern(refForm).default('main').label('Branch'),
                path: folderPath(),
                connection: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Connection')
                    .meta({ ui: { ref: 'deploy.connections' } })
            })
        },
        returns: taskSchema,
        async handler({ payload, actor }) {
            const { url, branch, path = '', connection = null } = payload;
            const remote = await services.connections.remote({ url, connection });
            const task = await ctx.task(
                { kind: 'detect', title: `Look into ${remote.address.url}`, access: 'write', actor },
                async ({ signal }) => viewOf(await look(services, remote, branch, path, signal))
            );
            return reply.accepted(task);
        }
    });
}

type Remote = Awaited<ReturnType<Services['connections']['remote']>>;

/** Fetches the head of a branch into a folder that is gone afterwards, and looks at its files. */
async function look(
    { folders, git }: Services,
    remote: Remote,
    branch: string,
    path: string,
    signal: AbortSignal
): Promise<Detected> {
    const commit = await git.head(remote, `refs/heads/${branch}`, signal);
    if (commit === null) {
        throw new DeploymentFailed('FETCH_FAILED', `The repository has no branch ${branch}`);
    }
    await folders.prepare();
    const top = await folders.own(`detect-${crypto.randomUUID()}`);
    try {
        const [store, checkout] = [
            await folders.own(`${top}/repository`),
            await folders.own(`${top}/checkout`)
        ];
        await git.fetch(store, remote, commit, signal);
        await git.checkout(store, commit, checkout, signal);
        const folder = path === '' ? checkout : `${checkout}/${path}`;
        if (!(await folders.has(folder))) {
            throw errors.notFound(`The commit has no folder ${path}`);
        }
        return { commit, plan: await detect(folders, folder) };
    } finally {
        await folders.remove(top);
    }
}

function viewOf({ commit, plan }: Detected): object {
    const {
        framework = null,
        runtime = null,
        install = null,
        commands = [],
        output = null,
        command = null
    } = plan ?? {};
    const { port = null, env = {}, cache = [] } = plan ?? {};
    return {
        commit,
        kind: runtime,
        framework,
        install,
        commands,
        output,
        command,
        port,
        env: Object.keys(env),
        folders: cache
    };
}

function registerExec(ctx: Ctx, { store, commands }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/projects/{id}/exec',
        id: 'exec',
        access: 'write',
        stepUp: true,
        summary: 'Run a command in the release that serves',
        description: 'In a sandbox of its own, with the variables and the shared folders of the release.',
        answers: 'done',
        ui: { title: 'Run a command', role: 'action' },
        audit: { action: 'exec', resource: 'project' },
        timeoutSeconds: longestSeconds + 30,
        validate: {
            params: projectParams,
            payload: joi.object({
                command: argv()
                    .required()
                    .label('Command')
                    .description('One program with its arguments; no shell reads it'),
                timeoutSeconds: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(longestSeconds)
                    .default(60)
                    .label('At most')
                    .unit('second')
            })
        },
        returns: joi.object({
            exitCode: joi.number().integer().allow(null).required().label('Exit code'),
            stdout: joi.string().allow('').required().label('Output'),
            stderr: joi.string().allow('').required().label('Errors'),
            truncated: joi.boolean().required().label('Cut')
        }),
        async handler({ params, payload, signal, audit }) {
            const project = await store.project(params.id);
            audit({ resourceId: project.id });
            const { code, stdout, stderr, truncated } = await commands.run(
                project,
                payload.command,
                payload.timeoutSeconds,
                signal
            );
            return { exitCode: code, stdout, stderr, truncated };
        }
    });
}
