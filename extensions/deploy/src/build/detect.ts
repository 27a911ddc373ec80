/** Finds out by the files of a checkout how it is built. */
import { joi } from '@portico/sdk';

import { DeploymentFailed } from '../errors.ts';
import type { ProjectConfig } from '../projects/schema.ts';
import type { Folders } from '../releases/folders.ts';
import { type Checkout, frameworks } from './frameworks.ts';
import type { BuildPlan } from './plan.ts';

const mostBytes = 2 ** 20;

/** What of `package.json` counts here; the rest of it is whatever its author wrote. */
const packageSchema = joi
    .object({
        main: joi.string(),
        scripts: joi.record(joi.string()).default({}),
        dependencies: joi.record(joi.any()).default({}),
        devDependencies: joi.record(joi.any()).default({})
    })
    .unknown(true);

/** A checkout of which only its Dockerfile says how it is built. */
const imagePlan: BuildPlan = {
    ...{ framework: 'dockerfile', runtime: 'container', install: null, commands: [], output: null },
    ...{ command: null, port: null, env: {}, cache: [] }
};

/** The plan of a checkout: what the admin said of the project, over what its files say. @throws DeploymentFailed BUILD_FAILED */
export async function planOf(
    folders: Folders,
    folder: string,
    { build, run }: ProjectConfig
): Promise<BuildPlan> {
    const said = {
        install: build.install,
        commands: build.commands ?? [],
        output: build.output,
        command: run.command,
        port: run.port,
        env: {},
        cache: build.cache
    };
    if (build.kind === 'static') {
        return {
            ...said,
            framework: 'static',
            runtime: 'static',
            output: build.output ?? '.',
            command: null
        };
    }
    if (build.kind === 'dockerfile' || build.kind === 'compose') {
        const runtime = build.kind === 'compose' ? 'compose' : 'container';
        return {
            ...said,
            framework: build.kind,
            runtime,
            install: null,
            commands: [],
            output: null,
            cache: []
        };
    }
    if (build.kind === 'commands') {
        const runtime = run.command === null ? 'static' : 'process';
        return {
            ...said,
            framework: 'commands',
            runtime,
            output: build.output ?? (runtime === 'static' ? '.' : null)
        };
    }
    const found = await detect(folders, folder);
    if (found?.runtime === 'container') {
        return { ...found, command: run.command, port: run.port };
    }
    if (found === null) {
        throw new DeploymentFailed(
            'BUILD_FAILED',
            'No framework was recognised by the files: set the kind of the build, its commands and the command that runs'
        );
    }
    return {
        ...found,
        install: build.install ?? found.install,
        commands: build.commands ?? found.commands,
        output: build.output ?? found.output,
        command: run.command ?? found.command,
        runtime: run.command === null ? found.runtime : 'process',
        port: run.port ?? found.port,
        cache: [...new Set([...build.cache, ...found.cache])]
    };
}

/** What the files of a folder say; null where no preset matches. */
export async function detect(folders: Folders, folder: string): Promise<BuildPlan | null> {
    const checkout = await look(folders, folder);
    const found = frameworks.find(({ matches }) => matches(checkout));
    return found !== undefined
        ? { framework: found.id, ...found.plan(checkout) }
        : checkout.files.has('Dockerfile')
          ? imagePlan
          : null;
}

async function look(folders: Folders, folder: string): Promise<Checkout> {
    const entries = await folders.files.list(folder);
    const files = new Set(entries.map(({ name }) => name));
    const { scripts, dependencies, main } = await readPackage(folders, folder, files);
    const starts = ['server.js', 'index.js', 'app.js', 'main.js'].find((name) => files.has(name));
    return { files, scripts, dependencies, main: main ?? starts ?? null };
}

async function readPackage(folders: Folders, folder: string, files: ReadonlySet<string>) {
    const empty = { scripts: {}, dependencies: new Set<string>(), main: null };
    if (!files.has('package.json')) {
        return empty;
    }
    const file = await folders.files.open(`${folder}/package.json`);
    try {
        const { size } = await file.stat();
        if (size > mostBytes) {
            throw new DeploymentFailed('BUILD_FAILED', 'package.json is too large');
        }
        const { error, value } = packageSchema.validate(JSON.parse(await file.readFile('utf8')), {
            allowUnknown: true
        }) as {
            error?: Error;
            value: Record<'scripts' | 'dependencies' | 'devDependencies', Record<string, string>> & {
                main?: string;
            };
        };
        if (error !== undefined) {
            throw error;
        }
        return {
            scripts: value.scripts,
            dependencies: new Set(Object.keys({ ...value.dependencies, ...value.devDependencies })),
            main:
                value.main !== undefined &&
                /^[A-Za-z0-9_./-]+$/.test(value.main) &&
                !value.main.startsWith('-')
                    ? value.main
                    : null
        };
    } catch (error) {
        throw error instanceof DeploymentFailed
            ? error
            : new DeploymentFailed(
                  'BUILD_FAILED',
                  `package.json cannot be read: ${(error as Error).message}`,
                  { cause: error }
              );
    } finally {
        await file.close();
    }
}
