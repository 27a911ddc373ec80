/** Where pages of plugins are shown beside screens of their own: on the overview, and at a host. */
import { useState } from 'preact/hooks';

import { useDocument } from '../api/document.ts';
import { useMay } from '../api/queries.ts';
import { t } from '../words/t.ts';
import { type Brought, pagesAt } from './brought.ts';
import { PluginFrame } from './host.tsx';

/** The pages for the overview, each in a card; nothing without any. */
export function DashboardPages() {
    return <Pages place="dashboard" host={null} />;
}

/** The pages for a host, each in a card; nothing without any. */
export function HostPages({ host }: { readonly host: number }) {
    return <Pages place="host" host={host} />;
}

function Pages({ place, host }: { readonly place: 'dashboard' | 'host'; readonly host: number | null }) {
    const { data } = useDocument('panel');
    const may = useMay();
    return (
        <>
            {pagesAt(data?.tags ?? [], place, may).map(({ plugin, page }) => (
                <PageCard key={page.path} plugin={plugin} page={page} host={host} />
            ))}
        </>
    );
}

function PageCard({ plugin, page, host }: Brought & { readonly host: number | null }) {
    const [isSilent, setSilent] = useState(false);
    const [title, setTitle] = useState(page.title);
    return (
        <section class="card">
            <h2>{t(title)}</h2>
            {isSilent ? (
                <p class="dim">{t('This page of a plugin does not answer.')}</p>
            ) : (
                <PluginFrame
                    plugin={plugin}
                    page={page}
                    host={host}
                    onSilent={() => setSilent(true)}
                    onTitle={setTitle}
                />
            )}
        </section>
    );
}
