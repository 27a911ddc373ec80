/** Compose files: the one that a release of an image runs as, and those of repositories, whose images are built here. */
import { parse, stringify } from 'yaml';

import type { Project } from '../deployments/store.ts';
import { DeploymentFailed } from '../errors.ts';

/** The service that answers requests. */
export const webService = 'web';
/** Names that a compose file has in a repository, the first of them first. */
export const composeNames = [
    'compose.yaml',
    'compose.yml',
    'docker-compose.yaml',
    'docker-compose.yml'
] as const;

const mostBytes = 2 ** 20;
const innerPath = /^(?!.*(?:^|\/)\.\.(?:\/|$))[A-Za-z0-9_.@ /-]{1,400}$/;

/** What a release of an image runs with. */
export interface ImageRelease {
    readonly image: string;
    /** Port of this machine, and of the container. */
    readonly port: number;
    readonly containerPort: number;
    /** Null: that of the image. */
    readonly command: readonly string[] | null;
    readonly env: Readonly<Record<string, string>>;
}

/** An image that a compose file wants built. */
export interface ComposeBuild {
    readonly service: string;
    /** Below the folder of the project; empty: that folder. */
    readonly context: string;
    readonly dockerfile: string;
    readonly target: string | null;
    readonly args: Readonly<Record<string, string>>;
}

/** No worker has a name of this form. */
const hookService = (at: number): string => `pre_${at}`;
/** Whether a service is a command before the start. */
export const isHook = (service: string): boolean => service.startsWith('pre_');

/** No value is a variable of the compose file. */
const literal = (text: string): string => text.replaceAll('$', '$$$$');
const literals = (texts: readonly string[]): readonly string[] => texts.map(literal);

/** The compose file of a release: commands before the start one after the other, then what answers requests, and the workers. */
export function composeOf({ config }: Project, release: ImageRelease): { readonly services: object } {
    const { run, hooks } = config;
    const { memoryBytes, cpuPercent, processes } = run.limits;
    const common = {
        image: release.image,
        environment: Object.fromEntries(
            Object.entries(release.env).map(([name, value]) => [name, literal(value)])
        ),
        init: true,
        stop_grace_period: `${run.stopSeconds}s`,
        ...(memoryBytes === null ? {} : { mem_limit: String(memoryBytes) }),
        ...(cpuPercent === null ? {} : { cpus: String(cpuPercent / 100) }),
        ...(processes === null ? {} : { pids_limit: processes })
    };
    const before = hooks.pre.map((command, at) => [
        hookService(at),
        { ...common, command: literals(command), restart: 'no', ...after(at) }
    ]);
    const lasting = { ...common, restart: 'unless-stopped', ...after(hooks.pre.length) };
    const web = {
        ...lasting,
        ...(release.command === null ? {} : { command: literals(release.command) }),
        ports: [`127.0.0.1:${release.port}:${release.containerPort}`]
    };
    const workers = run.workers.map(({ name, command, instances }) => [
        name,
        { ...lasting, command: literals(command), scale: instances }
    ]);
    return { services: Object.fromEntries([...before, [webService, web], ...workers]) };
}

/** What waits for the command before it. */
function after(at: number): object {
    return at === 0
        ? {}
        : { depends_on: { [hookService(at - 1)]: { condition: 'service_completed_successfully' } } };
}

/** Variables as the lines of a stack. */
export function linesOf(env: Readonly<Record<string, string>>): string {
    const signs: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
    const quoted = (value: string): string =>
        value.replace(/[\n\r\t"\\$]/g, (sign) => signs[sign] ?? `\\${sign}`);
    return Object.entries(env)
        .map(([name, value]) => `${name}="${quoted(value)}"`)
        .join('\n');
}

/**
 * Reads which images a compose file wants built, and gives the file with their names in place of what is built.
 *
 * @throws DeploymentFailed BUILD_FAILED
 */
export function readCompose(
    text: string,
    nameOf: (service: string) => string
): { readonly builds: readonly ComposeBuild[]; readonly compose: string } {
    if (text.length > mostBytes) {
        throw refused('it is too large');
    }
    const { services, ...rest } = mapOf(read(text), 'the file');
    const builds: ComposeBuild[] = [];
    const all = Object.entries(mapOf(services, 'services')).map(([service, given]) => {
        const { build, ...fields } = mapOf(given, `the service ${service}`);
        if (build === undefined) {
            return [service, given] as const;
        }
        builds.push(readBuild(service, build));
        return [service, { ...fields, image: nameOf(service) }] as const;
    });
    const changed = { ...rest, services: Object.fromEntries(all) };
    return {
        builds,
        compose: builds.length === 0 ? text : stringify(changed, { aliasDuplicateObjects: false })
    };
}

function read(text: string): unknown {
    try {
        return parse(text, { merge: true, maxAliasCount: 100, schema: 'core' });
    } catch (error) {
        throw refused((error as Error).message.split('\n', 1)[0] ?? 'it is no YAML');
    }
}

function readBuild(service: string, given: unknown): ComposeBuild {
    const {
        context = '.',
        dockerfile = 'Dockerfile',
        target,
        args = {},
        ...more
    } = typeof given === 'string' ? ({ context: given } as Record<string, unknown>) : mapOf(given, 'build');
    const [unknown] = Object.keys(more);
    if (unknown !== undefined) {
        throw refused(`build.${unknown} of the service ${service} is not carried out`);
    }
    const folder = pathOf(context, service).replace(/^(?:\.\/)+|\/+$/g, '');
    return {
        service,
        context: folder === '.' ? '' : folder,
        dockerfile: pathOf(dockerfile, service),
        target: target === undefined ? null : String(target),
        args: argsOf(args)
    };
}

function pathOf(given: unknown, service: string): string {
    if (typeof given !== 'string' || !innerPath.test(given) || given.startsWith('/')) {
        throw refused(`the build of the service ${service} leads out of the folder of the project`);
    }
    return given;
}

/** Both forms: a list of `NAME=value`, and a mapping. */
function argsOf(given: unknown): Readonly<Record<string, string>> {
    const entries = Array.isArray(given)
        ? given.map((each): [string, unknown] => {
              const [name = '', ...value] = String(each).split('=');
              return [name, value.join('=')];
          })
        : Object.entries(mapOf(given, 'args'));
    return Object.fromEntries(entries.map(([name, value]) => [name, value == null ? '' : String(value)]));
}

function mapOf(given: unknown, what: string): Record<string, unknown> {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
        throw refused(`${what} is no mapping`);
    }
    return given as Record<string, unknown>;
}

function refused(why: string): DeploymentFailed {
    return new DeploymentFailed('BUILD_FAILED', `The compose file cannot be used: ${why}`);
}
