/** What is not as it should be, in one answer: rules that fire, disks that are nearly full, this plugin itself, and others as far as the caller sees them. */
import { type Actor, joi, type Value } from '@portico/sdk';

import { nameOf } from '../metrics.ts';
import type { Monitor } from '../monitor.ts';
import type { Ctx } from '../settings.ts';

const finding = joi.object({
    kind: joi.valid('alert', 'disk', 'monitoring', 'plugin', 'engine').required(),
    severity: joi.valid('info', 'warning', 'critical').required(),
    subject: joi.string().required().description('What it is about: a metric, a mount point, a plugin'),
    message: joi.string().required(),
    since: joi.string().isoDate().allow(null).required(),
    remedy: joi.string().allow(null).required()
});
export const unhealthySchema = joi.object({
    healthy: joi.boolean().required(),
    findings: joi.array().items(finding).required().description('The most severe first'),
    unseen: joi
        .array()
        .items(joi.string())
        .required()
        .description('What could not be looked at: the caller may not see it, or it did not answer')
});
export type Unhealthy = Value<typeof unhealthySchema>;
type Finding = Value<typeof finding>;

const ranks = ['critical', 'warning', 'info'];
const answerMs = 3_000;

export async function unhealthy(
    ctx: Ctx,
    monitor: Monitor,
    actor: Actor,
    signal: AbortSignal
): Promise<Unhealthy> {
    const alerts = monitor.journal.firing().map((row): Finding => ({
        kind: 'alert',
        severity: row.severity as Finding['severity'],
        subject: nameOf(row.metric, row.instance),
        message: `${row.name}: ${Math.round(row.last * 100) / 100} (${row.operator} ${row.threshold})`,
        since: new Date(row.firedAt).toISOString(),
        remedy: null
    }));
    const named = new Set(monitor.journal.firing().map(({ metric, instance }) => nameOf(metric, instance)));
    const unseen: string[] = [];
    const others = await Promise.all(
        [plugins, engine].map(async (look) =>
            look(ctx, actor, AbortSignal.any([signal, AbortSignal.timeout(answerMs)]), unseen)
        )
    );
    const findings = [...alerts, ...disks(ctx, monitor, named), ...own(ctx, monitor), ...others.flat()].sort(
        (a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity)
    );
    return { healthy: findings.length === 0, findings, unseen };
}

/** Of a disk about which an alert fires, nothing is said twice. */
function disks(ctx: Ctx, monitor: Monitor, named: ReadonlySet<string>): Finding[] {
    const limit = ctx.settings.diskFullPercent;
    return monitor.sample.disks.flatMap(({ mount, usedPercent, inodesUsedPercent, total }): Finding[] => [
        ...(total === null
            ? [
                  {
                      kind: 'disk' as const,
                      severity: 'critical' as const,
                      subject: mount,
                      message: 'The file system does not answer',
                      since: null,
                      remedy: 'Look whether its device or server is reachable'
                  }
              ]
            : []),
        ...(usedPercent !== null && usedPercent >= limit && !named.has(nameOf('disk.usedPercent', mount))
            ? [
                  {
                      kind: 'disk' as const,
                      severity: 'critical' as const,
                      subject: mount,
                      message: `${Math.round(usedPercent)} % of the space is used`,
                      since: null,
                      remedy: 'Remove or move files, or enlarge the file system'
                  }
              ]
            : []),
        ...(inodesUsedPercent !== null &&
        inodesUsedPercent >= limit &&
        !named.has(nameOf('disk.inodesUsedPercent', mount))
            ? [
                  {
                      kind: 'disk' as const,
                      severity: 'critical' as const,
                      subject: mount,
                      message: `${Math.round(inodesUsedPercent)} % of the inodes are used`,
                      since: null,
                      remedy: 'Remove small files'
                  }
              ]
            : [])
    ]);
}

/** What this plugin's own health checks say. */
export function own(ctx: Ctx, monitor: Monitor): Finding[] {
    const { unwritten, refused, sampledAt } = monitor.vitals();
    const silent = monitor.silentMs;
    const since = sampledAt === null ? null : new Date(sampledAt).toISOString();
    const late = silent === null || silent > 3 * ctx.settings.intervalSeconds * 1000 + answerMs;
    return [
        ...(late
            ? [
                  {
                      kind: 'monitoring' as const,
                      severity: 'critical' as const,
                      subject: 'sampling',
                      message: 'Nothing has been measured lately',
                      since,
                      remedy: "Look at the panel's log"
                  }
              ]
            : []),
        ...(unwritten === null
            ? []
            : [
                  {
                      kind: 'monitoring' as const,
                      severity: 'critical' as const,
                      subject: 'history',
                      message: `History cannot be written: ${unwritten}`,
                      since: null,
                      remedy: "Make room on the disk of the panel's data"
                  }
              ]),
        ...(refused === 0
            ? []
            : [
                  {
                      kind: 'monitoring' as const,
                      severity: 'info' as const,
                      subject: 'series',
                      message: `${refused} series have no history: the setting maxSeries is reached`,
                      since: null,
                      remedy: 'Leave out disks, devices or interfaces, or raise maxSeries'
                  }
              ])
    ];
}

interface PluginRecord {
    readonly name?: unknown;
    readonly state?: unknown;
    readonly failure?: { readonly message?: unknown } | null;
    readonly health?: unknown;
}
interface Check {
    readonly name?: unknown;
    readonly state?: unknown;
    readonly evidence?: unknown;
    readonly remedy?: { readonly text?: unknown } | null;
}

/** The plugin list as the caller sees it. */
async function plugins(ctx: Ctx, actor: Actor, signal: AbortSignal, unseen: string[]): Promise<Finding[]> {
    const rows = await ask(ctx, actor, 'plugins.list', signal);
    if (!Array.isArray(rows)) {
        unseen.push('plugins');
        return [];
    }
    return (rows as readonly PluginRecord[])
        .filter(({ name }) => name !== ctx.name)
        .flatMap(({ name, state, failure, health }): Finding[] => {
            const subject = String(name);
            if (state === 'failed' || state === 'quarantined') {
                return [
                    {
                        kind: 'plugin',
                        severity: 'critical',
                        subject,
                        message:
                            typeof failure?.message === 'string' ? failure.message : `Its state is ${state}`,
                        since: null,
                        remedy: null
                    }
                ];
            }
            const checks: readonly Check[] = Array.isArray(health) ? (health as readonly Check[]) : [];
            return checks
                .filter((check) => check.state === 'failed' || check.state === 'degraded')
                .map((check): Finding => ({
                    kind: 'plugin',
                    severity: check.state === 'failed' ? 'critical' : 'warning',
                    subject,
                    message: `${String(check.name)}: ${typeof check.evidence === 'string' ? check.evidence : String(check.state)}`,
                    since: null,
                    remedy: typeof check.remedy?.text === 'string' ? check.remedy.text : null
                }));
        });
}

/** The proxy engine as the caller sees it. */
async function engine(ctx: Ctx, actor: Actor, signal: AbortSignal, unseen: string[]): Promise<Finding[]> {
    const status = (await ask(ctx, actor, 'proxyengine.status', signal)) as {
        readonly running?: unknown;
        readonly wanted?: unknown;
    } | null;
    if (typeof status?.running !== 'boolean') {
        unseen.push('engine');
        return [];
    }
    const byWish = status.wanted === 'stopped';
    return status.running
        ? []
        : [
              {
                  kind: 'engine',
                  severity: byWish ? 'info' : 'critical',
                  subject: 'engine',
                  message: byWish ? 'The proxy engine was stopped' : 'The proxy engine does not run',
                  since: null,
                  remedy: 'POST /api/proxyengine/start'
              }
          ];
}

async function ask(ctx: Ctx, actor: Actor, id: string, signal: AbortSignal): Promise<unknown> {
    try {
        const { status, data } = await ctx.api.call(actor, { id, signal });
        return status === 200 ? data : null;
    } catch {
        return null;
    }
}
