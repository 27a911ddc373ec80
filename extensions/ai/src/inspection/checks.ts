/** What an inspection looks at, without a model: each check reads one route and says what is wrong. */
import type { Finding } from '../answers/events.ts';

type Fields = Readonly<Record<string, unknown>>;
type Severity = Finding['severity'];

/** One check of the inspection: the route that it reads, and how it finds faults in the data. */
export interface Check {
    /** The id of the route that it reads. */
    readonly route: string;
    readonly query?: object;
    /** @param data - what the route answered @param now - milliseconds since 1970 */
    find(data: unknown, now: number): Finding[];
}

const dayMs = 86_400_000;
/** Days before its end in which a certificate is worth a word. */
const soonDays = 14;

const rowsOf = (data: unknown): readonly Fields[] =>
    Array.isArray(data) ? data.filter((row): row is Fields => typeof row === 'object' && row !== null) : [];
const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const finding = (
    severity: Severity,
    subject: string,
    message: string,
    more: Partial<Finding> = {}
): Finding => ({ severity, subject, message, evidence: null, remedy: null, route: null, ...more });

/** The checks, in the order in which a person would look. */
export const checks: readonly Check[] = [
    { route: 'proxyengine.status', find: (data) => ofEngine((data ?? {}) as Fields) },
    { route: 'hosts.list', query: { limit: '500' }, find: (data) => rowsOf(data).flatMap(ofHost) },
    { route: 'proxyengine.upstreams', find: (data) => rowsOf(data).flatMap(ofUpstream) },
    {
        route: 'certificates.list',
        query: { limit: '500' },
        find: (data, now) => rowsOf(data).flatMap((row) => ofCertificate(row, now))
    },
    { route: 'plugins.list', find: (data) => rowsOf(data).flatMap(ofPlugin) },
    {
        route: 'tasks.list',
        query: { state: 'failed', limit: '100' },
        find: (data, now) => rowsOf(data).flatMap((row) => ofTask(row, now))
    },
    {
        route: 'monitoring.unhealthy',
        find: (data) => rowsOf((data as Fields | null)?.['findings']).flatMap(ofMonitoring)
    }
];

/** 100 without findings; what is critical counts most. */
export function scoreOf(findings: readonly Finding[]): number {
    const weight = { critical: 25, warning: 8, info: 1 } as const;
    return Math.max(0, 100 - findings.reduce((sum, { severity }) => sum + weight[severity], 0));
}

function ofEngine({ running, wanted, message, drifted, lastApply }: Fields): Finding[] {
    const route = 'proxyengine.status';
    if (running === false) {
        const isIntended = wanted === 'stopped';
        return [
            finding(
                isIntended ? 'warning' : 'critical',
                'engine',
                isIntended ? 'The proxy engine was stopped' : 'The proxy engine does not run',
                { evidence: textOf(message), remedy: 'Start it', route: 'proxyengine.start' }
            )
        ];
    }
    const apply = (lastApply ?? {}) as Fields;
    return [
        ...(drifted === true
            ? [
                  finding(
                      'warning',
                      'engine',
                      'The engine runs another configuration than the panel gave it',
                      { route: 'proxyengine.drift' }
                  )
              ]
            : []),
        ...(apply['result'] === 'failed' || apply['result'] === 'rejected'
            ? [
                  finding('critical', 'engine', 'The last change was not applied', {
                      evidence: textOf(apply['message']),
                      route
                  })
              ]
            : [])
    ];
}

function ofHost({ domain, enabled, state, stateMessage, maintenance }: Fields): Finding[] {
    const subject = textOf(domain) ?? 'host';
    const evidence = textOf(stateMessage);
    if (enabled === true && state === 'error') {
        return [
            finding('critical', subject, 'The engine does not take this host', {
                evidence,
                route: 'hosts.get'
            })
        ];
    }
    if (enabled === true && state === 'pending') {
        return [
            finding('warning', subject, 'The engine does not serve the last change of this host yet', {
                evidence,
                route: 'proxyengine.status'
            })
        ];
    }
    return maintenance === true
        ? [finding('info', subject, 'It is in maintenance', { route: 'hosts.update' })]
        : [];
}

function ofUpstream({ address, fails }: Fields): Finding[] {
    return typeof fails === 'number' && fails > 0
        ? [
              finding('warning', textOf(address) ?? 'upstream', 'This upstream fails', {
                  evidence: `${fails} failures lately`,
                  route: 'proxyengine.upstreams'
              })
          ]
        : [];
}

function ofCertificate({ name, domains, notAfter, autoRenew, lastError }: Fields, now: number): Finding[] {
    const subject = textOf(name) ?? String((domains as unknown[] | undefined)?.[0] ?? 'certificate');
    const error = (lastError ?? null) as Fields | null;
    const evidence =
        error === null
            ? null
            : (textOf(error['detail']) ?? textOf(error['message']) ?? textOf(error['type']));
    const until = textOf(notAfter);
    const days = until === null ? null : Math.floor((Date.parse(until) - now) / dayMs);
    const route = 'certificates.list';
    if (days !== null && days < 0) {
        return [
            finding('critical', subject, 'The certificate has expired', {
                evidence: evidence ?? until,
                remedy: 'Renew it',
                route
            })
        ];
    }
    if (days !== null && days <= soonDays && (autoRenew !== true || error !== null)) {
        return [
            finding('warning', subject, `The certificate ends in ${days} days`, {
                evidence: evidence ?? until,
                remedy: 'Renew it',
                route
            })
        ];
    }
    return error === null ? [] : [finding('warning', subject, 'The last order failed', { evidence, route })];
}

function ofPlugin({ name, state, failure, health }: Fields): Finding[] {
    const subject = textOf(name) ?? 'plugin';
    if (state === 'failed' || state === 'quarantined') {
        const evidence = textOf((failure as Fields | null)?.['message']);
        return [finding('critical', subject, `The plugin is ${state}`, { evidence, route: 'plugins.get' })];
    }
    const own = (health as Fields | null)?.['checks'];
    return rowsOf(own)
        .filter((check) => check['state'] === 'failed' || check['state'] === 'degraded')
        .map((check) => {
            const remedy = check['remedy'] as Fields | null | undefined;
            return finding(
                check['state'] === 'failed' ? 'critical' : 'warning',
                `${subject}: ${String(check['name'])}`,
                textOf(check['evidence']) ?? `Its health is ${String(check['state'])}`,
                { remedy: textOf(remedy?.['text']), route: 'plugins.list' }
            );
        });
}

function ofTask({ id, kind, state, finishedAt, error }: Fields, now: number): Finding[] {
    const end = textOf(finishedAt);
    if (state !== 'failed' || end === null || now - Date.parse(end) > dayMs) {
        return [];
    }
    const evidence = typeof error === 'string' ? error : textOf((error as Fields | null)?.['message']);
    return [
        finding('warning', `task ${String(id)}: ${String(kind)}`, 'It failed', {
            evidence,
            route: 'tasks.read'
        })
    ];
}

function ofMonitoring({ severity, subject, message, remedy, kind }: Fields): Finding[] {
    // What it says of plugins and of the engine was looked at already.
    if (kind === 'plugin' || kind === 'engine') {
        return [];
    }
    const level = severity === 'critical' || severity === 'warning' ? severity : 'info';
    return [
        finding(level, textOf(subject) ?? 'machine', textOf(message) ?? 'It is not as it should be', {
            remedy: textOf(remedy),
            route: 'monitoring.unhealthy'
        })
    ];
}
