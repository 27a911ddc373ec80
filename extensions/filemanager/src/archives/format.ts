/** The formats of archives, told by the end of a name. The first ending that fits counts: `.tar.gz` before `.gz`. */
import { fail } from '../errors.ts';

const endings = {
    '.tar': 'tar',
    '.tar.gz': 'tar.gz',
    '.tgz': 'tar.gz',
    '.tar.xz': 'tar.xz',
    '.txz': 'tar.xz',
    '.tar.zst': 'tar.zst',
    '.tzst': 'tar.zst',
    '.tar.bz2': 'tar.bz2',
    '.tbz2': 'tar.bz2',
    '.zip': 'zip',
    '.7z': '7z',
    '.rar': 'rar',
    '.gz': 'gz',
    '.xz': 'xz',
    '.zst': 'zst',
    '.bz2': 'bz2'
} as const;

/** A format that can be unpacked. */
export type Format = (typeof endings)[keyof typeof endings];
/** One packed file, which is no archive. */
export type PackedFormat = 'gz' | 'xz' | 'zst' | 'bz2';
/** A format that can be made. */
export type WrittenFormat = Exclude<Format, 'rar' | PackedFormat>;

/** The format of a name, whatever its case. @throws ARCHIVE_UNKNOWN 42250 */
export function formatOf(path: string): Format {
    const name = path.toLowerCase();
    const ending = Object.keys(endings).find((each) => name.endsWith(each));
    if (ending === undefined) {
        throw fail.ARCHIVE_UNKNOWN({ path });
    }
    return endings[ending as keyof typeof endings];
}

/** Whether a format is one packed file. */
export function isPacked(format: Format): format is PackedFormat {
    return format === 'gz' || format === 'xz' || format === 'zst' || format === 'bz2';
}

/** The format of a name for a new archive. @throws ARCHIVE_UNKNOWN 42250 also for `.rar`, which no free program writes, and for one packed file */
export function writtenFormatOf(path: string): WrittenFormat {
    const format = formatOf(path);
    if (format === 'rar' || isPacked(format)) {
        throw fail.ARCHIVE_UNKNOWN({ path });
    }
    return format;
}

/** Limits of one archive: entries, unpacked bytes, and how many times its own size it may unpack to. */
export interface Limits {
    readonly entries: number;
    readonly bytes: number;
    readonly ratio: number;
}
