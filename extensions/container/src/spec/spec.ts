/** The resulting spec: what the engine is sent, whatever way it came. It is the one thing that the policy judges. */
import { createHash } from 'node:crypto';

import type { Labels } from '../engine/documents.ts';

/** A port of a container that is published on the machine. */
export interface Port {
    readonly containerPort: number;
    /** Null: the engine takes a free one. */
    readonly hostPort: number | null;
    readonly hostIp: string;
    readonly protocol: 'tcp' | 'udp' | 'sctp';
}

/** How a volume that a spec names is made, or was made. */
export interface VolumeOptions {
    readonly driver: string;
    readonly options: Labels;
    /** It belongs to another stack, or to none: the spec only uses it. */
    readonly external: boolean;
}

/** A volume, folder or tmpfs that a container sees at `target`. */
export interface Mount {
    readonly type: 'volume' | 'bind' | 'tmpfs';
    /** An absolute path, or the name of a volume; null for a tmpfs and for a volume without a name. */
    readonly source: string | null;
    /** The bind's source as it was written; the same as `source` for anything else. */
    readonly written: string | null;
    readonly target: string;
    readonly readOnly: boolean;
    /** Empty: the engine's default, which is private. */
    readonly propagation: string;
    readonly tmpfsBytes: number | null;
    /** Of a named volume. */
    readonly volume: VolumeOptions | null;
}

/** A network that a container is in. */
export interface NetworkUse {
    /** As the engine knows it. */
    readonly name: string;
    readonly aliases: readonly string[];
    /** It belongs to another stack, or to none. */
    readonly external: boolean;
    /** Driver of an external network, which could be that of the host. */
    readonly driver: string;
}

/** A check of health. Zero: the engine's default. */
export interface Healthcheck {
    readonly test: readonly string[];
    readonly intervalSeconds: number;
    readonly timeoutSeconds: number;
    readonly retries: number;
    readonly startSeconds: number;
}

/** A limit of the kernel. */
export interface Ulimit {
    readonly soft: number;
    readonly hard: number;
}

/** A file that is written into the container before it starts. */
export interface SpecFile {
    readonly path: string;
    readonly content: string;
    readonly mode: number;
    readonly uid: number;
    readonly gid: number;
}

/** One container, wholly resolved. */
export interface Spec {
    readonly name: string;
    readonly image: string;
    /** Null: what the image says. */
    readonly command: readonly string[] | null;
    readonly entrypoint: readonly string[] | null;
    readonly env: Readonly<Record<string, string>>;
    readonly ports: readonly Port[];
    readonly mounts: readonly Mount[];
    readonly networks: readonly NetworkUse[];
    readonly restart: 'no' | 'always' | 'unless-stopped' | 'on-failure';
    readonly restartRetries: number;
    readonly limits: {
        readonly memoryBytes: number | null;
        readonly cpus: number | null;
        readonly pids: number | null;
    };
    /** Null: what the image says. */
    readonly healthcheck: Healthcheck | null;
    readonly labels: Labels;
    readonly user: string | null;
    readonly workdir: string | null;
    readonly hostname: string | null;
    readonly tty: boolean;
    readonly stdinOpen: boolean;
    readonly init: boolean;
    readonly readOnly: boolean;
    readonly stopSeconds: number | null;
    readonly stopSignal: string | null;
    readonly shmBytes: number | null;
    readonly capAdd: readonly string[];
    readonly capDrop: readonly string[];
    /** `host:container:rwm`. */
    readonly devices: readonly string[];
    readonly privileged: boolean;
    readonly securityOpt: readonly string[];
    readonly sysctls: Labels;
    readonly ulimits: Readonly<Record<string, Ulimit>>;
    /** Empty: a network of its own. `host`, `none`, `container:…`. */
    readonly networkMode: string;
    readonly pidMode: string;
    readonly ipcMode: string;
    readonly utsMode: string;
    readonly usernsMode: string;
    readonly cgroupParent: string;
    readonly runtime: string;
    readonly logging: { readonly driver: string; readonly options: Labels } | null;
    readonly extraHosts: readonly string[];
    readonly dns: readonly string[];
    readonly dnsSearch: readonly string[];
    readonly files: readonly SpecFile[];
    /** Settings of the engine that this plugin cannot read or write: a container that has them is judged, and never made again. */
    readonly foreign: readonly string[];
}

/** A spec that says nothing. */
export const emptySpec: Spec = {
    name: '',
    image: '',
    command: null,
    entrypoint: null,
    env: {},
    ports: [],
    mounts: [],
    networks: [],
    restart: 'no',
    restartRetries: 0,
    limits: { memoryBytes: null, cpus: null, pids: null },
    healthcheck: null,
    labels: {},
    user: null,
    workdir: null,
    hostname: null,
    tty: false,
    stdinOpen: false,
    init: false,
    readOnly: false,
    stopSeconds: null,
    stopSignal: null,
    shmBytes: null,
    capAdd: [],
    capDrop: [],
    devices: [],
    privileged: false,
    securityOpt: [],
    sysctls: {},
    ulimits: {},
    networkMode: '',
    pidMode: '',
    ipcMode: '',
    utsMode: '',
    usernsMode: '',
    cgroupParent: '',
    runtime: '',
    logging: null,
    extraHosts: [],
    dns: [],
    dnsSearch: [],
    files: [],
    foreign: []
};

/** Labels that belong to this plugin and to Compose; no input may set them. */
export const isReservedLabel = (name: string): boolean =>
    /^(com\.docker\.compose|io\.portico|io\.podman\.compose|com\.docker\.stack|com\.docker\.swarm)(\.|$)/i.test(
        name
    );

/** The labels that this plugin and Compose write. */
export const labelOf = {
    project: 'com.docker.compose.project',
    service: 'com.docker.compose.service',
    number: 'com.docker.compose.container-number',
    oneOff: 'com.docker.compose.oneoff',
    hash: 'com.docker.compose.config-hash',
    image: 'com.docker.compose.image',
    volume: 'com.docker.compose.volume',
    network: 'com.docker.compose.network',
    configFiles: 'com.docker.compose.project.config_files',
    dependsOn: 'com.docker.compose.depends_on',
    owner: 'io.portico.owner',
    /** Of containers that are made to reach a volume, and never start; and of volumes, with the name of the one whose content they will be. */
    helper: 'io.portico.helper',
    /** Of a container that was made again: the one of before, as JSON. */
    replaces: 'io.portico.replaces',
    /** The image as it was written, where the container was made from its id. */
    reference: 'io.portico.image',
    /** The bind sources as they were written, as JSON by target. */
    written: 'io.portico.written'
} as const;

/** A change of limits: what is undefined stays. */
export type LimitChange = { readonly [K in keyof Spec['limits']]?: Spec['limits'][K] | undefined };

/** The limits after a change. */
export function mergeLimits(
    before: Spec['limits'],
    { memoryBytes, cpus, pids }: LimitChange
): Spec['limits'] {
    return {
        memoryBytes: memoryBytes === undefined ? before.memoryBytes : memoryBytes,
        cpus: cpus === undefined ? before.cpus : cpus,
        pids: pids === undefined ? before.pids : pids
    };
}

/**
 * A hash of any plain data, the same for the same data in any order of keys. It is not the SDK's `hashOf`: containers that run have it in a label, and the
 * SDK writes keys that are numbers, such as the labels `2` and `10`, in another order. Those containers would be made anew without a change.
 */
export function hashOf(data: unknown): string {
    return createHash('sha256').update(canonicalize(data)).digest('hex');
}

function canonicalize(data: unknown): string {
    return JSON.stringify(data, (_key, value: unknown) =>
        value !== null && typeof value === 'object' && !Array.isArray(value)
            ? Object.fromEntries(
                  Object.entries(value).sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
              )
            : value
    );
}
