/** Mounted file systems and their space. */
import type { Machine, Space } from '../../machine.ts';
import { linesOf } from './system.ts';

/** A mounted file system. */
export interface Mount {
    readonly mount: string;
    /** What is mounted: `/dev/vda1`, `tank/home`, `server:/export`. */
    readonly source: string;
    readonly type: string;
    readonly readOnly: boolean;
    /** Number of its block device, `254:1`; a file system without a device has a number that no device has. */
    readonly number: string;
}

/** A mount with its space; null while the file system does not answer. */
export interface Disk extends Mount {
    readonly space: Space | null;
}

/** Which mounts are measured, by the settings. */
export interface MountFilter {
    /** Whether file systems of other machines count. */
    readonly remote: boolean;
    isExcluded(mount: string): boolean;
}

const remoteTypes = new Set([
    'nfs',
    'nfs4',
    'cifs',
    'smb3',
    'smbfs',
    'ceph',
    'glusterfs',
    'lustre',
    'afs',
    '9p',
    'ncpfs',
    'davfs',
    'fuse.sshfs',
    'fuse.rclone',
    'fuse.s3fs',
    'fuse.glusterfs',
    'fuse.davfs',
    'fuse.ceph'
]);
/** Types that are always full, or have no device of their own although their source looks like one. */
const ignoredTypes = new Set([
    'squashfs',
    'erofs',
    'iso9660',
    'udf',
    'cramfs',
    'romfs',
    'devtmpfs',
    'autofs'
]);
/** Types that are disks although their source does not lie below `/dev`. */
const pooledTypes = new Set(['zfs', 'btrfs', 'bcachefs', 'virtiofs']);
const answerMs = 2_000;

/** Lists disks: each file system once, at its shortest path. The root counts even in a container, where it is an overlay. */
export function readMounts(machine: Machine, filter: MountFilter): Mount[] {
    const found = new Map<string, Mount>();
    for (const line of linesOf(machine.read('/proc/self/mountinfo'))) {
        const [before = '', after = ''] = line.split(' - ');
        const [, , number = '', , place = ''] = before.split(' ');
        const [type = '', source = '', options = ''] = after.split(' ');
        const mount: Mount = {
            mount: unescape(place),
            source: unescape(source),
            type,
            number,
            readOnly: `${before.split(' ')[5] ?? ''},${options}`.split(',').includes('ro')
        };
        const known = found.get(keyOf(mount));
        if (
            isDisk(mount, filter.remote) &&
            (known === undefined || mount.mount.length < known.mount.length)
        ) {
            found.set(keyOf(mount), mount);
        }
    }
    return [...found.values()]
        .filter(({ mount }) => !filter.isExcluded(mount))
        .sort((a, b) => (a.mount < b.mount ? -1 : 1));
}

/** Subvolumes of a btrfs have a number each, but share their space. */
function keyOf({ type, source, number }: Mount): string {
    return type === 'btrfs' ? `btrfs ${source}` : number;
}

function isDisk({ mount, source, type }: Mount, remote: boolean): boolean {
    if (remoteTypes.has(type)) {
        return remote;
    }
    if (ignoredTypes.has(type)) {
        return false;
    }
    return source.startsWith('/dev/') || pooledTypes.has(type) || (mount === '/' && type !== 'rootfs');
}

/** The kernel writes spaces, tabs and line ends of a path in octal. */
function unescape(text: string): string {
    return text.replace(/\\([0-7]{3})/g, (_all, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8))
    );
}

/**
 * Asks file systems for their space. One that hangs is asked again only after it has answered: each question occupies a thread of the process.
 */
export class SpaceProbe {
    readonly #machine: Machine;
    readonly #asked = new Map<string, Promise<Space | null>>();

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    /** Adds the space to each mount; null where the file system does not answer in time. */
    async measure(mounts: readonly Mount[]): Promise<Disk[]> {
        return Promise.all(mounts.map(async (mount) => ({ ...mount, space: await this.#ask(mount.mount) })));
    }

    async #ask(mount: string): Promise<Space | null> {
        if (this.#asked.has(mount)) {
            return null;
        }
        const asking = this.#machine
            .space(mount)
            .catch(() => null)
            .finally(() => this.#asked.delete(mount));
        this.#asked.set(mount, asking);
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<null>((resolve) => {
            timer = setTimeout(() => resolve(null), answerMs);
        });
        try {
            return await Promise.race([asking, late]);
        } finally {
            clearTimeout(timer);
        }
    }
}
