/** Reads the spec back from a container that exists, so that it can be shown, judged and made again. */
import type {
    ContainerConfig,
    EngineNetwork,
    EngineVolume,
    HostConfig,
    InspectedContainer,
    InspectedImage
} from '../engine/documents.ts';
import {
    emptySpec,
    type Healthcheck,
    isReservedLabel,
    labelOf,
    type Mount,
    type NetworkUse,
    type Port,
    type Spec
} from './spec.ts';

/** What the spec is read from. */
export interface Inspected {
    readonly container: InspectedContainer;
    /** Null when the image is gone; then what came from it is read as the container's own. */
    readonly image: InspectedImage | null;
    readonly volumes: ReadonlyMap<string, EngineVolume>;
    readonly networks: ReadonlyMap<string, EngineNetwork>;
}

const nanoseconds = 1_000_000_000;
/** Labels that stay when a container is made again. */
const kept = new Set<string>(Object.values(labelOf));

/** The spec of a container. Pure. */
export function specOf({ container, image, volumes, networks }: Inspected): Spec {
    const { Config: config, HostConfig: host } = container;
    const base = image?.Config ?? {};
    const project = config.Labels?.[labelOf.project];
    const image0 = config.Labels?.[labelOf.reference] ?? config.Image ?? container.Image;
    return {
        ...emptySpec,
        ...processOf(config, base, container),
        name: container.Name.replace(/^\//, ''),
        image: image0,
        ports: portsOf(host),
        mounts: mountsOf(container, volumes, project),
        networks: networksOf(container, networks, project),
        ...restartOf(host),
        limits: {
            memoryBytes: positive(host.Memory),
            cpus: positive((host.NanoCpus ?? 0) / nanoseconds) ?? cpusOfQuota(host),
            pids: positive(host.PidsLimit)
        },
        ...confinementOf(host),
        logging: loggingOf(host),
        extraHosts: host.ExtraHosts ?? [],
        dns: host.Dns ?? [],
        dnsSearch: host.DnsSearch ?? [],
        foreign: foreignOf(host)
    };
}

function processOf(
    config: ContainerConfig,
    base: ContainerConfig,
    { Id: id, HostConfig: host }: InspectedContainer
): Partial<Spec> {
    const inherited = new Set([...(base.Env ?? []), ...envOfPodman(config, base)]);
    const entrypoint = listOf(config.Entrypoint);
    const ownEntrypoint = same(entrypoint, listOf(base.Entrypoint)) ? null : entrypoint;
    const healthcheck = healthcheckOf(config);
    return {
        command: ownEntrypoint === null && same(config.Cmd, base.Cmd) ? null : (config.Cmd ?? null),
        entrypoint: ownEntrypoint,
        env: Object.fromEntries(
            (config.Env ?? [])
                .filter((entry) => !inherited.has(entry))
                .map((entry) => {
                    const at = entry.indexOf('=');
                    return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)];
                })
        ),
        labels: Object.fromEntries(
            Object.entries(config.Labels ?? {}).filter(
                ([name, value]) => base.Labels?.[name] !== value && (kept.has(name) || !isReservedLabel(name))
            )
        ),
        user: (config.User ?? '') === (base.User ?? '') ? null : (config.User ?? null),
        workdir: (config.WorkingDir ?? '') === (base.WorkingDir ?? '') ? null : (config.WorkingDir ?? null),
        // With the network of another one goes its name.
        hostname:
            config.Hostname === undefined || id.startsWith(config.Hostname) || sharesNetwork(host)
                ? null
                : config.Hostname,
        tty: config.Tty ?? false,
        stdinOpen: config.OpenStdin ?? false,
        stopSignal: !config.StopSignal || config.StopSignal === base.StopSignal ? null : config.StopSignal,
        stopSeconds: config.StopTimeout ?? null,
        healthcheck: same(healthcheck, healthcheckOf(base)) ? null : healthcheck
    };
}

/** What Podman puts among the variables of each container. */
function envOfPodman(
    { Env: env, Hostname: hostname }: ContainerConfig,
    base: ContainerConfig
): readonly string[] {
    if (env?.includes('container=podman') !== true) {
        return [];
    }
    const hasPath = (base.Env ?? []).some((entry) => entry.startsWith('PATH='));
    return [
        'container=podman',
        'TERM=xterm',
        `HOSTNAME=${hostname}`,
        ...(hasPath ? [] : env.filter((entry) => entry.startsWith('PATH=')))
    ];
}

function confinementOf(host: HostConfig): Partial<Spec> {
    const network = host.NetworkMode ?? '';
    return {
        init: host.Init ?? false,
        readOnly: host.ReadonlyRootfs ?? false,
        shmBytes: host.ShmSize === undefined || host.ShmSize === 67_108_864 ? null : positive(host.ShmSize),
        capAdd: host.CapAdd ?? [],
        capDrop: host.CapDrop ?? [],
        devices: (host.Devices ?? []).map(
            ({ PathOnHost, PathInContainer, CgroupPermissions }) =>
                `${PathOnHost}:${PathInContainer}:${CgroupPermissions}`
        ),
        privileged: host.Privileged ?? false,
        securityOpt: host.SecurityOpt ?? [],
        sysctls: host.Sysctls ?? {},
        ulimits: Object.fromEntries(
            (host.Ulimits ?? []).map(({ Name, Soft, Hard }) => [
                Name.replace(/^RLIMIT_/, '').toLowerCase(),
                { soft: Soft, hard: Hard }
            ])
        ),
        networkMode: network === 'host' || network === 'none' || network.includes(':') ? network : '',
        pidMode: plainMode(host.PidMode),
        ipcMode: plainMode(host.IpcMode),
        utsMode: plainMode(host.UTSMode),
        usernsMode: plainMode(host.UsernsMode),
        cgroupParent: host.CgroupParent ?? '',
        runtime: ['runc', 'oci', 'crun'].includes(host.Runtime ?? 'runc') ? '' : (host.Runtime ?? '')
    };
}

const sharesNetwork = ({ NetworkMode: mode = '' }: HostConfig): boolean =>
    mode === 'host' || mode.startsWith('container:');

/** Both engines write out their default, which is a namespace of the container's own. */
const plainMode = (mode: string | undefined): string =>
    mode === undefined || mode === 'private' || mode === 'shareable' ? '' : mode;

function foreignOf(host: HostConfig): readonly string[] {
    const found: readonly (readonly [string, readonly unknown[] | null | undefined])[] = [
        ['VolumesFrom', host.VolumesFrom],
        ['DeviceRequests', host.DeviceRequests],
        ['DeviceCgroupRules', host.DeviceCgroupRules],
        ['GroupAdd', host.GroupAdd],
        ['DnsOptions', host.DnsOptions]
    ];
    return found.filter(([, value]) => (value ?? []).length > 0).map(([name]) => name);
}

/** Ports as they were asked for: without a host port the engine took a free one. */
function portsOf({ PortBindings: bindings }: HostConfig): readonly Port[] {
    return Object.entries(bindings ?? {}).flatMap(([key, list]) => {
        const [port = '', protocol = 'tcp'] = key.split('/');
        return (list ?? []).map(({ HostIp, HostPort }) => ({
            containerPort: Number(port),
            hostPort: positive(Number(HostPort ?? '0')),
            hostIp: HostIp === undefined || HostIp === '' ? '0.0.0.0' : HostIp,
            protocol: protocol as Port['protocol']
        }));
    });
}

function mountsOf(
    { Mounts: points, HostConfig: host, Config: config }: InspectedContainer,
    volumes: ReadonlyMap<string, EngineVolume>,
    project: string | undefined
): readonly Mount[] {
    const written = JSON.parse(config.Labels?.[labelOf.written] ?? '{}') as Readonly<Record<string, string>>;
    const mounts = (points ?? []).map((point): Mount => {
        const volume = point.Type === 'volume' ? volumes.get(point.Name ?? '') : undefined;
        const source =
            point.Type === 'volume' ? (point.Name ?? null) : point.Type === 'tmpfs' ? null : point.Source;
        return {
            type: point.Type === 'volume' || point.Type === 'tmpfs' ? point.Type : 'bind',
            source,
            written: written[point.Destination] ?? source,
            target: point.Destination,
            readOnly: !point.RW,
            propagation: ['rprivate', 'private'].includes(point.Propagation ?? '')
                ? ''
                : (point.Propagation ?? ''),
            tmpfsBytes: null,
            volume:
                point.Type === 'volume'
                    ? {
                          driver: volume?.Driver ?? 'local',
                          options: volume?.Options ?? {},
                          external: volume?.Labels?.[labelOf.project] !== project
                      }
                    : null
        };
    });
    const known = new Set(mounts.map(({ target }) => target));
    const sizes = new Map(
        (host.Mounts ?? []).flatMap(({ Target, TmpfsOptions }) =>
            TmpfsOptions?.SizeBytes === undefined ? [] : [[Target, TmpfsOptions.SizeBytes] as const]
        )
    );
    const temporary = [
        ...Object.keys(host.Tmpfs ?? {}),
        ...(host.Mounts ?? []).filter(({ Type }) => Type === 'tmpfs').map(({ Target }) => Target)
    ].filter((target) => !known.has(target));
    return [
        ...mounts.map((mount) =>
            mount.type === 'tmpfs' ? { ...mount, tmpfsBytes: sizes.get(mount.target) ?? null } : mount
        ),
        ...temporary.map((target): Mount => ({
            type: 'tmpfs',
            source: null,
            written: null,
            target,
            readOnly: false,
            propagation: '',
            tmpfsBytes: sizes.get(target) ?? null,
            volume: null
        }))
    ];
}

function networksOf(
    { NetworkSettings: settings, Id: id, Config: config, Name: name }: InspectedContainer,
    networks: ReadonlyMap<string, EngineNetwork>,
    project: string | undefined
): readonly NetworkUse[] {
    return Object.entries(settings.Networks ?? {})
        .filter(([network]) => !['bridge', 'host', 'none', 'default', 'podman'].includes(network))
        .map(([network, { Aliases: aliases }]) => ({
            name: network,
            aliases: (aliases ?? []).filter(
                (alias) =>
                    !id.startsWith(alias) && alias !== name.replace(/^\//, '') && alias !== config.Hostname
            ),
            external: networks.get(network)?.Labels?.[labelOf.project] !== project,
            driver: networks.get(network)?.Driver ?? 'bridge'
        }));
}

function restartOf({ RestartPolicy: policy }: HostConfig): Pick<Spec, 'restart' | 'restartRetries'> {
    const name = policy?.Name ?? '';
    return {
        restart: name === '' ? 'no' : (name as Spec['restart']),
        restartRetries: name === 'on-failure' ? (policy?.MaximumRetryCount ?? 0) : 0
    };
}

function loggingOf({ LogConfig: log }: HostConfig): Spec['logging'] {
    const driver = log?.Type ?? '';
    return driver === '' || ['json-file', 'k8s-file'].includes(driver)
        ? null
        : { driver, options: log?.Config ?? {} };
}

function healthcheckOf({ Healthcheck: check }: ContainerConfig): Healthcheck | null {
    return check === undefined || check === null || (check.Test ?? []).length === 0
        ? null
        : {
              test: check.Test ?? [],
              intervalSeconds: (check.Interval ?? 0) / nanoseconds,
              timeoutSeconds: (check.Timeout ?? 0) / nanoseconds,
              retries: check.Retries ?? 0,
              startSeconds: (check.StartPeriod ?? 0) / nanoseconds
          };
}

const positive = (value: number | null | undefined): number | null =>
    value === undefined || value === null || value <= 0 ? null : value;
const cpusOfQuota = ({ CpuQuota: quota = 0, CpuPeriod: period = 0 }: HostConfig): number | null =>
    quota > 0 ? quota / (period > 0 ? period : 100_000) : null;
const listOf = (value: readonly string[] | string | null | undefined): readonly string[] | null =>
    typeof value === 'string'
        ? [value]
        : value === undefined || value === null || value.length === 0
          ? null
          : value;
const same = (one: unknown, other: unknown): boolean =>
    JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
