/** Uptime checks that are not up. */
import type { SeenCheck } from '../checks/state.ts';
import { nameSeries } from '../sampling/metrics.ts';
import type { Finding } from './finding.ts';

/** What helps, by the beginning of the code that says which step failed. */
const remedies: readonly (readonly [begin: string, remedy: string])[] = [
    ['NAME', 'Check the records of the name and the name servers of this machine'],
    ['CONNECT', 'Check that the service runs, listens at that port, and that no firewall is in the way'],
    ['TLS', 'Check the certificate and the TLS settings of the service'],
    ['CERTIFICATE', 'Renew the certificate'],
    ['ADDRESS', 'Grant the network to the plugin, or take another target'],
    ['TOOL', 'Install iputils-ping'],
    ['ANSWER', "Look at the service's own log: it does not answer in time"],
    ['', "Look at the service's own log: it answers otherwise than wanted"]
];

/**
 * Finds checks that are down or degraded.
 *
 * @param alerted - names of series with an alert that fires: they are reported by the alert, and not a second time
 */
export function findCheckProblems(checks: readonly SeenCheck[], alerted: ReadonlySet<string>): Finding[] {
    return checks
        .filter(
            ({ fields, status }) =>
                fields.enabled &&
                (status.state === 'degraded' ||
                    (status.state === 'down' && !alerted.has(nameSeries('check.up', fields.name))))
        )
        .map(({ fields, status }) => ({
            kind: 'check',
            severity: status.state === 'down' ? 'critical' : 'warning',
            subject: fields.name,
            message: status.message ?? 'It is down',
            since: new Date(status.since).toISOString(),
            remedy: remedies.find(([begin]) => (status.code ?? '').startsWith(begin))?.[1] ?? null
        }));
}
