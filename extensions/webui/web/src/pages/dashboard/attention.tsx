/** What needs a hand: each problem with the way to mend it. */
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { CopyButton } from '../../kit/copy.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { counted, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { type CertificateView, lifeOf } from '../certificates/certificate-view.ts';
import type { EngineStatus } from '../engine/engine-status.ts';
import type { HostRow } from '../hosts/host-view.ts';
import { type PluginView, remedyOf } from '../plugins/plugin-view.ts';

interface Problem {
    readonly tone: 'warning' | 'bad';
    readonly subject: string;
    readonly href: string;
    readonly text: string;
    readonly command: string | null;
}

/** The list; one good sentence when there is none, and nothing until all is read. */
export function Attention() {
    const may = useMay();
    const found = [
        useEngineProblems(may('engine:read')),
        useHostProblems(may('hosts:read')),
        useCertificateProblems(may('certificates:read')),
        usePluginProblems(may('plugins:read'))
    ];
    if (found.includes(null)) {
        return null;
    }
    const problems = found.flatMap((each) => each ?? []);
    if (problems.length === 0) {
        return (
            <p class="banner good">
                <Icon name="check" />
                {t('All is well. Nothing needs a hand.')}
            </p>
        );
    }
    return (
        <section class="card">
            <h2>{t('Needs a hand')}</h2>
            <ul class="bare lined">
                {problems.map(({ tone, subject, href, text, command }) => (
                    <li key={`${subject} ${text}`}>
                        <Badge text={tone === 'bad' ? 'problem' : 'attention'} tone={tone} />
                        <div class="fill">
                            <Link href={href}>{t(subject)}</Link> {text}
                        </div>
                        {command === null ? null : (
                            <span class="row">
                                <code>{command}</code>
                                <CopyButton text={command} />
                            </span>
                        )}
                    </li>
                ))}
            </ul>
        </section>
    );
}

function useEngineProblems(isWanted: boolean): readonly Problem[] | null {
    const { data } = useRead<EngineStatus>(isWanted ? '/api/proxyengine/status' : null);
    const engine = (tone: Problem['tone'], text: string): Problem => ({
        tone,
        subject: 'Engine',
        href: '/engine',
        text,
        command: null
    });
    if (data === undefined) {
        return isWanted ? null : [];
    }
    return [
        ...(data.state === 'running' || data.wanted === 'stopped'
            ? []
            : [engine('bad', data.message ?? t('It does not run'))]),
        ...(data.drifted ? [engine('warning', t('It does not run what the panel left. See drift.'))] : []),
        ...(data.pending === 0
            ? []
            : [
                  engine(
                      'warning',
                      counted(
                          data.pending,
                          t('1 change waits for a reload'),
                          t('{count} changes wait for a reload', { count: data.pending })
                      )
                  )
              ])
    ];
}

function useHostProblems(isWanted: boolean): readonly Problem[] | null {
    const { rows, isPending } = useRows<HostRow>(isWanted ? '/api/hosts' : null, {
        state: 'error',
        limit: 5
    });
    if (isPending) {
        return isWanted ? null : [];
    }
    return rows.map(({ id, domain, stateMessage }) => ({
        tone: 'bad',
        subject: domain,
        href: `/hosts/${id}`,
        text: stateMessage ?? t('It is not served'),
        command: null
    }));
}

function useCertificateProblems(isWanted: boolean): readonly Problem[] | null {
    const { data } = useRead<readonly CertificateView[]>(isWanted ? '/api/certificates' : null);
    if (data === undefined) {
        return isWanted ? null : [];
    }
    return data.flatMap((certificate) => {
        const { id, name, notAfter, lastError } = certificate;
        const { tone } = lifeOf(certificate);
        if (lastError === null && (tone === 'good' || tone === 'neutral')) {
            return [];
        }
        const ends = notAfter === null ? '' : t('It ends {when}', { when: relativeTime(notAfter) });
        return [
            {
                tone: tone === 'bad' ? ('bad' as const) : ('warning' as const),
                subject: name,
                href: `/certificates/${id}`,
                text: lastError?.detail ?? ends,
                command: null
            }
        ];
    });
}

function usePluginProblems(isWanted: boolean): readonly Problem[] | null {
    const { data } = useRead<readonly PluginView[]>(isWanted ? '/api/plugins' : null);
    if (data === undefined) {
        return isWanted ? null : [];
    }
    return data.flatMap(({ name, title, failure, health, enabled }): readonly Problem[] => {
        const plugin = { subject: title, href: `/plugins/${name}` };
        if (failure !== null && enabled) {
            return [{ ...plugin, tone: 'bad', text: failure.message, command: null }];
        }
        return (health?.checks ?? [])
            .filter(({ state }) => state !== 'ok')
            .map((check) => ({
                ...plugin,
                tone: check.state === 'failed' ? 'bad' : 'warning',
                text: check.evidence ?? check.name,
                command: remedyOf(check).command
            }));
    });
}
