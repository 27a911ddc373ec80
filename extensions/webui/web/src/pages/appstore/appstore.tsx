/** The catalogue as cards, and the updates that wait. */
import { Link } from 'wouter-preact';

import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { FilterText, useQueryValue } from '../../kit/forms/filter.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { type App, base } from './appstore-view.ts';
import { AppIcon } from './icon.tsx';
import { Updates } from './updates.tsx';

/** Shows the app store, with a tab for each of its lists. */
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

function Card({ app }: { readonly app: App }) {
    const { key, title, tagline, version, signed, why, installed } = app;
    return (
        <li class="card">
            <h2 class="row">
                <AppIcon app={app} size={40} />
                <Link href={`/appstore/app?key=${encodeURIComponent(key)}`}>{title}</Link>
            </h2>
            <p>{tagline}</p>
            <p class="dim row">
                <span>{t('Version {version}', { version })}</span>
                <span class="badge neutral">{signed ? t('signed') : t('unsigned')}</span>
                {installed.length === 0 ? null : <span class="badge good">{t('installed')}</span>}
                {why === null ? null : <span class="badge warning">{t('not for this machine')}</span>}
            </p>
        </li>
    );
}
