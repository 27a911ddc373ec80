/** Disks that are nearly full, or do not answer. */
import { nameSeries } from '../sampling/metrics.ts';
import type { DiskView } from '../sampling/sample.ts';
import type { Finding } from './finding.ts';

/**
 * Finds disks whose space or inodes are used to `limit` percent or more.
 *
 * @param alerted - names of series with an alert that fires: they are reported by the alert, and not a second time
 */
export function findFullDisks(
    disks: readonly DiskView[],
    limit: number,
    alerted: ReadonlySet<string>
): Finding[] {
    return disks.flatMap(({ mount, usedPercent, inodesUsedPercent, total }) => {
        const isFull = (metric: string, percent: number | null): percent is number =>
            percent !== null && percent >= limit && !alerted.has(nameSeries(metric, mount));
        return [
            ...(total === null
                ? [
                      describe(
                          mount,
                          'The file system does not answer',
                          'Check that its device or server can be reached'
                      )
                  ]
                : []),
            ...(isFull('disk.usedPercent', usedPercent)
                ? [
                      describe(
                          mount,
                          `${Math.round(usedPercent)} % of the space is used`,
                          'Remove or move files, or enlarge the file system'
                      )
                  ]
                : []),
            ...(isFull('disk.inodesUsedPercent', inodesUsedPercent)
                ? [
                      describe(
                          mount,
                          `${Math.round(inodesUsedPercent)} % of the inodes are used`,
                          'Remove small files'
                      )
                  ]
                : [])
        ];
    });
}

function describe(mount: string, message: string, remedy: string): Finding {
    return { kind: 'disk', severity: 'critical', subject: mount, message, since: null, remedy };
}
