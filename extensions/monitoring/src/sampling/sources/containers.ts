/** Containers by their control groups (version 2), whoever runs them: no daemon is asked, so none has to be reachable. */
import type { Machine } from './machine.ts';
import { linesOf } from './system.ts';

/** What a container has used since it started; null where the controller is not on. */
export interface ContainerCounters {
    readonly id: string;
    readonly name: string;
    readonly runtime: string;
    /** Microseconds of processor time. */
    readonly cpuUs: number | null;
    /** Bytes, without the part of the file cache that is given back first. */
    readonly memory: number | null;
    /** Bytes; null without a limit. */
    readonly memoryLimit: number | null;
    readonly readBytes: number | null;
    readonly writtenBytes: number | null;
    readonly processes: number | null;
}

interface Group {
    readonly path: string;
    readonly id: string;
    readonly runtime: string;
}

const hash = '([0-9a-f]{64})';
/** How container engines name their groups, under systemd and without it. */
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
/** Looking through all groups costs more than reading a few: it is done this seldom. */
const lookMs = 30_000;

export class Containers {
    readonly #machine: Machine;
    readonly #names: ContainerNames;
    #groups: readonly Group[] = [];
    #lookedAt: number | null = null;

    constructor(machine: Machine) {
        this.#machine = machine;
        this.#names = new ContainerNames(machine);
    }

    /** Null where no unified hierarchy is mounted. */
    async read(): Promise<ContainerCounters[] | null> {
        const root = hierarchyOf(this.#machine);
        if (root === null) {
            return null;
        }
        const now = this.#machine.monotonic();
        if (this.#lookedAt === null || now - this.#lookedAt >= lookMs) {
            this.#lookedAt = now;
            this.#groups = find(this.#machine, root);
            await this.#names.refresh(this.#groups);
        }
        const taken = new Set<string>();
        return this.#groups.flatMap((group) => {
            const counters = countersOf(this.#machine, group);
            if (counters === null) {
                return [];
            }
            const short = group.id.slice(0, 12);
            const known = this.#names.of(group.id) ?? short;
            // Two engines may each have a container of one name.
            const name = taken.has(known) ? `${known}@${short}` : known;
            taken.add(name);
            return [{ ...counters, name }];
        });
    }
}

/** Where the unified hierarchy is mounted. */
export function hierarchyOf(machine: Machine): string | null {
    const line = linesOf(machine.read('/proc/self/mountinfo')).find((each) => / - cgroup2 /.test(each));
    return line?.split(' ')[4] ?? null;
}

function find(machine: Machine, root: string): Group[] {
    const found: Group[] = [];
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
                // Whoever may make groups of their own may call one like another's container: the one nearer to the root is it.
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

function groupOf(path: string, name: string, parent: string): Group | null {
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

function countersOf(machine: Machine, { path, id, runtime }: Group): Omit<ContainerCounters, 'name'> | null {
    const cpu = machine.read(`${path}/cpu.stat`);
    const current = machine.read(`${path}/memory.current`);
    if (cpu === null && current === null) {
        return null;
    }
    const io = machine.read(`${path}/io.stat`);
    const cache = field(machine.read(`${path}/memory.stat`), 'inactive_file') ?? 0;
    const limit = machine.read(`${path}/memory.max`)?.trim();
    const processes = machine.read(`${path}/pids.current`);
    return {
        id,
        runtime,
        cpuUs: field(cpu, 'usage_usec'),
        memory: current === null ? null : Math.max(0, Number(current) - cache),
        memoryLimit: limit === undefined || limit === 'max' ? null : Number(limit),
        readBytes: io === null ? null : sumOf(io, 'rbytes'),
        writtenBytes: io === null ? null : sumOf(io, 'wbytes'),
        processes: processes === null ? null : Number(processes)
    };
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

/** Names as the engines keep them beside their containers. Nothing else of those files is used. */
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
        const name = parsed(await this.#machine.load(`/var/lib/docker/containers/${id}/config.v2.json`))?.[
            'Name'
        ];
        return typeof name === 'string' && name !== '' ? name.replace(/^\//, '') : null;
    }

    async #podman(): Promise<Map<string, string>> {
        const list: unknown = parsed(
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

function parsed(text: string | null): Readonly<Record<string, unknown>> | null {
    try {
        return text === null ? null : (JSON.parse(text) as Readonly<Record<string, unknown>>);
    } catch {
        return null;
    }
}
