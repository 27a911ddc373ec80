/** A compose file and an environment as the containers, networks and volumes that they stand for. Pure. */
import { posix } from 'node:path';

import { labelOf, type Spec } from '../spec/spec.ts';
import { readDocument, type Tree } from './document.ts';
import { type Environment, interpolate, readEnvironment } from './interpolate.ts';
import type { DeclaredVolume } from './parts/mounts.ts';
import {
    type DeclaredNetwork,
    type Dependency,
    readLabels,
    readService,
    type ServiceModel
} from './parts/service.ts';
import { type ComposeError, Problems } from './problems.ts';
import { Fields, isTree } from './reader.ts';

/** The compose file of a stack with everything that its meaning depends on. */
export interface ComposeInput {
    readonly name: string;
    readonly compose: string;
    readonly env: string;
    readonly stackFolder: string;
    /** The plugin that made the stack; null: a person did. */
    readonly owner: string | null;
}

/** One container of a service. */
export interface CompiledContainer {
    readonly service: string;
    readonly number: number;
    readonly spec: Spec;
}

/** A service in the order in which services start. */
export interface CompiledService {
    readonly name: string;
    readonly image: string;
    readonly dependsOn: readonly Dependency[];
    readonly containers: readonly CompiledContainer[];
}

/** A file that was compiled. */
export interface Compiled {
    readonly services: readonly CompiledService[];
    readonly networks: readonly DeclaredNetwork[];
    readonly volumes: readonly DeclaredVolume[];
    readonly errors: readonly ComposeError[];
    readonly unsupported: readonly string[];
    readonly warnings: readonly string[];
    /** Joins of namespaces within the stack. */
    readonly siblings: ReadonlySet<string>;
    /** @throws COMPOSE_INVALID 42250, COMPOSE_UNSUPPORTED 42251 */
    refuse(): void;
}

/** Compiles a file. Faults are in the result; `refuse` throws them. */
export function compile(input: ComposeInput): Compiled {
    let problems = new Problems();
    const { tree } = readDocument(input.compose, (lineOf) => (problems = new Problems(lineOf)));
    const environment = readEnvironment(input.env, problems);
    const nothing = { services: [], networks: [], volumes: [], siblings: new Set<string>() };
    const parts =
        tree === null
            ? nothing
            : read(interpolate(tree, environment, problems), input, environment, problems);
    return {
        ...parts,
        errors: problems.errors,
        unsupported: problems.unsupported,
        warnings: problems.warnings,
        refuse: () => problems.refuse()
    };
}

function read(
    tree: Tree,
    { name, stackFolder, owner }: ComposeInput,
    environment: Environment,
    problems: Problems
): Pick<Compiled, 'services' | 'networks' | 'volumes' | 'siblings'> {
    const file = new Fields(tree, [], problems);
    file.text('version');
    const own = file.text('name');
    if (own !== null && own !== name) {
        problems.error(['name'], `The stack is named ${name}`);
    }
    const networks = readNetworks(file, name);
    const volumes = readVolumes(file, name);
    const scope = {
        folder: posix.join(stackFolder, name),
        environment,
        networks,
        volumes,
        configs: readContents(file, 'configs', environment),
        secrets: readContents(file, 'secrets', environment)
    };
    const profiles = new Set(
        (environment.get('COMPOSE_PROFILES') ?? '').split(',').map((each) => each.trim())
    );
    const all = file.children('services').map(([key, fields]) => {
        if (!/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/.test(key)) {
            problems.error(['services', key], 'This is no name of a service');
        }
        return readService(key, fields, scope);
    });
    file.close({ include: 'write the services out' });
    if (all.length === 0 && problems.errors.length === 0) {
        problems.error(['services'], 'A compose file has services');
    }
    const active = all.filter(
        (service) =>
            service.profiles.length === 0 ||
            service.profiles.some((each) => profiles.has(each) || profiles.has('*'))
    );
    const used = new Set(active.flatMap(({ spec }) => spec.networks.map((network) => network.name)));
    const ordered = order(active, problems);
    const { siblings, resolve } = namespaces(name, ordered, problems);
    return {
        services: ordered.map((service) => containersOf(service, { name, owner, resolve })),
        networks: [...networks.values()].filter((network) => used.has(network.name)),
        volumes: [...volumes.values()],
        siblings
    };
}

/** Where one service joins a namespace of another, the container's own name is written. */
function namespaces(
    stack: string,
    services: readonly ServiceModel[],
    problems: Problems
): { readonly siblings: ReadonlySet<string>; resolve(mode: string): string } {
    const names = new Map(
        services.map((service) => [service.name, `container:${containerName(stack, service, 1)}`] as const)
    );
    for (const { name, spec } of services) {
        for (const mode of [spec.networkMode, spec.pidMode, spec.ipcMode]) {
            const [, target] = /^service:(.*)$/.exec(mode) ?? [];
            if (target !== undefined && (!names.has(target) || target === name)) {
                problems.error(['services', name], `${mode} is no other service of the file`);
            }
        }
    }
    return {
        siblings: new Set(names.values()),
        resolve: (mode) => names.get(/^service:(.*)$/.exec(mode)?.[1] ?? '') ?? mode
    };
}

const containerName = (stack: string, service: ServiceModel, number: number): string =>
    service.containerName ?? `${stack}-${service.name}-${number}`;

function containersOf(
    service: ServiceModel,
    {
        name: stack,
        owner,
        resolve
    }: { readonly name: string; readonly owner: string | null; resolve(mode: string): string }
): CompiledService {
    const { name, scale, dependsOn, spec } = service;
    const labels = {
        ...spec.labels,
        [labelOf.project]: stack,
        [labelOf.service]: name,
        [labelOf.oneOff]: 'False',
        [labelOf.dependsOn]: dependsOn.map((each) => `${each.service}:${each.condition}:false`).join(','),
        ...(owner === null ? {} : { [labelOf.owner]: owner })
    };
    return {
        name,
        image: spec.image,
        dependsOn,
        containers: Array.from({ length: scale }, (_, index) => ({
            service: name,
            number: index + 1,
            spec: {
                ...spec,
                name: containerName(stack, service, index + 1),
                networkMode: resolve(spec.networkMode),
                pidMode: resolve(spec.pidMode),
                ipcMode: resolve(spec.ipcMode),
                labels: { ...labels, [labelOf.number]: String(index + 1) }
            }
        }))
    };
}

/** Services after those that they depend on. */
function order(services: readonly ServiceModel[], problems: Problems): readonly ServiceModel[] {
    const byName = new Map(services.map((service) => [service.name, service]));
    const done = new Set<string>();
    const result: ServiceModel[] = [];
    const joined = ({ spec }: ServiceModel): string[] =>
        [spec.networkMode, spec.pidMode, spec.ipcMode].flatMap(
            (mode) => /^service:(.*)$/.exec(mode)?.[1] ?? []
        );
    const visit = (service: ServiceModel, above: readonly string[]): void => {
        if (done.has(service.name)) {
            return;
        }
        if (above.includes(service.name)) {
            problems.error(['services', service.name, 'depends_on'], 'These services wait for each other');
            return;
        }
        const optional = service.dependsOn.filter(({ required }) => !required).map((each) => each.service);
        for (const name of [...service.dependsOn.map((each) => each.service), ...joined(service)]) {
            const other = byName.get(name);
            if (other === undefined && optional.includes(name)) {
                continue;
            }
            if (other === undefined) {
                problems.error(
                    ['services', service.name, 'depends_on'],
                    `There is no active service ${name}`
                );
            } else {
                visit(other, [...above, service.name]);
            }
        }
        if (!done.has(service.name)) {
            done.add(service.name);
            result.push(service);
        }
    };
    services.forEach((service) => visit(service, []));
    return result;
}

const isName = (text: string): boolean => /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/.test(text);

function readNetworks(file: Fields, stack: string): ReadonlyMap<string, DeclaredNetwork> {
    const declared = file.children('networks').map(([key, fields]): DeclaredNetwork => {
        const external = fields.flag('external');
        const name = fields.text('name') ?? (external ? key : `${stack}_${key}`);
        fields.word('driver', ['bridge']);
        const ipam = fields.child('ipam');
        const [pool, ...more] = (ipam?.raw('config') as readonly unknown[] | undefined) ?? [];
        ipam?.word('driver', ['default']);
        const config =
            pool === undefined || ipam === null ? null : new Fields(pool, ipam.at('config'), file.problems);
        const network = {
            key,
            name,
            external,
            internal: fields.flag('internal'),
            ipv6: fields.flag('enable_ipv6'),
            subnet: config?.text('subnet') ?? null,
            gateway: config?.text('gateway') ?? null,
            labels: readLabels(fields)
        };
        config?.close();
        ipam?.close();
        fields.close();
        if (!isName(name) || more.length > 0) {
            file.problems.error(
                ['networks', key],
                'A network has a plain name, and one range of addresses at most'
            );
        }
        return network;
    });
    const plain = { external: false, internal: false, ipv6: false, subnet: null, gateway: null, labels: {} };
    return new Map([
        ['default', { key: 'default', name: `${stack}_default`, ...plain }] as const,
        ...declared.map((network) => [network.key, network] as const)
    ]);
}

function readVolumes(file: Fields, stack: string): ReadonlyMap<string, DeclaredVolume> {
    return new Map(
        file.children('volumes').map(([key, fields]) => {
            const external = fields.flag('external');
            const name = fields.text('name') ?? (external ? key : `${stack}_${key}`);
            const volume: DeclaredVolume = {
                key,
                name,
                external,
                driver: fields.text('driver') ?? 'local',
                options: Object.fromEntries(
                    fields.pairs('driver_opts').map(([option, value]) => [option, value ?? ''])
                ),
                labels: readLabels(fields)
            };
            fields.close();
            if (!isName(name)) {
                file.problems.error(['volumes', key], 'This is no name of a volume');
            }
            return [key, volume];
        })
    );
}

/** Configs and secrets whose content stands in the file, or in a variable of the stack. */
function readContents(
    file: Fields,
    key: 'configs' | 'secrets',
    environment: Environment
): ReadonlyMap<string, string> {
    return new Map(
        file.children(key).flatMap(([name, fields]): [string, string][] => {
            const variable = fields.text('environment');
            const content =
                fields.text('content') ?? (variable === null ? undefined : environment.get(variable));
            fields.text('name');
            fields.close({ file: 'give its content', external: 'give its content' });
            if (content === undefined) {
                if (!isTree(fields.raw('file')) && !fields.has('file') && !fields.has('external')) {
                    file.problems.error([key, name], 'It has content, or names a variable of the stack');
                }
                return [[name, '']];
            }
            return [[name, content]];
        })
    );
}
