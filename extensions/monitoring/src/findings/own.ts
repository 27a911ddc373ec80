/** Problems of the monitoring itself. */
import type { Monitor } from '../sampling/monitor.ts';
import type { Ctx } from '../settings.ts';
import type { Finding } from './finding.ts';

/** A sample may come this much after its time before it is called late. */
const graceMs = 3_000;
const missedSamples = 3;

/** Finds samples that do not come, history that cannot be written, and series that `maxSeries` leaves no room for. */
export function findOwnProblems(ctx: Ctx, monitor: Monitor): Finding[] {
    const { writeError, refused, sampledAt } = monitor.status();
    const silentMs = monitor.silentMs;
    const findings: Finding[] = [];
    if (silentMs === null || silentMs > missedSamples * ctx.settings.intervalSeconds * 1000 + graceMs) {
        findings.push({
            kind: 'monitoring',
            severity: 'critical',
            subject: 'sampling',
            message: 'Nothing has been measured lately',
            since: sampledAt === null ? null : new Date(sampledAt).toISOString(),
            remedy: "Look at the panel's log"
        });
    }
    if (writeError !== null) {
        findings.push({
            kind: 'monitoring',
            severity: 'critical',
            subject: 'history',
            message: `History cannot be written: ${writeError}`,
            since: null,
            remedy: "Make room on the disk of the panel's data"
        });
    }
    if (refused > 0) {
        findings.push({
            kind: 'monitoring',
            severity: 'info',
            subject: 'series',
            message: `${refused} series have no history: the setting maxSeries is reached`,
            since: null,
            remedy: 'Leave out disks, devices or interfaces, or raise maxSeries'
        });
    }
    return findings;
}
