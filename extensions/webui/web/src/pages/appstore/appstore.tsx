/** The catalogue as cards, and the updates that wait with what each of them changes. */
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { FilterText, useQueryValue } from '../../kit/filter.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { confirm } from '../../kit/questions.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { toastFailure } from '../../kit/toast.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import { type App, base, type Update } from './appstore-view.ts';
import { Changes } from './changes.tsx';

/** The screen. */
export default function AppStore() {
    const tabs = [
        { id: 'catalogue', title: t('Catalogue') },
        { id: 'updates', title: t('Updates') }
    ];
    const tab = useTab(tabs);
    return (
        <Page
            title={t('Apps')}
            lead={t('Whole applications, installed as stacks of containers.')}
            actions={
                <Link class="button" href="/p/appstore">
                    {t('Installed apps, sources and imports')}
                </Link>
            }
        >
            <Tabs label={t('Apps')} tabs={tabs} />
            {tab === 'updates' ? <Updates /> : <Catalogue />}
        </Page>
    );
}

function Catalogue() {
    const [search] = useQueryValue('q');
    const { rows, error, isPending, more } = useRows<App>(`${base}/apps`, search === '' ? {} : { q: search });
    return (
        <>
            <div class="row filters" role="search">
                <FilterText name="q" title={t('Search')} />
            </div>
            {isPending || error !== null ? (
                <Waiting error={error} />
            ) : rows.length === 0 ? (
                <div class="empty">
                    <Icon name="box" />
                    <p>{t('No app is here: add a source, and sync it.')}</p>
                </div>
            ) : (
                <ul class="apps" aria-label={t('Catalogue')}>
                    {rows.map((app) => (
                        <Card key={app.key} app={app} />
                    ))}
                </ul>
            )}
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
        </>
    );
}

function Card({ app: { key, title, tagline, version, signed, why, installed } }: { readonly app: App }) {
    return (
        <li class="card">
            <h2>
                <Link href={`/appstore/app?key=${encodeURIComponent(key)}`}>{title}</Link>
            </h2>
            <p>{tagline}</p>
            <p class="dim row">
                <span>{version}</span>
                <span class="badge neutral">{signed ? t('signed') : t('unsigned')}</span>
                {installed.length === 0 ? null : <span class="badge good">{t('installed')}</span>}
                {why === null ? null : <span class="badge warning">{t('not for this machine')}</span>}
            </p>
        </li>
    );
}

function Updates() {
    const { data, error } = useRead<readonly Update[]>(`${base}/updates`);
    const may = useMay();
    if (data === undefined) {
        return <Waiting error={error} />;
    }
    return data.length === 0 ? (
        <p class="empty">{t('All apps are up to date')}</p>
    ) : (
        <ul class="apps" aria-label={t('Updates')}>
            {data.map((each) => (
                <li key={each.name} class="card">
                    <h2>{each.name}</h2>
                    <p>
                        {each.from} → <strong>{each.to}</strong>
                    </p>
                    {each.diff === null ? null : <Changes difference={each.diff} />}
                    {each.why === null ? null : <p class="dim">{each.why}</p>}
                    {may('appstore:run') && !each.needsConsent ? (
                        <Button look="primary" onPress={() => update(each)}>
                            {t('Update')}
                        </Button>
                    ) : null}
                </li>
            ))}
        </ul>
    );
}

/** Begins an update; its data are backed up before. Failures are shown. */
async function update({ name, to }: Update): Promise<void> {
    if (await confirm(t('Update {name} to {version}?', { name, version: to }), t('Update'))) {
        const path = `${base}/installed/${encodeURIComponent(name)}/update`;
        await call<{ id: number }>('POST', path, { body: { version: to } }).then(
            ({ data }) => showTask(data.id),
            toastFailure
        );
        await invalidate(base);
    }
}
