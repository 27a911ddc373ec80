/** The engine: its state, its revisions, what differs from the panel's, its log and its upstreams. */
import { useMay, useRead } from '../../api/queries.ts';
import { Log } from '../../kit/display/log.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Json } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { DriftBanner } from './drift.tsx';
import type { EngineStatus } from './engine-status.ts';
import { Revisions } from './revisions.tsx';
import { Controls, Refused, State } from './state.tsx';

/** Shows the screen *Engine*: its state, revisions, upstreams, log and configuration. */
export default function Engine() {
    const { data, error } = useRead<EngineStatus>('/api/proxyengine/status');
    const may = useMay();
    const tabs = [
        { id: 'state', title: t('State') },
        { id: 'revisions', title: t('Revisions') },
        { id: 'upstreams', title: t('Upstreams') },
        ...(may('engine:logs') ? [{ id: 'log', title: t('Log') }] : []),
        { id: 'config', title: t('Configuration') }
    ];
    const tab = useTab(tabs);
    return (
        <Page
            title={t('Engine')}
            lead={t('It serves the hosts, and goes on when the panel is away.')}
            actions={data !== undefined && may('engine:control') ? <Controls status={data} /> : null}
        >
            {data?.drifted === true ? <DriftBanner canOverwrite={may('engine:control')} /> : null}
            <Tabs label={t('Engine')} tabs={tabs} />
            {tab !== 'state' ? null : data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <State status={data} />
                    <Refused status={data} />
                </>
            )}
            {tab === 'revisions' ? <Revisions canRestore={may('engine:control')} /> : null}
            {tab === 'upstreams' ? <Upstreams /> : null}
            {tab === 'log' ? (
                <section class="card">
                    <Log path="/api/proxyengine/logs?lines=200&follow=true" title={t('Log of the engine')} />
                </section>
            ) : null}
            {tab === 'config' ? <Configuration /> : null}
        </Page>
    );
}

interface Upstream {
    readonly address: string;
    readonly requests: number;
    readonly fails: number;
}

function Upstreams() {
    const { data, error } = useRead<readonly Upstream[]>('/api/proxyengine/upstreams');
    return data === undefined ? (
        <Waiting error={error} />
    ) : (
        <Table
            caption={t('Upstreams')}
            rows={data}
            icon="engine"
            empty={t('No upstream is in use yet. They appear with the first request.')}
            keyOf={({ address }) => address}
            columns={[
                { key: 'address', title: t('Address'), cell: (row) => <code>{row.address}</code> },
                { key: 'requests', title: t('Requests under way'), cell: (row) => row.requests },
                {
                    key: 'fails',
                    title: t('Failures'),
                    cell: (row) => <span class={row.fails > 0 ? 'failure' : 'dim'}>{row.fails}</span>
                }
            ]}
        />
    );
}

function Configuration() {
    const { data, error } = useRead<unknown>('/api/proxyengine/config');
    return (
        <section class="card">
            <h2>{t('What the engine runs')}</h2>
            <p class="dim">{t('Secrets are hidden.')}</p>
            {data === undefined ? <Waiting error={error} /> : <Json value={data} />}
        </section>
    );
}
