/** All containers of the engine with their state and figures as they change. */
import { useQuery } from '@tanstack/preact-query';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';

import type { ApiFailure } from '../../api/failure.ts';
import { invalidate, useMay } from '../../api/queries.ts';
import { readAll } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { FilterText, useQueryValue } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import {
    act,
    actionsOf,
    base,
    type Container,
    portText,
    type Stats,
    tones,
    useEvents,
    useStats
} from './container-view.ts';

const list = `${base}/containers`;
/** Many things happen when a stack starts; the list is read once for all of them. */
const calmMs = 300;

/** Shows the screen *Containers*: all of them, with their state. */
export default function Containers() {
    const { data, error } = useQuery<readonly Container[], ApiFailure>({
        queryKey: ['read', list],
        queryFn: () => readAll<Container>(list, { limit: 200 })
    });
    const [search] = useQueryValue('q');
    const stats = useStats();
    useChanges();
    const needle = search.toLowerCase();
    const shown = (data ?? []).filter(({ name, image, stack }) =>
        [name, image, stack ?? ''].some((text) => text.toLowerCase().includes(needle))
    );
    return (
        <Page
            title={t('Containers')}
            lead={t('What runs on the container engine, as it changes.')}
            actions={
                <Link class="button" href="/p/container">
                    {t('Stacks, images, networks and volumes')}
                </Link>
            }
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <div class="row filters" role="search">
                        <FilterText name="q" title={t('Search')} />
                    </div>
                    <List rows={shown} stats={stats} />
                </>
            )}
        </Page>
    );
}

/** Reads the list again when something happens to a container. */
function useChanges(): void {
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    useEvents(`${base}/events?types=container`, () => {
        timer.current ??= setTimeout(() => {
            timer.current = undefined;
            void invalidate(list);
        }, calmMs);
    });
    useEffect(() => () => clearTimeout(timer.current), []);
}

function List({
    rows,
    stats
}: {
    readonly rows: readonly Container[];
    readonly stats: ReadonlyMap<string, Stats>;
}) {
    const may = useMay();
    const statsOf = ({ id, state }: Container): Stats | undefined =>
        state === 'running' ? stats.get(id) : undefined;
    return (
        <Table
            caption={t('Containers')}
            rows={rows}
            icon="box"
            empty={t('No container is here')}
            keyOf={({ id }) => id}
            columns={[
                {
                    key: 'name',
                    title: t('Name'),
                    cell: ({ id, name }) => <Link href={`/containers/${id}`}>{name}</Link>
                },
                { key: 'state', title: t('State'), cell: (row) => <State container={row} /> },
                {
                    key: 'cpu',
                    title: t('Processor'),
                    cell: (row) => <Cpu stats={statsOf(row)} name={row.name} />
                },
                {
                    key: 'memory',
                    title: t('Memory'),
                    cell: (row) => <Memory stats={statsOf(row)} name={row.name} />
                },
                { key: 'stack', title: t('Stack'), cell: ({ stack }) => <Stack name={stack} /> },
                { key: 'image', title: t('Image'), cell: ({ image }) => <code>{image}</code> },
                {
                    key: 'ports',
                    title: t('Ports'),
                    cell: ({ ports }) => <span class="number">{ports.map(portText).join(', ') || '–'}</span>
                }
            ]}
            {...(may('container:control')
                ? {
                      actions: (row: Container) => (
                          <div class="row">
                              {actionsOf(row).map((each) => (
                                  <Button key={each.path} onPress={() => act(row.id, each)}>
                                      {each.title}
                                  </Button>
                              ))}
                          </div>
                      )
                  }
                : {})}
        />
    );
}

/** The state, and what its check says. */
export function State({ container: { state, health } }: { readonly container: Container }) {
    return (
        <span class="row">
            <Badge text={state} tone={tones[state]} />
            {health === 'none' || state !== 'running' ? null : <Badge text={health} />}
        </span>
    );
}

function Stack({ name }: { readonly name: string | null }) {
    return name === null ? (
        <span class="dim">–</span>
    ) : (
        <Link href={`/p/container?list=container.stacks&id=${encodeURIComponent(name)}`}>{name}</Link>
    );
}

function Cpu({ stats, name }: { readonly stats: Stats | undefined; readonly name: string }) {
    return stats === undefined ? (
        <span class="dim">–</span>
    ) : (
        <span class="load">
            <meter
                aria-label={t('Processor of {name}', { name })}
                min={0}
                max={100}
                high={90}
                value={Math.min(stats.cpuPercent, 100)}
            />
            <span class="number">{quantity(stats.cpuPercent, 'percent')}</span>
        </span>
    );
}

function Memory({ stats, name }: { readonly stats: Stats | undefined; readonly name: string }) {
    return stats === undefined ? (
        <span class="dim">–</span>
    ) : (
        <span class="load">
            <meter
                aria-label={t('Memory of {name}', { name })}
                min={0}
                max={Math.max(stats.memoryLimitBytes, stats.memoryBytes, 1)}
                value={stats.memoryBytes}
            />
            <span class="number">{quantity(stats.memoryBytes, 'byte')}</span>
        </span>
    );
}
