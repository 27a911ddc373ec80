/** The formats of archives, told by the end of a name. */
import { pluginErrors } from '../errors.ts';

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
    '.rar': 'rar'
} as const;

/** A format that can be unpacked. */
export type Format = (typeof endings)[keyof typeof endings];
/** A format that can be made. */
export type WrittenFormat = Exclude<Format, 'rar'>;

/** The format of a name, whatever its case. @throws ARCHIVE_UNKNOWN 42250 */
export function formatOf(path: string): Format {
    const name = path.toLowerCase();
    const ending = Object.keys(endings).find((each) => name.endsWith(each));
    if (ending === undefined) {
        throw pluginErrors.ARCHIVE_UNKNOWN({ path });
    }
    return endings[ending as keyof typeof endings];
}

/** The format of a name for a new archive. @throws ARCHIVE_UNKNOWN 42250 also for `.rar`, which no free program writes */
export function writtenFormatOf(path: string): WrittenFormat {
    const format = formatOf(path);
    if (format === 'rar') {
        throw pluginErrors.ARCHIVE_UNKNOWN({ path });
    }
    return format;
}

/** Limits of one archive: entries, unpacked bytes, and how many times its own size it may unpack to. */
export interface Limits {
    readonly entries: number;
    readonly bytes: number;
    readonly ratio: number;
}
