/** The formats of archives, told by the end of a name. */
import { pluginErrors } from '../errors.ts';

/** A format that can be made and unpacked. */
export type Format = 'tar' | 'tar.gz' | 'zip';

/** The format of a name, whatever its case. @throws ARCHIVE_UNKNOWN 42250 */
export function formatOf(path: string): Format {
    const name = path.toLowerCase();
    if (name.endsWith('.tar.gz') || name.endsWith('.tgz')) {
        return 'tar.gz';
    }
    if (name.endsWith('.zip')) {
        return 'zip';
    }
    if (name.endsWith('.tar')) {
        return 'tar';
    }
    throw pluginErrors.ARCHIVE_UNKNOWN({ path });
}

/** Limits of one archive: entries, unpacked bytes, and how many times its own size it may unpack to. */
export interface Limits {
    readonly entries: number;
    readonly bytes: number;
    readonly ratio: number;
}
