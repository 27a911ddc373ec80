/** Documents of the engine's API, as far as they are read here. Docker and Podman differ in what they leave out. */

/** The engine's answer to `GET /version`, as far as it is read. */
export interface EngineVersion {
    readonly Version: string;
    readonly ApiVersion: string;
    readonly MinAPIVersion?: string;
    readonly Arch: string;
    readonly Components?: readonly { readonly Name: string }[];
}

/** A published port in a list of containers. */
export interface ListedPort {
    readonly IP?: string;
    readonly PrivatePort: number;
    readonly PublicPort?: number;
    readonly Type: string;
}

/** A mount of a container. */
export interface MountPoint {
    readonly Type: string;
    readonly Name?: string;
    readonly Source: string;
    readonly Destination: string;
    readonly RW: boolean;
    readonly Propagation?: string;
}

/** Labels of an object of the engine, by name. */
export type Labels = Readonly<Record<string, string>>;

/** A row of `GET /containers/json`. */
export interface ListedContainer {
    readonly Id: string;
    readonly Names: readonly string[];
    readonly Image: string;
    readonly ImageID: string;
    /** Seconds since 1970. */
    readonly Created: number;
    readonly State: string;
    /** Such as `Up 2 minutes (healthy)`. */
    readonly Status: string;
    readonly Ports: readonly ListedPort[] | null;
    readonly Labels: Labels | null;
    readonly Mounts: readonly MountPoint[] | null;
    readonly NetworkSettings?: {
        readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>> | null;
    } | null;
}

/** Where a port is published. */
export interface PortBinding {
    readonly HostIp?: string;
    readonly HostPort?: string;
}

/** The part of a container that is fixed when it is made. */
export interface HostConfig {
    readonly Binds?: readonly string[] | null;
    readonly Mounts?: readonly EngineMount[] | null;
    readonly Tmpfs?: Readonly<Record<string, string>> | null;
    readonly PortBindings?: Readonly<Record<string, readonly PortBinding[] | null>> | null;
    readonly RestartPolicy?: { readonly Name?: string; readonly MaximumRetryCount?: number };
    readonly Memory?: number;
    readonly NanoCpus?: number;
    readonly CpuQuota?: number;
    readonly CpuPeriod?: number;
    readonly PidsLimit?: number | null;
    readonly Init?: boolean | null;
    readonly ReadonlyRootfs?: boolean;
    readonly CapAdd?: readonly string[] | null;
    readonly CapDrop?: readonly string[] | null;
    readonly Devices?:
        | readonly {
              readonly PathOnHost: string;
              readonly PathInContainer: string;
              readonly CgroupPermissions: string;
          }[]
        | null;
    readonly DeviceRequests?: readonly unknown[] | null;
    readonly DeviceCgroupRules?: readonly string[] | null;
    readonly Privileged?: boolean;
    readonly SecurityOpt?: readonly string[] | null;
    readonly Sysctls?: Readonly<Record<string, string>> | null;
    readonly Ulimits?:
        readonly { readonly Name: string; readonly Soft: number; readonly Hard: number }[] | null;
    readonly NetworkMode?: string;
    readonly PidMode?: string;
    readonly IpcMode?: string;
    readonly UTSMode?: string;
    readonly UsernsMode?: string;
    readonly CgroupParent?: string;
    readonly Runtime?: string;
    readonly ShmSize?: number;
    readonly VolumesFrom?: readonly string[] | null;
    readonly LogConfig?: { readonly Type?: string; readonly Config?: Labels | null };
    readonly ExtraHosts?: readonly string[] | null;
    readonly Dns?: readonly string[] | null;
    readonly DnsSearch?: readonly string[] | null;
    readonly DnsOptions?: readonly string[] | null;
    readonly GroupAdd?: readonly string[] | null;
}

/** A mount as it was asked for. */
export interface EngineMount {
    readonly Type: string;
    readonly Source?: string;
    readonly Target: string;
    readonly ReadOnly?: boolean;
    readonly BindOptions?: { readonly Propagation?: string };
    readonly VolumeOptions?: {
        readonly DriverConfig?: { readonly Name?: string; readonly Options?: Labels | null };
    };
    readonly TmpfsOptions?: { readonly SizeBytes?: number };
}

/** What runs in a container, or in containers of an image. */
export interface ContainerConfig {
    readonly Image?: string;
    readonly Env?: readonly string[] | null;
    readonly Cmd?: readonly string[] | null;
    readonly Entrypoint?: readonly string[] | string | null;
    readonly Labels?: Labels | null;
    readonly User?: string;
    readonly WorkingDir?: string;
    readonly Hostname?: string;
    readonly Tty?: boolean;
    readonly OpenStdin?: boolean;
    readonly StopSignal?: string;
    readonly StopTimeout?: number | null;
    readonly ExposedPorts?: Readonly<Record<string, unknown>> | null;
    readonly Healthcheck?: EngineHealthcheck | null;
}

/** The health check of a container as the engine writes it; times are nanoseconds. */
export interface EngineHealthcheck {
    readonly Test?: readonly string[] | null;
    readonly Interval?: number;
    readonly Timeout?: number;
    readonly Retries?: number;
    readonly StartPeriod?: number;
}

/** The engine's answer to `GET /containers/{id}/json`, as far as it is read. */
export interface InspectedContainer {
    readonly Id: string;
    readonly Name: string;
    /** Id of the image. */
    readonly Image: string;
    readonly Created: string;
    readonly RestartCount: number;
    readonly State: {
        readonly Status: string;
        readonly Running: boolean;
        readonly Paused: boolean;
        readonly Restarting: boolean;
        readonly OOMKilled?: boolean;
        readonly ExitCode: number;
        readonly Error?: string;
        readonly StartedAt: string;
        readonly FinishedAt: string;
        readonly Health?: { readonly Status: string } | null;
        /** Podman 4 names it so. */
        readonly Healthcheck?: { readonly Status: string } | null;
    };
    readonly Config: ContainerConfig;
    readonly HostConfig: HostConfig;
    readonly Mounts: readonly MountPoint[] | null;
    readonly NetworkSettings: {
        readonly Ports?: Readonly<Record<string, readonly PortBinding[] | null>> | null;
        readonly Networks?: Readonly<
            Record<
                string,
                {
                    readonly IPAddress?: string;
                    readonly Aliases?: readonly string[] | null;
                    readonly NetworkID?: string;
                }
            >
        > | null;
    };
}

/** A row of `GET /images/json`. */
export interface ListedImage {
    readonly Id: string;
    readonly Labels?: Labels | null;
    readonly RepoTags: readonly string[] | null;
    readonly RepoDigests: readonly string[] | null;
    readonly Created: number;
    readonly Size: number;
}

/** The engine's answer to `GET /images/{name}/json`, as far as it is read. */
export interface InspectedImage {
    readonly Id: string;
    readonly RepoTags: readonly string[] | null;
    readonly RepoDigests: readonly string[] | null;
    readonly Created: string;
    readonly Size: number;
    readonly Config?:
        (ContainerConfig & { readonly Volumes?: Readonly<Record<string, unknown>> | null }) | null;
}

/** A volume as the engine describes it. */
export interface EngineVolume {
    readonly Name: string;
    readonly Driver: string;
    readonly Mountpoint: string;
    readonly CreatedAt?: string;
    readonly Labels: Labels | null;
    readonly Options: Labels | null;
    readonly UsageData?: { readonly Size: number; readonly RefCount: number } | null;
}

/** A network as the engine describes it. */
export interface EngineNetwork {
    readonly Id: string;
    readonly Name: string;
    readonly Driver: string;
    readonly Internal: boolean;
    readonly EnableIPv6: boolean;
    readonly Created?: string;
    readonly Labels: Labels | null;
    readonly IPAM?: {
        readonly Config?: readonly { readonly Subnet?: string; readonly Gateway?: string }[] | null;
    };
    readonly Containers?: Readonly<Record<string, { readonly Name: string }>> | null;
}
