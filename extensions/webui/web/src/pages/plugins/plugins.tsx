/** All plugins: how each is, the switch, and what else there is to install. */
import { useQuery } from '@tanstack/preact-query';
import { useRef, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import type { ApiFailure } from '../../api/failure.ts';
import { useMay } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { Catalogue } from './catalogue.tsx';
import { ChangeDialog, type Wanted } from './change-dialog.tsx';
import type { PluginView } from './plugin-view.ts';
import { Switch } from './switch.tsx';

interface Inventory {
    readonly plugins: readonly PluginView[];
    /** Why no plugin is loaded, and how to leave that; null when the panel runs as usual. */
    readonly safeMode: string | null;
}

/** Shows the screen *Plugins*: all of them, with their state. */
export default function Plugins() {
    const may = useMay();
    const [wanted, setWanted] = useState<Wanted | null>(null);
    const canManage = may('plugins:manage');
    const tabs = [
        { id: 'installed', title: t('Installed') },
        ...(canManage ? [{ id: 'catalogue', title: t('Catalogue') }] : [])
    ];
    const tab = useTab(tabs);
    return (
        <Page
            title={t('Plugins')}
            lead={t('Each feature beyond the core is a plugin. A plugin that fails takes nothing else down.')}
            actions={canManage ? <Upload onFile={(file) => setWanted({ kind: 'archive', file })} /> : null}
        >
            <Tabs label={t('Plugins')} tabs={tabs} />
            {tab === 'catalogue' ? <Catalogue onChoose={setWanted} /> : <Installed canManage={canManage} />}
            {wanted === null ? null : <ChangeDialog wanted={wanted} onClose={() => setWanted(null)} />}
        </Page>
    );
}

function Upload({ onFile }: { readonly onFile: (file: File) => void }) {
    const input = useRef<HTMLInputElement>(null);
    return (
        <>
            <input
                ref={input}
                type="file"
                accept=".tgz,.tar.gz,application/gzip"
                class="offscreen"
                aria-label={t('Archive of a plugin')}
                tabIndex={-1}
                onChange={({ currentTarget }) => {
                    const file = currentTarget.files?.[0];
                    if (file !== undefined) {
                        onFile(file);
                    }
                    currentTarget.value = '';
                }}
            />
            <Button onPress={() => input.current?.click()}>
                <Icon name="upload" />
                {t('Upload an archive')}
            </Button>
        </>
    );
}

function Installed({ canManage }: { readonly canManage: boolean }) {
    const { data, error } = useQuery<Inventory, ApiFailure>({
        queryKey: ['read', '/api/plugins#inventory'],
        async queryFn({ signal }) {
            const answer = await call<readonly PluginView[]>('GET', '/api/plugins', { signal });
            const isSafe = answer.headers.get('x-portico-safe-mode') === '1';
            return { plugins: answer.data, safeMode: isSafe ? answer.message : null };
        }
    });
    if (data === undefined) {
        return <Waiting error={error} />;
    }
    return (
        <>
            {data.safeMode === null ? null : (
                <div class="banner bad" role="alert">
                    <Icon name="warning" />
                    <div>{t(data.safeMode)}</div>
                </div>
            )}
            <Table
                caption={t('Plugins')}
                rows={data.plugins}
                keyOf={({ name }) => name}
                columns={[
                    { key: 'title', title: t('Name'), cell: (row) => <Name plugin={row} /> },
                    { key: 'version', title: t('Version'), cell: (row) => <Version plugin={row} /> },
                    { key: 'state', title: t('State'), cell: (row) => <Badge text={row.state} /> },
                    { key: 'health', title: t('Health'), cell: (row) => <Health plugin={row} /> }
                ]}
                {...(canManage ? { actions: (row: PluginView) => <Switch plugin={row} /> } : {})}
            />
        </>
    );
}

function Name({ plugin: { name, title, icon } }: { readonly plugin: PluginView }) {
    return (
        <Link class="row" href={`/plugins/${name}`}>
            <Icon name={icon ?? name} />
            {t(title)}
        </Link>
    );
}

function Version({ plugin }: { readonly plugin: PluginView }) {
    return (
        <span>
            {plugin.version ?? '–'}
            {plugin.available === null ? null : <span class="tag"> → {plugin.available}</span>}
        </span>
    );
}

function Health({ plugin: { failure, health } }: { readonly plugin: PluginView }) {
    if (failure !== null) {
        return <span class="failure">{failure.message}</span>;
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
