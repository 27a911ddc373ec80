/** Everything that is not as it should be, in one answer. */
import { type Actor, joi, type Value } from '@portico/sdk';

import { nameSeries } from '../sampling/metrics.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { findFailedUnits } from '../units/findings.ts';
import { findCheckProblems } from './checks.ts';
import { findFullDisks } from './disks.ts';
import { type Finding, findingSchema } from './finding.ts';
import { findDriveProblems, findRaidProblems, findSensorProblems } from './hardware.ts';
import { findOwnProblems } from './own.ts';
import { askPanel, findEngineProblems, findPluginProblems } from './panel.ts';
import { findCertificateProblems, findHostProblems, findTaskProblems } from './served.ts';

/** The shape of the answer of `/unhealthy`. */
export const unhealthySchema = joi.object({
    healthy: joi.boolean().required().label('Healthy'),
    findings: joi
        .array()
        .items(findingSchema)
        .required()
        .label('Findings')
        .description('The most severe first'),
    unseen: joi
        .array()
        .items(joi.string())
        .required()
        .label('Not looked at')
        .description('What could not be looked at: the caller may not see it, or it did not answer')
});
/** The answer of `/unhealthy`. */
export type Unhealthy = Value<typeof unhealthySchema>;

const ranks = ['critical', 'warning', 'info'];
const answerMs = 3_000;

/** Collects alerts that fire, full disks, problems of the monitoring and of checks, and of the panel as far as the actor may see them. */
export async function collectFindings(
    ctx: Ctx,
    { monitor, checks, hardware, upstreams: tries }: Services,
    actor: Actor,
    signal: AbortSignal
): Promise<Unhealthy> {
    const firing = monitor.journal.firing();
    const alerts = firing.map((row): Finding => ({
        kind: 'alert',
        severity: row.severity as Finding['severity'],
        subject: nameSeries(row.metric, row.instance),
        message:
            row.operator === 'absent'
                ? `${row.name}: there is no value`
                : `${row.name}: ${Math.round(row.last * 100) / 100} (${row.operator} ${row.threshold})`,
        since: new Date(row.firedAt).toISOString(),
        remedy: null
    }));
    const question = { ctx, actor, signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]) };
    const now = monitor.now();
    const listed = askPanel(question, 'hosts.list');
    const [plugins, engine, units, hosts, upstreams, certificates, tasks] = await Promise.all([
        findPluginProblems(question),
        findEngineProblems(question),
        findFailedUnits(ctx),
        listed.then(findHostProblems),
        listed.then((rows) => tries.find(question, rows)),
        findCertificateProblems(question, now),
        findTaskProblems(question, now)
    ]);
    const alerted = new Set(alerts.map(({ subject }) => subject));
    const parts = { plugins, engine, units, hosts, upstreams, certificates, tasks };
    const { raids, sensors } = monitor.taken.reading;
    const findings = [
        ...alerts,
        ...findFullDisks(monitor.sample.disks, ctx.settings.diskFullPercent, alerted),
        ...findOwnProblems(ctx, monitor),
        ...findDriveProblems(hardware.drives),
        ...findRaidProblems(raids),
        ...findSensorProblems(sensors),
        ...findCheckProblems(checks.list(), alerted),
        ...Object.values(parts).flatMap((part) => part ?? [])
    ].sort((a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity));
    const unseen = Object.entries(parts).flatMap(([part, found]) => (found === null ? [part] : []));
    return { healthy: findings.length === 0, findings, unseen };
}
