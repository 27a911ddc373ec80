/** A screen that a plugin brings, in a frame. Its part of the address is `at`, so that it can be reloaded and sent to others. */
import { useState } from 'preact/hooks';
import { Link, useSearchParams } from 'wouter-preact';

import { useDocument } from '../../api/document.ts';
import { useMay } from '../../api/queries.ts';
import { PluginFrame } from '../../frames/host.tsx';
import GeneratedPage from '../../generated/page.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { inWords } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** Shows a page of a plugin; the generated page with a notice when it does not answer. */
export default function FramePage({ plugin, id }: { readonly plugin: string; readonly id: string }) {
    const { data, error } = useDocument(plugin);
    const may = useMay();
    const [search, setSearch] = useSearchParams();
    const [isSilent, setSilent] = useState(false);
    const [title, setTitle] = useState<string | null>(null);
    const tag = data?.tags.find(({ name }) => name === plugin);
    const page = tag?.['x-pages']?.find((each) => each.id === id);
    if (data === undefined) {
        return (
            <Page title={inWords(id)}>
                <Waiting error={error} />
            </Page>
        );
    }
    if (page === undefined || !may(page.access)) {
        return (
            <Page title={t('There is no such page')}>
                <p>{t('The address may be old. The menu has everything.')}</p>
            </Page>
        );
    }
    if (isSilent) {
        return (
            <GeneratedPage
                tag={plugin}
                notice={t(
                    'The page {title} does not answer. This one is made from the routes of the plugin.',
                    {
                        title: t(page.title)
                    }
                )}
            />
        );
    }
    return (
        <Page
            title={title ?? t(page.title)}
            actions={
                <Link href={`/p/${plugin}`}>
                    {t('All of {title}', { title: t(tag?.['x-summary'] ?? inWords(plugin)) })}
                </Link>
            }
        >
            <PluginFrame
                plugin={plugin}
                page={page}
                location={search.get('at') ?? ''}
                fills
                onSilent={() => setSilent(true)}
                onTitle={setTitle}
                onLocation={(at) => setSearch(at === '' ? {} : { at })}
            />
        </Page>
    );
}
