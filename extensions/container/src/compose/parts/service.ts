/** One service of a compose file as a spec. */
import { isReference } from '../../images/reference.ts';
import {
    emptySpec,
    type Healthcheck,
    isReservedLabel,
    type NetworkUse,
    type Spec,
    type Ulimit
} from '../../spec/spec.ts';
import { readFiles } from '../files.ts';
import type { Environment } from '../interpolate.ts';
import { bytesOf, type Fields, isTree, secondsOf, wordsOf } from '../reader.ts';
import { type MountScope, readMounts } from './mounts.ts';
import { readPorts } from './ports.ts';

/** What a service waits for. */
export interface Dependency {
    readonly service: string;
    readonly condition: 'service_started' | 'service_healthy' | 'service_completed_successfully';
    /** Whether the file needs a service of that name that is active. */
    readonly required: boolean;
}

/** A service that was read. */
export interface ServiceModel {
    readonly name: string;
    /** Without the name of a container. */
    readonly spec: Spec;
    readonly containerName: string | null;
    readonly scale: number;
    readonly dependsOn: readonly Dependency[];
    readonly profiles: readonly string[];
}

/** A network that a compose file declares. */
export interface DeclaredNetwork {
    readonly key: string;
    readonly name: string;
    readonly external: boolean;
    readonly internal: boolean;
    readonly ipv6: boolean;
    readonly subnet: string | null;
    readonly gateway: string | null;
    readonly labels: Readonly<Record<string, string>>;
}

/** What the rest of the file gives to a service. */
export interface ServiceScope extends MountScope {
    readonly environment: Environment;
    readonly networks: ReadonlyMap<string, DeclaredNetwork>;
    readonly configs: ReadonlyMap<string, string>;
    readonly secrets: ReadonlyMap<string, string>;
}

const reasons: Readonly<Record<string, string>> = {
    build: 'images are built by the extension deploy',
    env_file: 'give the variables with the stack',
    extends: 'write the service out',
    volumes_from: 'name the volumes',
    links: 'services of one network find each other by name'
};

/** Reads one service. Its faults go to the problems of the fields. */
export function readService(name: string, fields: Fields, scope: ServiceScope): ServiceModel {
    const image = fields.text('image');
    if (image === null && !fields.has('build')) {
        fields.problems.error(fields.path, 'A service has an image');
    } else if (image !== null && !isReference(image)) {
        fields.problems.error(fields.at('image'), `${image} is no name of an image`);
    }
    const deploy = readDeploy(fields);
    const spec: Spec = {
        ...emptySpec,
        image: image ?? '',
        ...readProcess(fields, scope),
        ports: readPorts(fields),
        mounts: readMounts(fields, scope),
        ...readNetworks(name, fields, scope),
        ...readRestart(fields),
        limits: deploy.limits,
        healthcheck: readHealthcheck(fields),
        labels: readLabels(fields),
        ...readRights(fields),
        logging: readLogging(fields),
        files: readFiles(fields, scope)
    };
    const containerName = fields.text('container_name');
    if (containerName !== null && !/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/.test(containerName)) {
        fields.problems.error(fields.at('container_name'), 'This is no name of a container');
    }
    const model: ServiceModel = {
        name,
        spec,
        containerName,
        scale: deploy.scale,
        dependsOn: readDependencies(fields),
        profiles: fields.texts('profiles')
    };
    fields.texts('expose');
    checkScale(model, fields);
    fields.close(reasons);
    return model;
}

function checkScale({ scale, containerName, spec }: ServiceModel, fields: Fields): void {
    if (scale > 1 && (containerName !== null || spec.ports.some(({ hostPort }) => hostPort !== null))) {
        fields.problems.error(
            fields.path,
            'A service with a container_name or a fixed port runs in one container at most'
        );
    }
    if (spec.readOnly && spec.files.length > 0) {
        fields.problems.lacks(
            fields.at('read_only'),
            'its configs and secrets are written into the container'
        );
    }
}

function readProcess(fields: Fields, { environment }: ServiceScope): Partial<Spec> {
    const commandOf = (key: string): readonly string[] | null => {
        const value = fields.raw(key);
        return value === undefined || value === null
            ? null
            : typeof value === 'string'
              ? wordsOf(value, fields.at(key), fields.problems)
              : fields.texts(key);
    };
    const env: Record<string, string> = {};
    for (const [name, value] of fields.pairs('environment')) {
        if (!/^[^=\0\s][^=\0]*$/.test(name) || name === '__proto__') {
            fields.problems.error(fields.at('environment'), `"${name}" is no name of a variable`);
            continue;
        }
        const given = value ?? environment.get(name);
        if (given !== undefined) {
            env[name] = given;
        }
    }
    return {
        command: commandOf('command'),
        entrypoint: commandOf('entrypoint'),
        env,
        user: fields.text('user'),
        workdir: fields.text('working_dir'),
        hostname: fields.text('hostname'),
        tty: fields.flag('tty'),
        stdinOpen: fields.flag('stdin_open'),
        init: fields.flag('init'),
        readOnly: fields.flag('read_only'),
        stopSeconds: wholeSeconds(fields),
        stopSignal: fields.text('stop_signal'),
        shmBytes: bytesOf(fields.text('shm_size'), fields.at('shm_size'), fields.problems),
        extraHosts: readExtraHosts(fields),
        dns: fields.texts('dns', true),
        dnsSearch: fields.texts('dns_search', true)
    };
}

function wholeSeconds(fields: Fields): number | null {
    const seconds = secondsOf(
        fields.text('stop_grace_period'),
        fields.at('stop_grace_period'),
        fields.problems
    );
    return seconds === null ? null : Math.ceil(seconds);
}

function readExtraHosts(fields: Fields): readonly string[] {
    const value = fields.raw('extra_hosts');
    return isTree(value)
        ? fields.pairs('extra_hosts').map(([host, address]) => `${host}:${address ?? ''}`)
        : fields.texts('extra_hosts').map((entry) => entry.replace('=', ':'));
}

function readNetworks(
    service: string,
    fields: Fields,
    scope: ServiceScope
): Pick<Spec, 'networkMode' | 'networks' | 'pidMode' | 'ipcMode' | 'utsMode' | 'usernsMode'> {
    const networkMode = fields.text('network_mode') ?? '';
    const value = fields.raw('networks');
    const entries: readonly (readonly [string, Fields | null])[] = Array.isArray(value)
        ? fields.texts('networks').map((name) => [name, null] as const)
        : fields.children('networks');
    if (networkMode !== '' && entries.length > 0) {
        fields.problems.error(fields.at('network_mode'), 'A service has networks or a network_mode');
    }
    const used = entries.length === 0 && networkMode === '' ? [['default', null] as const] : entries;
    const found = used.flatMap(([key, options]): (NetworkUse & { readonly priority: number })[] => {
        const aliases = options?.texts('aliases') ?? [];
        const priority = options?.count('priority') ?? 0;
        options?.close();
        const declared = scope.networks.get(key);
        if (declared === undefined) {
            fields.problems.error(fields.at('networks'), `The network ${key} is not declared under networks`);
            return [];
        }
        const { name, external } = declared;
        return [{ name, aliases: [...new Set([service, ...aliases])], external, driver: 'bridge', priority }];
    });
    // A container is made in its first network, and connected to the others in their order.
    const networks = found
        .sort((one, other) => other.priority - one.priority)
        .map(({ priority: _priority, ...use }) => use);
    return {
        networkMode,
        networks,
        pidMode: fields.text('pid') ?? '',
        ipcMode: fields.text('ipc') ?? '',
        utsMode: fields.text('uts') ?? '',
        usernsMode: fields.text('userns_mode') ?? ''
    };
}

function readRestart(fields: Fields): Pick<Spec, 'restart' | 'restartRetries'> {
    const raw = fields.raw('restart');
    const text = raw === false ? 'no' : (fields.text('restart') ?? 'no');
    const [, name, retries = '0'] = /^(no|always|unless-stopped|on-failure)(?::(\d+))?$/.exec(text) ?? [];
    if (name === undefined) {
        fields.problems.error(fields.at('restart'), 'This is one of no, always, unless-stopped, on-failure');
    }
    return { restart: (name ?? 'no') as Spec['restart'], restartRetries: Number(retries) };
}

function readDeploy(fields: Fields): { readonly scale: number; readonly limits: Spec['limits'] } {
    const deploy = fields.child('deploy');
    const resources = deploy?.child('resources') ?? null;
    const limits = resources?.child('limits') ?? null;
    const problems = fields.problems;
    const cpusText = limits?.text('cpus') ?? fields.text('cpus');
    const memory = limits?.text('memory') ?? fields.text('mem_limit');
    const cpus = cpusText === null ? null : Number(cpusText);
    if (cpus !== null && !(cpus > 0)) {
        problems.error(fields.at('cpus'), 'This is a number of processors');
    }
    const result = {
        scale: deploy?.count('replicas') ?? fields.count('scale') ?? 1,
        limits: {
            memoryBytes: bytesOf(memory, fields.at('mem_limit'), problems),
            cpus,
            pids: limits?.count('pids') ?? fields.count('pids_limit', -1)
        }
    };
    if (result.scale > 100) {
        problems.error(fields.at('scale'), 'A service runs in at most 100 containers');
    }
    limits?.close();
    resources?.close();
    deploy?.close();
    return result;
}

function readHealthcheck(fields: Fields): Healthcheck | null {
    const check = fields.child('healthcheck');
    if (check === null) {
        return null;
    }
    const time = (key: string): number => secondsOf(check.text(key), check.at(key), check.problems) ?? 0;
    const raw = check.raw('test');
    const test = typeof raw === 'string' ? ['CMD-SHELL', raw] : check.texts('test');
    const result = {
        test: check.flag('disable') ? ['NONE'] : test,
        intervalSeconds: time('interval'),
        timeoutSeconds: time('timeout'),
        retries: check.count('retries') ?? 0,
        startSeconds: time('start_period')
    };
    if (result.test.length > 0 && !['NONE', 'CMD', 'CMD-SHELL'].includes(result.test[0] ?? '')) {
        check.problems.error(check.at('test'), 'A test begins with NONE, CMD or CMD-SHELL');
    }
    check.close();
    return result;
}

/** Labels of a service, volume or network. Those of Compose and of the panel are refused: they say what belongs to which stack. */
export function readLabels(fields: Fields): Readonly<Record<string, string>> {
    const labels: Record<string, string> = {};
    for (const [name, value] of fields.pairs('labels')) {
        if (isReservedLabel(name)) {
            fields.problems.error([...fields.at('labels'), name], 'This label is not for compose files');
        } else if (name !== '__proto__') {
            labels[name] = value ?? '';
        }
    }
    return labels;
}

function readRights(fields: Fields): Partial<Spec> {
    return {
        capAdd: fields.texts('cap_add'),
        capDrop: fields.texts('cap_drop'),
        devices: fields.texts('devices'),
        privileged: fields.flag('privileged'),
        securityOpt: fields.texts('security_opt'),
        sysctls: Object.fromEntries(fields.pairs('sysctls').map(([name, value]) => [name, value ?? ''])),
        ulimits: readUlimits(fields),
        cgroupParent: fields.text('cgroup_parent') ?? '',
        runtime: fields.text('runtime') ?? ''
    };
}

function readUlimits(fields: Fields): Readonly<Record<string, Ulimit>> {
    const ulimits = fields.child('ulimits');
    const value = fields.raw('ulimits');
    return Object.fromEntries(
        Object.keys(isTree(value) ? value : {}).map((name) => {
            if (isTree(ulimits?.raw(name))) {
                const pair = ulimits.child(name) as Fields;
                const limit = { soft: pair.count('soft', -1) ?? 0, hard: pair.count('hard', -1) ?? 0 };
                pair.close();
                return [name, limit];
            }
            const both = ulimits?.count(name, -1) ?? 0;
            return [name, { soft: both, hard: both }];
        })
    );
}

/** Drivers whose lines the engine gives back; others send them to an address that nothing here checks. */
const logDrivers = ['json-file', 'local', 'journald', 'k8s-file', 'none'] as const;
const logOptions = [
    'max-size',
    'max-file',
    'compress',
    'tag',
    'labels',
    'env',
    'mode',
    'max-buffer-size'
] as const;

function readLogging(fields: Fields): Spec['logging'] {
    const logging = fields.child('logging');
    if (logging === null) {
        return null;
    }
    const driver = logging.text('driver') ?? 'json-file';
    if (!(logDrivers as readonly string[]).includes(driver)) {
        logging.problems.lacks([...logging.at('driver'), driver]);
    }
    const options = logging.pairs('options').map(([name, value]) => [name, value ?? ''] as const);
    for (const [name] of options) {
        // Among the others is one of Podman that writes the log to any path of the machine.
        if (!(logOptions as readonly string[]).includes(name)) {
            logging.problems.lacks([...logging.at('options'), name]);
        }
    }
    logging.close();
    return { driver, options: Object.fromEntries(options) };
}

function readDependencies(fields: Fields): readonly Dependency[] {
    const value = fields.raw('depends_on');
    if (!isTree(value)) {
        return fields
            .texts('depends_on')
            .map((service) => ({ service, condition: 'service_started' as const, required: true }));
    }
    return fields.children('depends_on').map(([service, options]) => {
        const condition =
            options.word('condition', [
                'service_started',
                'service_healthy',
                'service_completed_successfully'
            ] as const) ?? 'service_started';
        const required = options.raw('required') === undefined || options.flag('required');
        options.close();
        return { service, condition, required };
    });
}
