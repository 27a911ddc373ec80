/** Containers of any engine, by their control groups (version 2). No daemon is asked, so none has to run or be reachable. */
import type { Machine } from '../../machine.ts';
import { type InterfaceCounters, readInterfaces } from './devices.ts';
import { linesOf } from './system.ts';

/** What a container has used since it started; null where its controller is not enabled. */
export interface ContainerCounters {
    readonly id: string;
    readonly name: string;
    readonly runtime: string;
    /** Microseconds of processor time. */
    readonly cpuUs: number | null;
    /** Bytes, without the inactive part of the file cache. */
    readonly memory: number | null;
    /** Bytes; null without a limit. */
    readonly memoryLimit: number | null;
    readonly readBytes: number | null;
    readonly writtenBytes: number | null;
    /** Of its own network; null where it shares that of the machine, or may not be seen. */
    readonly rxBytes: number | null;
    readonly txBytes: number | null;
    readonly processes: number | null;
}

interface Group {
    readonly path: string;
    readonly id: string;
    readonly runtime: string;
    /** The group that its first processes are in: itself, or one below it. */
    readonly inner: string;
    /** Names of its files: a controller that is not enabled has none, and to try costs more than to read. */
    readonly files: ReadonlySet<string>;
}

/** A group that was found, before it was looked into. */
type FoundGroup = Omit<Group, 'inner' | 'files'>;

const hash = '([0-9a-f]{64})';
/** How container engines name their control groups, with systemd and without it. */
const forms: readonly (readonly [runtime: string, form: RegExp])[] = [
    ['docker', new RegExp(`^docker-${hash}\\.scope$`)],
    ['podman', new RegExp(`^libpod-${hash}(?:\\.scope)?$`)],
    ['containerd', new RegExp(`^cri-containerd-${hash}\\.scope$`)],
    ['crio', new RegExp(`^crio-${hash}(?:\\.scope)?$`)],
    ['lxc', /^lxc\.payload\.(.{1,200})$/],
    ['machine', /^machine-(.{1,200})\.scope$/]
];
const parentForms: readonly (readonly [runtime: string, parent: string, form: RegExp])[] = [
    ['docker', 'docker', new RegExp(`^${hash}$`)],
    ['podman', 'libpod_parent', new RegExp(`^libpod-${hash}$`)],
    ['lxc', 'lxc', /^(.{1,200})$/]
];
const deepest = 8;
const mostFolders = 5_000;
const mostContainers = 500;
/** Groups within a container that are looked at for its processes. */
const mostInner = 50;
/** Milliseconds between two searches for containers, since looking through all groups costs more than reading a few. */
const searchMs = 30_000;

/** Finds containers and reads their counters. */
export class Containers {
    readonly #machine: Machine;
    readonly #names: ContainerNames;
    #groups: readonly Group[] = [];
    #searchedAt: number | null = null;

    constructor(machine: Machine) {
        this.#machine = machine;
        this.#names = new ContainerNames(machine);
    }

    /** Reads the counters of all containers; null where control groups version 2 are not mounted. */
    async read(): Promise<ContainerCounters[] | null> {
        const root = findHierarchy(this.#machine);
        if (root === null) {
            return null;
        }
        const now = this.#machine.monotonic();
        if (this.#searchedAt === null || now - this.#searchedAt >= searchMs) {
            this.#searchedAt = now;
            this.#groups = findGroups(this.#machine, root).map((group) => ({
                ...group,
                inner: findProcesses(this.#machine, group.path),
                files: new Set(this.#machine.list(group.path))
            }));
            await this.#names.refresh(this.#groups);
        }
        const taken = new Set<string>();
        return this.#groups.flatMap((group) => {
            const counters = readCounters(this.#machine, group);
            if (counters === null) {
                return [];
            }
            const short = group.id.slice(0, 12);
            const known = this.#names.of(group.id) ?? short;
            // Two engines may each have a container of the same name.
            const name = taken.has(known) ? `${known}@${short}` : known;
            taken.add(name);
            return [{ ...counters, name }];
        });
    }
}

/** Finds where control groups version 2 are mounted; null where they are not. */
export function findHierarchy(machine: Machine): string | null {
    const line = linesOf(machine.read('/proc/self/mountinfo')).find((each) => / - cgroup2 /.test(each));
    return line?.split(' ')[4] ?? null;
}

function findGroups(machine: Machine, root: string): FoundGroup[] {
    const found: FoundGroup[] = [];
    const ids = new Set<string>();
    const waiting: { readonly path: string; readonly parent: string; readonly depth: number }[] = [
        { path: root, parent: '', depth: 0 }
    ];
    for (
        let looked = 0;
        waiting.length > 0 && looked < mostFolders && found.length < mostContainers;
        looked += 1
    ) {
        const { path, parent, depth } = waiting.shift() as (typeof waiting)[number];
        for (const name of machine.folders(path)) {
            const group = groupOf(`${path}/${name}`, name, parent);
            if (group !== null) {
                // A user who may create groups can give one the name of a container. The one nearer to the root is the real one.
                if (!ids.has(group.id)) {
                    ids.add(group.id);
                    found.push(group);
                }
            } else if (depth < deepest) {
                waiting.push({ path: `${path}/${name}`, parent: name, depth: depth + 1 });
            }
        }
    }
    return found.slice(0, mostContainers);
}

function groupOf(path: string, name: string, parent: string): FoundGroup | null {
    for (const [runtime, form] of [
        ...forms,
        ...parentForms
            .filter(([, under]) => under === parent)
            .map(([runtime, , form]) => [runtime, form] as const)
    ]) {
        const id = form.exec(name)?.[1];
        if (id !== undefined) {
            return { path, id, runtime };
        }
    }
    return null;
}

function readCounters(
    machine: Machine,
    { path, id, runtime, inner, files }: Group
): Omit<ContainerCounters, 'name'> | null {
    const read = (name: string): string | null => (files.has(name) ? machine.read(`${path}/${name}`) : null);
    const cpu = read('cpu.stat');
    const current = read('memory.current');
    if (cpu === null && current === null) {
        return null;
    }
    const io = read('io.stat');
    const cache = field(read('memory.stat'), 'inactive_file') ?? 0;
    const limit = read('memory.max')?.trim();
    const processes = read('pids.current');
    return {
        id,
        runtime,
        cpuUs: field(cpu, 'usage_usec'),
        memory: current === null ? null : Math.max(0, Number(current) - cache),
        memoryLimit: limit === undefined || limit === 'max' ? null : Number(limit),
        readBytes: io === null ? null : sumOf(io, 'rbytes'),
        writtenBytes: io === null ? null : sumOf(io, 'wbytes'),
        ...readTraffic(machine, inner),
        processes: processes === null ? null : Number(processes)
    };
}

/** Finds the nearest group with processes; a container that runs systemd has its own below the one with its name. */
function findProcesses(machine: Machine, path: string): string {
    const waiting = [path];
    for (let looked = 0; waiting.length > 0 && looked < mostInner; looked += 1) {
        const group = waiting.shift() as string;
        if (firstProcess(machine, group) !== null) {
            return group;
        }
        waiting.push(...machine.folders(group).map((name) => `${group}/${name}`));
    }
    return path;
}

function firstProcess(machine: Machine, group: string): string | null {
    return /^[1-9]\d*$/m.exec(machine.read(`${group}/cgroup.procs`) ?? '')?.[0] ?? null;
}

/** Control groups do not count the network. A process of the container sees the counters of its interfaces. */
function readTraffic(machine: Machine, group: string): Pick<ContainerCounters, 'rxBytes' | 'txBytes'> {
    const pid = firstProcess(machine, group);
    const network = pid === null ? null : machine.link(`/proc/${pid}/ns/net`);
    const isOwn = network !== null && network !== machine.link('/proc/self/ns/net');
    const interfaces = isOwn ? readInterfaces(machine, `/proc/${pid}/net/dev`) : null;
    const sum = (read: (each: InterfaceCounters) => number): number | null =>
        interfaces === null
            ? null
            : interfaces.reduce((total, each) => total + (each.name === 'lo' ? 0 : read(each)), 0);
    return { rxBytes: sum(({ rxBytes }) => rxBytes), txBytes: sum(({ txBytes }) => txBytes) };
}

function field(text: string | null, name: string): number | null {
    const line = linesOf(text).find((each) => each.startsWith(`${name} `));
    return line === undefined ? null : Number(line.slice(name.length + 1));
}

/** `io.stat` has a line for each device. */
function sumOf(text: string, name: string): number {
    return [...text.matchAll(new RegExp(`\\b${name}=(\\d+)`, 'g'))].reduce(
        (sum, [, value]) => sum + Number(value),
        0
    );
}

/** Names of containers, from the files that the engines keep. Nothing else of those files is used. */
class ContainerNames {
    readonly #machine: Machine;
    #known = new Map<string, string>();

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    of(id: string): string | undefined {
        return this.#known.get(id);
    }

    async refresh(groups: readonly Group[]): Promise<void> {
        const podman = groups.some(({ runtime }) => runtime === 'podman')
            ? await this.#podman()
            : new Map<string, string>();
        const names = await Promise.all(
            groups.map(
                async ({ id, runtime }) =>
                    [
                        id,
                        runtime === 'docker'
                            ? await this.#docker(id)
                            : runtime === 'podman'
                              ? (podman.get(id) ?? null)
                              : /^[0-9a-f]{64}$/.test(id)
                                ? null
                                : id
                    ] as const
            )
        );
        this.#known = new Map(names.filter((entry): entry is readonly [string, string] => entry[1] !== null));
    }

    async #docker(id: string): Promise<string | null> {
        const name = parseJson(await this.#machine.load(`/var/lib/docker/containers/${id}/config.v2.json`))?.[
            'Name'
        ];
        return typeof name === 'string' && name !== '' ? name.replace(/^\//, '') : null;
    }

    async #podman(): Promise<Map<string, string>> {
        const list: unknown = parseJson(
            await this.#machine.load('/var/lib/containers/storage/overlay-containers/containers.json')
        );
        const entries = Array.isArray(list)
            ? (list as readonly { readonly id?: unknown; readonly names?: readonly unknown[] }[])
            : [];
        return new Map(
            entries
                .filter(({ names }) => typeof names?.[0] === 'string')
                .map(({ id, names }) => [String(id), String(names?.[0])])
        );
    }
}

function parseJson(text: string | null): Readonly<Record<string, unknown>> | null {
    try {
        return text === null ? null : (JSON.parse(text) as Readonly<Record<string, unknown>>);
    } catch {
        return null;
    }
}
