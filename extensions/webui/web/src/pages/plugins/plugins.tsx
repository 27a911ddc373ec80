/** All plugins: how each is, and the switch. */
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { Page, Waiting } from '../../kit/page.tsx';
import { Table } from '../../kit/table.tsx';
import { Badge } from '../../kit/value.tsx';
import { t } from '../../words/t.ts';
import type { PluginView } from './plugin-view.ts';
import { Switch } from './switch.tsx';

/** The screen. */
export default function Plugins() {
    const { data, error } = useRead<readonly PluginView[]>('/api/plugins');
    const may = useMay();
    return (
        <Page
            title={t('Plugins')}
            lead={t('Each feature beyond the core is a plugin. A plugin that fails takes nothing else down.')}
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Plugins')}
                    rows={data}
                    keyOf={({ name }) => name}
                    columns={[
                        {
                            key: 'title',
                            title: t('Name'),
                            cell: (row) => <Link href={`/plugins/${row.name}`}>{row.title}</Link>
                        },
                        { key: 'version', title: t('Version'), cell: (row) => <Version plugin={row} /> },
                        { key: 'state', title: t('State'), cell: (row) => <Badge text={row.state} /> },
                        { key: 'health', title: t('Health'), cell: (row) => <Health plugin={row} /> }
                    ]}
                    {...(may('plugins:manage')
                        ? { actions: (row: PluginView) => <Switch plugin={row} /> }
                        : {})}
                />
            )}
        </Page>
    );
}

function Version({ plugin }: { readonly plugin: PluginView }) {
    return (
        <>
            {plugin.version ?? '–'}
            {plugin.available === null ? null : <small> → {plugin.available}</small>}
        </>
    );
}

function Health({ plugin: { failure, health } }: { readonly plugin: PluginView }) {
    if (failure !== null) {
        return <span>{failure.message}</span>;
    }
    const bad = health?.checks.filter(({ state }) => state !== 'ok') ?? [];
    return health === null ? (
        <span class="dim">–</span>
    ) : (
        <span>
            <Badge text={health.state} /> {bad.map(({ evidence }) => evidence).join(' · ')}
        </span>
    );
}
