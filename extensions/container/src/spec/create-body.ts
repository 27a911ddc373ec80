/** Turns a resulting spec into what the engine's create call takes. Nothing else reaches the engine. */
import type { EngineInfo } from '../engine/engine.ts';
import { labelOf, type Mount, type Spec } from './spec.ts';

/** What the body depends on beside the spec. */
export interface CreateOptions {
    readonly engine: Pick<EngineInfo, 'kind'>;
    /** Where the spec says nothing about its log, it is rotated at this size. */
    readonly logBytes: number;
    /** Id of the image to use where the tag has moved on. */
    readonly imageId?: string | undefined;
}

const nanoseconds = 1_000_000_000;
/** Podman's own defaults fail on machines that forbid to raise a limit. */
const podmanUlimits = { nofile: { soft: 1_024, hard: 4_096 }, nproc: { soft: 4_096, hard: 4_096 } };

/** The body of `POST /containers/create`. */
export function createBody(spec: Spec, { engine, logBytes, imageId }: CreateOptions): object {
    const ulimits = engine.kind === 'podman' ? { ...podmanUlimits, ...spec.ulimits } : spec.ulimits;
    const [network] = spec.networks;
    return {
        Image: imageId ?? spec.image,
        ...(spec.command === null ? {} : { Cmd: spec.command }),
        ...(spec.entrypoint === null ? {} : { Entrypoint: spec.entrypoint }),
        Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
        Labels: labelsOf(spec, imageId),
        ...(spec.user === null ? {} : { User: spec.user }),
        ...(spec.workdir === null ? {} : { WorkingDir: spec.workdir }),
        ...(spec.hostname === null ? {} : { Hostname: spec.hostname }),
        Tty: spec.tty,
        OpenStdin: spec.stdinOpen,
        ...(spec.stopSignal === null ? {} : { StopSignal: spec.stopSignal }),
        ...(spec.stopSeconds === null ? {} : { StopTimeout: spec.stopSeconds }),
        ...(spec.healthcheck === null
            ? {}
            : {
                  Healthcheck: {
                      Test: spec.healthcheck.test,
                      Interval: spec.healthcheck.intervalSeconds * nanoseconds,
                      Timeout: spec.healthcheck.timeoutSeconds * nanoseconds,
                      Retries: spec.healthcheck.retries,
                      StartPeriod: spec.healthcheck.startSeconds * nanoseconds
                  }
              }),
        ExposedPorts: Object.fromEntries(
            spec.ports.map(({ containerPort, protocol }) => [`${containerPort}/${protocol}`, {}])
        ),
        HostConfig: {
            ...confinement(spec),
            ...resources(spec),
            Mounts: spec.mounts.map(mountOf),
            PortBindings: bindingsOf(spec),
            RestartPolicy: { Name: spec.restart, MaximumRetryCount: spec.restartRetries },
            Ulimits: Object.entries(ulimits).map(([Name, { soft, hard }]) => ({
                Name,
                Soft: soft,
                Hard: hard
            })),
            NetworkMode:
                spec.networkMode !== '' ? spec.networkMode : (network?.name ?? defaultNetwork(engine)),
            LogConfig: logOf(spec, engine, logBytes),
            ExtraHosts: spec.extraHosts,
            Dns: spec.dns,
            DnsSearch: spec.dnsSearch
        },
        ...(network === undefined
            ? {}
            : {
                  NetworkingConfig: {
                      EndpointsConfig: { [network.name]: { Aliases: network.aliases } }
                  }
              })
    };
}

const defaultNetwork = ({ kind }: Pick<EngineInfo, 'kind'>): string =>
    kind === 'podman' ? 'bridge' : 'default';

function labelsOf(spec: Spec, imageId: string | undefined): object {
    const written = Object.fromEntries(
        spec.mounts.flatMap(({ type, target, source, written: text }) =>
            type === 'bind' && text !== null && text !== source ? [[target, text]] : []
        )
    );
    return {
        ...spec.labels,
        ...(imageId === undefined ? {} : { [labelOf.reference]: spec.image }),
        ...(Object.keys(written).length === 0 ? {} : { [labelOf.written]: JSON.stringify(written) })
    };
}

/** Each setting is sent, also where it is the default: no default of the engine's own takes its place. */
function confinement(spec: Spec): object {
    return {
        Privileged: spec.privileged,
        CapAdd: spec.capAdd,
        CapDrop: spec.capDrop,
        Devices: spec.devices.map((device) => {
            const [host = '', container = host, permissions = 'rwm'] = device.split(':');
            return { PathOnHost: host, PathInContainer: container, CgroupPermissions: permissions };
        }),
        SecurityOpt: spec.securityOpt,
        Sysctls: spec.sysctls,
        PidMode: spec.pidMode,
        ...(spec.ipcMode === '' ? {} : { IpcMode: spec.ipcMode }),
        UTSMode: spec.utsMode,
        UsernsMode: spec.usernsMode,
        CgroupParent: spec.cgroupParent,
        ...(spec.runtime === '' ? {} : { Runtime: spec.runtime }),
        ReadonlyRootfs: spec.readOnly,
        Init: spec.init
    };
}

function resources({ limits, shmBytes }: Spec): object {
    return {
        ...(limits.memoryBytes === null ? {} : { Memory: limits.memoryBytes }),
        ...(limits.cpus === null ? {} : { NanoCpus: Math.round(limits.cpus * nanoseconds) }),
        ...(limits.pids === null ? {} : { PidsLimit: limits.pids }),
        ...(shmBytes === null ? {} : { ShmSize: shmBytes })
    };
}

function mountOf({ type, source, target, readOnly, propagation, tmpfsBytes, volume }: Mount): object {
    return {
        Type: type,
        ...(source === null ? {} : { Source: source }),
        Target: target,
        ReadOnly: readOnly,
        ...(propagation === '' ? {} : { BindOptions: { Propagation: propagation } }),
        ...(tmpfsBytes === null ? {} : { TmpfsOptions: { SizeBytes: tmpfsBytes } }),
        ...(volume === null || volume.external
            ? {}
            : { VolumeOptions: { DriverConfig: { Name: volume.driver, Options: volume.options } } })
    };
}

function bindingsOf({ ports }: Spec): object {
    const bindings = new Map<string, object[]>();
    for (const { containerPort, protocol, hostIp, hostPort } of ports) {
        const key = `${containerPort}/${protocol}`;
        const list = bindings.get(key) ?? [];
        bindings.set(key, list);
        list.push({ HostIp: hostIp, HostPort: hostPort === null ? '' : String(hostPort) });
    }
    return Object.fromEntries(bindings);
}

function logOf({ logging }: Spec, { kind }: Pick<EngineInfo, 'kind'>, logBytes: number): object {
    const rotation =
        kind === 'podman'
            ? { 'max-size': String(logBytes) }
            : { 'max-size': String(logBytes), 'max-file': '2' };
    if (logging === null) {
        return { Type: kind === 'podman' ? 'k8s-file' : 'json-file', Config: rotation };
    }
    const rotates = ['json-file', 'k8s-file'].includes(logging.driver);
    return { Type: logging.driver, Config: rotates ? { ...rotation, ...logging.options } : logging.options };
}
