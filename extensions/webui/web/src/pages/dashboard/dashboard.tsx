/** The overview: the engine, the hosts, what ends soon, what is unhealthy, and what happened last. It follows the panel's events. */
import { Link } from 'wouter-preact';

import { useMay, useMe, useRead } from '../../api/queries.ts';
import { DashboardPages } from '../../frames/places.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Badge, Value } from '../../kit/value.tsx';
import { fullTime, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { PluginView } from '../plugins/plugin-view.ts';

interface Engine {
    readonly state: string;
    readonly version: string | null;
    readonly startedAt: string | null;
    readonly pending: number;
    readonly drifted: boolean;
    readonly message: string | null;
}
interface Host {
    readonly id: number;
    readonly domain: string;
    readonly state: string;
}
interface Certificate {
    readonly id: number;
    readonly name: string;
    readonly notAfter: string | null;
}
interface Entry {
    readonly id: number;
    readonly at: string;
    readonly action: string;
    readonly actor: { readonly username: string | null; readonly plugin: string | null };
    readonly outcome: string;
}

const soon = 30 * 86_400_000;
const shownEntries = 8;

/** The screen. */
export default function Dashboard() {
    const may = useMay();
    const me = useMe();
    return (
        <Page
            title={t('Overview')}
            lead={me === undefined ? '' : t('Welcome, {name}', { name: me.username })}
        >
            <div class="columns">
                {may('engine:read') ? <EngineCard /> : null}
                {may('hosts:read') ? <HostsCard /> : null}
                {may('certificates:read') ? <CertificatesCard /> : null}
                {may('plugins:read') ? <PluginsCard /> : null}
                <DashboardPages />
            </div>
            {may('audit:read') ? <LastEntries /> : null}
        </Page>
    );
}

function EngineCard() {
    const { data, error } = useRead<Engine>('/api/proxyengine/status');
    return (
        <section class="card">
            <h2>
                <Link href="/p/proxyengine">{t('Engine')}</Link>
            </h2>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <p>
                        <Badge text={data.state} /> {data.version === null ? '' : `Caddy ${data.version}`}
                    </p>
                    {data.startedAt === null ? null : (
                        <p title={fullTime(data.startedAt)}>
                            {t('Started {when}', { when: relativeTime(data.startedAt) })}
                        </p>
                    )}
                    {data.pending === 0 ? null : (
                        <p class="warning">
                            {t('{count} changes wait for a reload', { count: data.pending })}
                        </p>
                    )}
                    {data.drifted ? (
                        <p class="warning">{t('It does not run what the panel left. See drift.')}</p>
                    ) : null}
                    {data.message === null ? null : <p class="failure">{data.message}</p>}
                </>
            )}
        </section>
    );
}

function HostsCard() {
    const { data, error } = useRead<readonly Host[]>('/api/hosts?limit=500');
    const states = Map.groupBy(data ?? [], ({ state }) => state);
    return (
        <section class="card">
            <h2>
                <Link href="/p/hosts">{t('Hosts')}</Link>
            </h2>
            {data === undefined ? <Waiting error={error} /> : null}
            <p class="figure">{data?.length ?? ''}</p>
            <p class="row">
                {[...states].map(([state, hosts]) => (
                    <span key={state}>
                        <Badge text={state} /> {hosts.length}
                    </span>
                ))}
            </p>
        </section>
    );
}

function CertificatesCard() {
    const { data, error } = useRead<readonly Certificate[]>('/api/certificates');
    const ending = (data ?? []).filter(
        ({ notAfter }) => notAfter !== null && Date.parse(notAfter) - Date.now() < soon
    );
    return (
        <section class="card">
            <h2>
                <Link href="/p/certificates">{t('Certificates')}</Link>
            </h2>
            {data === undefined ? <Waiting error={error} /> : null}
            <p class="figure">{data?.length ?? ''}</p>
            {ending.length === 0 ? (
                <p class="dim">{t('None ends within 30 days')}</p>
            ) : (
                <ul>
                    {ending.map(({ id, name, notAfter }) => (
                        <li key={id}>
                            {name}:{' '}
                            <Value value={notAfter} schema={{ type: 'string', format: 'date-time' }} />
                        </li>
                    ))}
                </ul>
            )}
        </section>
    );
}

function PluginsCard() {
    const { data, error } = useRead<readonly PluginView[]>('/api/plugins');
    const bad = (data ?? []).filter(
        ({ failure, health }) => failure !== null || (health !== null && health.state !== 'ok')
    );
    return (
        <section class="card">
            <h2>
                <Link href="/plugins">{t('Plugins')}</Link>
            </h2>
            {data === undefined ? <Waiting error={error} /> : null}
            <p class="figure">{data?.filter(({ state }) => state === 'running').length ?? ''}</p>
            {bad.length === 0 ? (
                <p class="dim">{t('All that run are healthy')}</p>
            ) : (
                <ul>
                    {bad.map(({ name, title, failure, health }) => (
                        <li key={name}>
                            <Link href={`/plugins/${name}`}>{title}</Link>:{' '}
                            {failure?.message ?? health?.checks.find(({ state }) => state !== 'ok')?.evidence}
                        </li>
                    ))}
                </ul>
            )}
        </section>
    );
}

function LastEntries() {
    const { data } = useRead<readonly Entry[]>(`/api/audit?limit=${shownEntries}`);
    return (
        <section class="card">
            <h2>
                <Link href="/p/audit">{t('Last changes')}</Link>
            </h2>
            <ul class="checks">
                {(data ?? []).map(({ id, at, action, actor, outcome }) => (
                    <li key={id}>
                        <Badge text={outcome} /> <strong>{action}</strong>{' '}
                        {actor.username ?? actor.plugin ?? ''}{' '}
                        <time class="dim" dateTime={at} title={fullTime(at)}>
                            {relativeTime(at)}
                        </time>
                    </li>
                ))}
            </ul>
        </section>
    );
}
