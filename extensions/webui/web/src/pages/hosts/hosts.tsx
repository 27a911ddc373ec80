/** All hosts: filters in the address, states as they change, and work on several at once. */
import { useState } from 'preact/hooks';
import { Link, useSearchParams } from 'wouter-preact';

import { useMay } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Badge } from '../../kit/display/value.tsx';
import { type VirtualColumn, VirtualTable } from '../../kit/display/virtual-table.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { counted } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { BatchBar } from './batch.tsx';
import { HostFilters } from './filters.tsx';
import { type HostRow, targetOf } from './host-view.ts';
import { HostMenu } from './menu.tsx';

const heights = [48, 92] as const;
const pageSize = 200;

/** Shows the screen *Hosts*: all of them, with their filters. */
export default function Hosts() {
    const may = useMay();
    const [search] = useSearchParams();
    const filters = Object.fromEntries([...search].filter(([, value]) => value !== ''));
    const { rows, error, isPending, more, ...list } = useRows<HostRow>('/api/hosts', {
        sort: 'domain',
        limit: pageSize,
        ...filters
    });
    const total = list.total ?? rows.length;
    const readNear = (row: number): void => {
        if (row > rows.length - pageSize / 2) {
            void more?.();
        }
    };
    const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
    const canWrite = may('hosts:write');
    return (
        <Page
            title={t('Hosts')}
            lead={t('Every name that the engine answers, and where it leads.')}
            actions={canWrite ? <NewHost /> : null}
        >
            <div class="row spread">
                <HostFilters />
                <span class="dim" role="status">
                    {isPending ? '' : counted(total, t('1 host'), t('{count} hosts', { count: total }))}
                </span>
            </div>
            {chosen.size === 0 ? null : (
                <BatchBar
                    ids={[...chosen]}
                    total={total}
                    filters={filters}
                    onChoose={(ids) => setChosen(new Set(ids))}
                    onDone={() => setChosen(new Set())}
                />
            )}
            {isPending || (error !== null && rows.length === 0) ? (
                <Waiting error={error} />
            ) : total === 0 ? (
                <NoHost isFiltered={Object.keys(filters).length > 0} canWrite={canWrite} />
            ) : (
                <VirtualTable
                    caption={t('Hosts')}
                    look="hosts"
                    rows={rows}
                    total={total}
                    heights={heights}
                    keyOf={({ id }) => String(id)}
                    columns={columnsOf(rows, canWrite, chosen, setChosen)}
                    onNear={readNear}
                />
            )}
        </Page>
    );
}

function NewHost() {
    return (
        <Link class="button primary" href="/hosts/new">
            <Icon name="plus" />
            {t('New host')}
        </Link>
    );
}

function NoHost({ isFiltered, canWrite }: { readonly isFiltered: boolean; readonly canWrite: boolean }) {
    return (
        <div class="empty">
            <Icon name="globe" />
            <p>
                {isFiltered
                    ? t('No host fits these filters')
                    : t('No host yet. The first one takes a minute.')}
            </p>
            {!isFiltered && canWrite ? <NewHost /> : null}
        </div>
    );
}

function columnsOf(
    rows: readonly HostRow[],
    canWrite: boolean,
    chosen: ReadonlySet<number>,
    choose: (chosen: ReadonlySet<number>) => void
): readonly VirtualColumn<HostRow>[] {
    const all = rows.length > 0 && rows.every(({ id }) => chosen.has(id));
    const toggle = (id: number): void => {
        const next = new Set(chosen);
        if (!next.delete(id)) {
            next.add(id);
        }
        choose(next);
    };
    const shown: readonly VirtualColumn<HostRow>[] = [
        { key: 'domain', title: t('Name'), cell: (row) => <Name row={row} /> },
        { key: 'state', title: t('State'), cell: (row) => <State row={row} /> },
        { key: 'type', title: t('Type'), cell: (row) => t(row.type) },
        { key: 'target', title: t('Leads to'), cell: (row) => <span class="mono">{targetOf(row)}</span> },
        { key: 'tags', title: t('Tags'), cell: (row) => <Tags tags={row.tags} /> }
    ];
    return canWrite
        ? [
              {
                  key: 'choose',
                  title: (
                      <input
                          type="checkbox"
                          aria-label={t('Choose all')}
                          checked={all}
                          onChange={() => choose(new Set(all ? [] : rows.map(({ id }) => id)))}
                      />
                  ),
                  cell: ({ id, domain }) => (
                      <input
                          type="checkbox"
                          aria-label={t('Choose {name}', { name: domain })}
                          checked={chosen.has(id)}
                          onChange={() => toggle(id)}
                      />
                  )
              },
              ...shown,
              {
                  key: 'more',
                  title: <span class="offscreen">{t('Actions')}</span>,
                  cell: (row) => <HostMenu host={row} />
              }
          ]
        : shown;
}

function Name({ row: { id, domain, aliases, ssl } }: { readonly row: HostRow }) {
    return (
        <>
            <Link href={`/hosts/${id}`}>{domain}</Link>
            {ssl ? (
                <span class="secure" title={t('HTTPS')}>
                    <Icon name="key" />
                    <span class="offscreen">{t('HTTPS')}</span>
                </span>
            ) : null}
            {aliases.length === 0 ? null : <small title={aliases.join(', ')}> +{aliases.length}</small>}
        </>
    );
}

function State({ row: { state, stateMessage } }: { readonly row: HostRow }) {
    return (
        <span title={stateMessage ?? undefined}>
            <Badge text={state} />
        </span>
    );
}

function Tags({ tags }: { readonly tags: readonly string[] }) {
    return (
        <>
            {tags.map((tag) => (
                <Link key={tag} class="tag" href={`/hosts?tag=${encodeURIComponent(tag)}`}>
                    {tag}
                </Link>
            ))}
        </>
    );
}
