/** Writes compose text: of containers that exist, and of what a command line says. What is written compiles to the same specs again. */
import { stringify } from 'yaml';

import { type Healthcheck, labelOf, type Mount, type Port, type Spec } from '../spec/spec.ts';

/** A value of a compose file. */
export type ComposeValue =
    string | number | boolean | null | readonly ComposeValue[] | { readonly [key: string]: ComposeValue };
/** A mapping of a compose file. */
export type ComposeTree = Readonly<Record<string, ComposeValue>>;

/** A service that is written. */
export interface WrittenService {
    readonly name: string;
    /** Of its first container. */
    readonly spec: Spec;
    readonly scale: number;
    /** Null: the name that a stack gives by itself. */
    readonly containerName: string | null;
    /** As the label of Compose has it: `db:service_healthy:false,…`. */
    readonly dependsOn: string;
}

/** The text of a file. Signs of variables are doubled: no value is filled in anew. */
export function writeCompose(file: ComposeTree): string {
    return stringify(escaped(file), { lineWidth: 0 });
}

/** The text of a stack of these services. */
export function writeServices(services: readonly WrittenService[]): string {
    const specs = services.map(({ spec }) => spec);
    const networks = new Map(specs.flatMap((spec) => spec.networks).map((each) => [each.name, each]));
    const volumes = new Map(
        specs.flatMap((spec) =>
            spec.mounts.flatMap((mount) =>
                mount.type === 'volume' && mount.source !== null ? [[mount.source, mount] as const] : []
            )
        )
    );
    return writeCompose({
        services: Object.fromEntries(services.map((service) => [service.name, serviceOf(service)])),
        ...sectionOf(
            'networks',
            [...networks].map(([name, { external }]) => [name, named(name, external)])
        ),
        ...sectionOf(
            'volumes',
            [...volumes].map(([name, { volume }]) => [
                name,
                volume === null || volume.external
                    ? named(name, true)
                    : { ...named(name, false), ...volumeOptions(volume) }
            ])
        )
    });
}

const named = (name: string, external: boolean): ComposeTree =>
    external ? { name, external: true } : { name };

function volumeOptions({ driver, options }: NonNullable<Mount['volume']>): ComposeTree {
    return {
        ...(driver === 'local' ? {} : { driver }),
        ...(Object.keys(options).length === 0 ? {} : { driver_opts: { ...options } })
    };
}

const sectionOf = (key: string, entries: readonly (readonly [string, ComposeTree])[]): ComposeTree =>
    entries.length === 0 ? {} : { [key]: Object.fromEntries(entries) };

function serviceOf({ spec, scale, containerName, dependsOn }: WrittenService): ComposeTree {
    const { networkMode, networks } = spec;
    return present({
        image: spec.image,
        container_name: containerName,
        scale: scale === 1 ? null : scale,
        ...processOf(spec),
        ports: spec.ports.map(portOf),
        volumes: spec.mounts.map(mountOf),
        // Outside of networks of its own a container is in the engine's.
        network_mode: networkMode === '' && networks.length === 0 ? 'bridge' : networkMode,
        networks: Object.fromEntries(
            networks.map(({ name, aliases }) => [name, aliases.length === 0 ? null : { aliases }])
        ),
        restart:
            spec.restart === 'on-failure' && spec.restartRetries > 0
                ? `on-failure:${spec.restartRetries}`
                : spec.restart,
        depends_on: dependenciesOf(dependsOn),
        healthcheck: spec.healthcheck === null ? null : checkOf(spec.healthcheck),
        labels: Object.fromEntries(
            Object.entries(spec.labels).filter(([name]) => !Object.values<string>(labelOf).includes(name))
        ),
        ...rightsOf(spec),
        logging:
            spec.logging === null
                ? null
                : { driver: spec.logging.driver, options: { ...spec.logging.options } }
    });
}

function processOf(spec: Spec): ComposeTree {
    return {
        command: spec.command,
        entrypoint: spec.entrypoint,
        environment: { ...spec.env },
        user: spec.user,
        working_dir: spec.workdir,
        hostname: spec.hostname,
        tty: spec.tty,
        stdin_open: spec.stdinOpen,
        init: spec.init,
        read_only: spec.readOnly,
        stop_grace_period: spec.stopSeconds === null ? null : `${spec.stopSeconds}s`,
        stop_signal: spec.stopSignal,
        shm_size: spec.shmBytes,
        mem_limit: spec.limits.memoryBytes,
        cpus: spec.limits.cpus,
        pids_limit: spec.limits.pids,
        extra_hosts: spec.extraHosts,
        dns: spec.dns,
        dns_search: spec.dnsSearch
    };
}

function rightsOf(spec: Spec): ComposeTree {
    return {
        cap_add: spec.capAdd,
        cap_drop: spec.capDrop,
        devices: spec.devices,
        privileged: spec.privileged,
        security_opt: spec.securityOpt,
        sysctls: { ...spec.sysctls },
        ulimits: Object.fromEntries(
            Object.entries(spec.ulimits).map(([name, { soft, hard }]) => [name, { soft, hard }])
        ),
        pid: spec.pidMode,
        ipc: spec.ipcMode,
        uts: spec.utsMode,
        userns_mode: spec.usernsMode,
        cgroup_parent: spec.cgroupParent,
        runtime: spec.runtime
    };
}

/** Without what says nothing: what is empty or off is so by itself. */
const present = (tree: ComposeTree): ComposeTree =>
    Object.fromEntries(
        Object.entries(tree).filter(
            ([, value]) =>
                value !== null &&
                value !== '' &&
                value !== false &&
                !(typeof value === 'object' && Object.keys(value).length === 0)
        )
    );

const portOf = ({ containerPort, hostPort, hostIp, protocol }: Port): ComposeTree =>
    present({
        target: containerPort,
        published: hostPort === null ? null : String(hostPort),
        host_ip: hostIp,
        protocol
    });

function mountOf({ type, source, target, readOnly, propagation, tmpfsBytes }: Mount): ComposeTree {
    return present({
        type,
        source,
        target,
        read_only: readOnly,
        bind: propagation === '' ? null : { propagation },
        tmpfs: tmpfsBytes === null ? null : { size: tmpfsBytes }
    });
}

const checkOf = ({
    test,
    intervalSeconds,
    timeoutSeconds,
    retries,
    startSeconds
}: Healthcheck): ComposeTree => {
    const time = (seconds: number): string | null => (seconds === 0 ? null : `${seconds * 1_000}ms`);
    return present({
        test,
        interval: time(intervalSeconds),
        timeout: time(timeoutSeconds),
        retries: retries === 0 ? null : retries,
        start_period: time(startSeconds)
    });
};

const dependenciesOf = (label: string): ComposeTree =>
    Object.fromEntries(
        label
            .split(',')
            .map((each) => each.split(':'))
            .flatMap(([service = '', condition = 'service_started']) =>
                service === '' ? [] : [[service, { condition }]]
            )
    );

function escaped(value: ComposeValue): ComposeValue {
    if (typeof value === 'string') {
        return value.replaceAll('$', '$$$$');
    }
    if (Array.isArray(value)) {
        return value.map(escaped);
    }
    return value !== null && typeof value === 'object'
        ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, escaped(each)]))
        : value;
}

/** Of a spec, what no compose file can say; empty where all of it can be written. */
export const unwritable = ({ files, foreign }: Spec): readonly string[] =>
    files.length > 0 ? [...foreign, 'files'] : foreign;
