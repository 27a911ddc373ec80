/** The page of one tag, made from its operations: it names no plugin. */
import { type Collection as CollectionModel, type Model, modelOf } from '@portico/sdk/page/model';
import { Link, useSearchParams } from 'wouter-preact';

import { useDocument } from '../api/document.ts';
import { useMay } from '../api/queries.ts';
import { Page, Waiting } from '../kit/page.tsx';
import { TabBar } from '../kit/tabs.tsx';
import type { Tag } from '../schema/document.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';
import { itemAddress, listAddress, trailTo } from './address.ts';
import { Actions } from './call/actions.tsx';
import { Countdown } from './countdown.tsx';
import { Card, ItemPage, LiveOnDemand } from './item/detail.tsx';
import { Collection } from './list/collection.tsx';
import { type Operation, operationsOf } from './operations.ts';

/** Shows a tag. The query says which list (`list`), which item of it (`id`), and which items the list lies below (`in.<parameter>`). */
export default function GeneratedPage({
    tag,
    notice
}: {
    readonly tag: string;
    /** Why it is shown in the place of another page. */
    readonly notice?: string;
}) {
    const { data, error } = useDocument(tag);
    const may = useMay();
    const [search] = useSearchParams();
    const info = data?.tags.find((each) => each.name === tag);
    const title = info?.['x-summary'] ?? inWords(tag);
    if (data === undefined) {
        return (
            <Page title={title}>
                <Waiting error={error} />
            </Page>
        );
    }
    const model = modelOf(operationsOf(data, tag).filter((each) => may(each.permission)));
    const trail = trailTo(model.collections, search.get('list')) ?? [];
    const chosen = trail.at(-1);
    const within = search.getAll('in');
    const ids = search.getAll('id');
    // What was read before stays: the plugin may come back, as after an upgrade, and a form may be open.
    const told =
        notice ?? (error?.status === 404 ? t('This plugin does not run now, or was removed.') : undefined);
    if (chosen?.item && ids.length > 0) {
        return (
            <ItemPage
                key={[chosen.list.id, ...within, ...ids].join(' ')}
                tag={tag}
                trail={trail}
                collection={chosen}
                item={chosen.item}
                within={within}
                ids={ids}
                notice={told}
            />
        );
    }
    return <Overview tag={tag} title={title} model={model} chosen={trail[0]} info={info} notice={told} />;
}

function Overview({
    tag,
    title,
    model,
    chosen,
    info,
    notice
}: {
    readonly tag: string;
    readonly title: string;
    readonly model: Model<Operation>;
    readonly chosen: CollectionModel<Operation> | undefined;
    readonly info: Tag | undefined;
    readonly notice: string | undefined;
}) {
    const shown = chosen ?? model.collections[0];
    const isFirst = shown === model.collections[0];
    // What answers a countdown stands beside it.
    const answers = model.cards.flatMap(({ read }) => [read.ui.deadline?.keep, read.ui.deadline?.undo]);
    return (
        <Page
            title={title}
            notice={notice}
            actions={
                <Actions
                    name={title}
                    operations={[
                        ...model.actions.filter(({ id }) => !answers.includes(id)),
                        ...model.downloads
                    ]}
                />
            }
        >
            {model.cards.map(({ read }) => (
                <Countdown key={read.id} read={read} operations={model.actions} />
            ))}
            <Tabs tag={tag} title={title} model={model} shown={shown} info={info} />
            {shown === undefined ? null : (
                <Collection
                    key={shown.list.id}
                    collection={shown}
                    linkTo={(ids) => (shown.item === null ? null : itemAddress(tag, shown, [], ids))}
                />
            )}
            {isFirst ? model.cards.map((each) => <Card key={each.read.id} card={each} />) : null}
            {isFirst ? model.streams.map((each) => <LiveOnDemand key={each.id} operation={each} />) : null}
            {model.others.length === 0 || !isFirst ? null : (
                <details class="others">
                    <summary>{t('More routes, for the API alone')}</summary>
                    <ul>
                        {model.others.map((each) => (
                            <li key={each.id}>
                                <code>
                                    {each.method} {each.path}
                                </code>{' '}
                                {each.title}
                            </li>
                        ))}
                    </ul>
                </details>
            )}
        </Page>
    );
}

/** The lists of the tag, and the pages that its plugin brings. */
function Tabs({
    tag,
    title,
    model,
    shown,
    info
}: {
    readonly tag: string;
    readonly title: string;
    readonly model: Model<Operation>;
    readonly shown: CollectionModel<Operation> | undefined;
    readonly info: Tag | undefined;
}) {
    const may = useMay();
    const pages = (info?.['x-pages'] ?? []).filter(
        ({ place, access }) => ['nav', 'tab'].includes(place) && may(access)
    );
    if (model.collections.length + pages.length < 2) {
        return null;
    }
    return (
        <TabBar label={title} chosen={shown?.list.id ?? ''}>
            {model.collections.map((each) => (
                <Link
                    key={each.list.id}
                    href={listAddress(tag, each)}
                    aria-current={each === shown ? 'page' : undefined}
                >
                    {each.list.title}
                </Link>
            ))}
            {pages.map(({ id, title: text }) => (
                <Link key={id} href={`/p/${tag}/${id}`}>
                    {t(text)}
                </Link>
            ))}
        </TabBar>
    );
}
