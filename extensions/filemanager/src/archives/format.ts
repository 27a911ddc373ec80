/** Which kinds of archive there are, known by their names. */
import { failures } from '../errors.ts';

export type Format = 'tar' | 'tar.gz' | 'zip';

/** @throws ARCHIVE_UNKNOWN 42250 */
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
    throw failures.ARCHIVE_UNKNOWN({ path });
}

/** What an archive may come to. */
export interface Limits {
    readonly entries: number;
    readonly bytes: number;
    readonly ratio: number;
}
