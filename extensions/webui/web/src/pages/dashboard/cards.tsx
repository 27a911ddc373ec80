/** The figures of the overview, each a way to its screen. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';

import { useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { fullTime, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { CertificateView } from '../certificates/certificate-view.ts';
import type { EngineStatus } from '../engine/engine-status.ts';
import type { PluginView } from '../plugins/plugin-view.ts';

/** A card with one figure. */
export function Figure({
    title,
    href,
    icon,
    figure,
    children
}: {
    readonly title: string;
    readonly href: string;
    readonly icon: string;
    readonly figure: ComponentChildren;
    readonly children?: ComponentChildren;
}) {
    return (
        <section class="card figure-card">
            <h2 class="row">
                <Icon name={icon} />
                <Link href={href}>{title}</Link>
            </h2>
            <p class="figure">{figure}</p>
            {children}
        </section>
    );
}

/** Hosts by their state. */
export function HostsCard() {
    const all = useRows<unknown>('/api/hosts', { limit: 1 });
    const states = ['applied', 'pending', 'error', 'disabled'] as const;
    return (
        <Figure title={t('Hosts')} href="/hosts" icon="globe" figure={all.total ?? '–'}>
            <p class="row">
                {states.map((state) => (
                    <StateCount key={state} state={state} />
                ))}
            </p>
        </Figure>
    );
}

function StateCount({ state }: { readonly state: string }) {
    const { total } = useRows<unknown>('/api/hosts', { state, limit: 1 });
    return total === null || total === 0 ? null : (
        <Link class="quiet-link" href={`/hosts?state=${state}`}>
            <Badge text={state} /> {total}
        </Link>
    );
}

/** Certificates, and the next that ends. */
export function CertificatesCard() {
    const { data } = useRead<readonly CertificateView[]>('/api/certificates');
    const next = (data ?? [])
        .filter(({ notAfter }) => notAfter !== null)
        .toSorted((left, right) => String(left.notAfter).localeCompare(String(right.notAfter)))[0];
    return (
        <Figure title={t('Certificates')} href="/certificates" icon="shield" figure={data?.length ?? '–'}>
            <p class="dim">
                {next === undefined || next.notAfter === null
                    ? t('No certificate yet')
                    : t('The next ends {when}: {name}', {
                          when: relativeTime(next.notAfter),
                          name: next.name
                      })}
            </p>
        </Figure>
    );
}

/** Shows how many plugins run. */
export function PluginsCard() {
    const { data } = useRead<readonly PluginView[]>('/api/plugins');
    const running = data?.filter(({ state }) => state === 'running').length;
    const updates = data?.filter(({ available }) => available !== null).length ?? 0;
    return (
        <Figure title={t('Plugins')} href="/plugins" icon="puzzle" figure={running ?? '–'}>
            <p class="dim">
                {updates === 0
                    ? t('of {count} are running', { count: data?.length ?? 0 })
                    : t('{count} can be upgraded', { count: updates })}
            </p>
        </Figure>
    );
}

/** Shows the state of the engine. */
export function EngineCard() {
    const { data } = useRead<EngineStatus>('/api/proxyengine/status');
    return (
        <Figure
            title={t('Engine')}
            href="/engine"
            icon="engine"
            figure={data === undefined ? '–' : <Badge text={data.state} />}
        >
            <p class="dim">
                {data?.version === null || data === undefined ? '' : `Caddy ${data.version}`}
                {data === undefined || data.startedAt === null ? null : (
                    <span title={fullTime(data.startedAt)}>
                        {' · '}
                        {t('Started {when}', { when: relativeTime(data.startedAt) })}
                    </span>
                )}
            </p>
        </Figure>
    );
}
