/** Finds where this process may make control groups. Linux has two versions: each machine has one, or both side by side. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** What a group limits or measures. In version 2, `cpuacct` is part of `cpu.stat`. */
export type Controller = 'memory' | 'cpu' | 'cpuacct' | 'pids';

/** The folder of each controller below which a group can be made. In version 2 it is one folder for all. */
export interface Hierarchy {
    readonly version: 1 | 2;
    readonly folders: Readonly<Partial<Record<Controller, string>>>;
}

interface Mount {
    readonly root: string;
    readonly at: string;
    readonly type: string;
    /** Of version 1: names of the controllers, among other words. */
    readonly options: readonly string[];
}

const controllers: readonly Controller[] = ['memory', 'cpu', 'cpuacct', 'pids'];

/**
 * The places where groups can be made, best first: below the group of this process, so that the limits around it hold for new groups too;
 * then, in version 2, below the groups above, because a group that holds processes cannot pass its controllers on.
 *
 * @param proc - folder of this process; `/proc/self` except in tests
 */
export function findHierarchies(proc = '/proc/self'): readonly Hierarchy[] {
    const mounts = mountsOf(join(proc, 'mountinfo'));
    const own = ownGroups(join(proc, 'cgroup'));
    const first = hierarchyOfVersion1(mounts, own);
    const unified = mounts.find(({ type }) => type === 'cgroup2');
    // A controller is in one version only: what version 1 has mounted, version 2 does not offer.
    if (first.folders.memory !== undefined || first.folders.cpu !== undefined) {
        return [first];
    }
    if (unified === undefined) {
        return [];
    }
    const path = own.get('') ?? '/';
    return [path, dirname(path), '/']
        .map((each) => folderOf(unified, each))
        .filter((folder, index, all) => all.indexOf(folder) === index)
        .map((folder) => ({
            version: 2,
            folders: { memory: folder, cpu: folder, cpuacct: folder, pids: folder }
        }));
}

function hierarchyOfVersion1(
    mounts: readonly Mount[],
    own: ReadonlyMap<string, string>
): Hierarchy & { readonly version: 1 } {
    const found = controllers.flatMap((controller) => {
        const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller));
        return mount === undefined ? [] : [[controller, folderOf(mount, own.get(controller) ?? '/')]];
    });
    return { version: 1, folders: Object.fromEntries(found) as Hierarchy['folders'] };
}

/** The folder of a group as this process sees it. A mount may show a part of the tree only, as in a container. */
function folderOf({ root, at }: Mount, path: string): string {
    const below = root !== '/' && path.startsWith(root) ? path.slice(root.length) : path;
    const folder = normalize(join(at, below)).replace(/\/$/, '');
    return folder.startsWith(at) && existsSync(folder) ? folder : at;
}

/** Path of this process's own group by controller; version 2 has the empty name. */
function ownGroups(file: string): ReadonlyMap<string, string> {
    return new Map(
        linesOf(file).flatMap((line) => {
            const [, names = '', ...path] = line.split(':');
            return names.split(',').map((name): [string, string] => [name, path.join(':')]);
        })
    );
}

/** Source: proc(5), `/proc/pid/mountinfo`. */
function mountsOf(file: string): readonly Mount[] {
    return linesOf(file).flatMap((line) => {
        const [before = '', after = ''] = line.split(' - ');
        const [, , , root = '/', at = ''] = before.split(' ');
        const [type = '', , options = ''] = after.split(' ');
        return type.startsWith('cgroup') ? [{ root, at, type, options: options.split(',') }] : [];
    });
}

function linesOf(file: string): readonly string[] {
    try {
        return readFileSync(file, 'utf8')
            .split('\n')
            .filter((line) => line !== '');
    } catch {
        return [];
    }
}
