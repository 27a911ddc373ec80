/** Mounted file systems, and the space on them. */
import type { Machine, Space } from './machine.ts';
import { linesOf } from './system.ts';

export interface Mount {
    readonly mount: string;
    /** What is mounted: `/dev/vda1`, `tank/home`, `server:/export`. */
    readonly source: string;
    readonly type: string;
    readonly readOnly: boolean;
    /** Number of the block device, `254:1`; of file systems without one, a number that no device has. */
    readonly number: string;
}

/** A mount with its space; null while the file system does not answer. */
export interface Disk extends Mount {
    readonly space: Space | null;
}

export interface Chosen {
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
/** Full by nature, or without a device of their own although their source looks like one. */
const fullTypes = new Set(['squashfs', 'erofs', 'iso9660', 'udf', 'cramfs', 'romfs', 'devtmpfs', 'autofs']);
/** Without a source below `/dev`, and disks all the same. */
const pooledTypes = new Set(['zfs', 'btrfs', 'bcachefs', 'virtiofs']);
const answerMs = 2_000;

/** What counts as a disk: each file system once, at its shortest path. The root counts even in a container, where it is an overlay. */
export function readMounts(machine: Machine, chosen: Chosen): Mount[] {
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
            isDisk(mount, chosen.remote) &&
            (known === undefined || mount.mount.length < known.mount.length)
        ) {
            found.set(keyOf(mount), mount);
        }
    }
    return [...found.values()]
        .filter(({ mount }) => !chosen.isExcluded(mount))
        .sort((a, b) => (a.mount < b.mount ? -1 : 1));
}

/** Subvolumes of one file system have a number each, and one space. */
function keyOf({ type, source, number }: Mount): string {
    return type === 'btrfs' ? `btrfs ${source}` : number;
}

function isDisk({ mount, source, type }: Mount, remote: boolean): boolean {
    if (remoteTypes.has(type)) {
        return remote;
    }
    if (fullTypes.has(type)) {
        return false;
    }
    return source.startsWith('/dev/') || pooledTypes.has(type) || (mount === '/' && type !== 'rootfs');
}

/** Spaces, tabs and line ends are written in octal there. */
function unescape(text: string): string {
    return text.replace(/\\([0-7]{3})/g, (_all, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8))
    );
}

/** Asks file systems for their space; one that hangs is asked again only after it has answered, or it would take a thread of the process each time. */
export class Spaces {
    readonly #machine: Machine;
    readonly #asked = new Map<string, Promise<Space | null>>();

    constructor(machine: Machine) {
        this.#machine = machine;
    }

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
