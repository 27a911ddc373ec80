/** What is in the backups, and how it comes back: the snapshots of a repository, and the tree of one of them. */
import { Link, useSearchParams } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { counted, quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { base, type Repository, type Snapshot, type Source } from './backup-view.ts';
import { SnapshotPage } from './snapshot.tsx';

/** The screen. The query says which repository (`repository`), and which snapshot of it (`snapshot`). */
export default function Backup() {
    const [search] = useSearchParams();
    const { data: repositories, error } = useRead<readonly Repository[]>(`${base}/repositories`);
    const wanted = search.get('repository');
    const chosen = repositories?.find(({ id }) => String(id) === wanted) ?? repositories?.[0];
    const snapshot = search.get('snapshot');
    if (chosen !== undefined && snapshot !== null) {
        return <SnapshotPage key={snapshot} repository={chosen} id={snapshot} />;
    }
    return (
        <Page
            title={t('Backups')}
            lead={t('What is in them, and how it comes back.')}
            actions={
                <Link class="button" href="/p/backup">
                    {t('Plans and repositories')}
                </Link>
            }
        >
            {repositories === undefined ? (
                <Waiting error={error} />
            ) : chosen === undefined ? (
                <Table
                    caption={t('Repositories')}
                    columns={[]}
                    rows={[]}
                    keyOf={() => ''}
                    icon="disk"
                    empty={t('No repository yet: it says where the backups are kept.')}
                    firstStep={
                        <Link class="button primary" href="/p/backup">
                            {t('Make one')}
                        </Link>
                    }
                />
            ) : (
                <>
                    <nav class="tabs" aria-label={t('Repositories')}>
                        {repositories.map(({ id, name }) => (
                            <Link
                                key={id}
                                href={`/backup?repository=${id}`}
                                aria-current={id === chosen.id ? 'page' : undefined}
                            >
                                {name}
                            </Link>
                        ))}
                    </nav>
                    <Snapshots repository={chosen} />
                </>
            )}
        </Page>
    );
}

function Snapshots({ repository }: { readonly repository: Repository }) {
    const may = useMay();
    const { data, error } = useRead<readonly Snapshot[]>(`${base}/repositories/${repository.id}/snapshots`);
    if (data === undefined) {
        return <Waiting error={error} />;
    }
    return (
        <>
            <p class="row">
                <Badge text={repository.state} />
                <span class="dim">
                    {counted(data.length, t('1 snapshot'), t('{count} snapshots', { count: data.length }))}
                    {repository.storedBytes === null ? '' : ` · ${quantity(repository.storedBytes, 'byte')}`}
                </span>
            </p>
            <Table
                caption={t('Snapshots')}
                rows={data}
                icon="history"
                empty={t('No snapshot yet')}
                keyOf={({ id }) => id}
                columns={[
                    {
                        key: 'time',
                        title: t('Made'),
                        cell: ({ id, time }) => {
                            const made = <Value value={time} schema={{ format: 'date-time' }} />;
                            return may('backup:browse') ? (
                                <Link href={`/backup?repository=${repository.id}&snapshot=${id}`}>
                                    {made}
                                </Link>
                            ) : (
                                made
                            );
                        }
                    },
                    {
                        key: 'sources',
                        title: t('Sources'),
                        cell: ({ sources }) => sources.map(nameOf).join(', ')
                    },
                    {
                        key: 'bytes',
                        title: t('Size'),
                        cell: ({ bytes }) => <Value value={bytes} schema={{ 'x-unit': 'byte' }} />
                    },
                    { key: 'hostname', title: t('Machine'), cell: ({ hostname }) => hostname },
                    {
                        key: 'id',
                        title: t('Snapshot'),
                        cell: ({ id, pinned }) => (
                            <span class="row compact">
                                <code>{id.slice(0, 8)}</code>
                                {pinned ? <Badge text={t('pinned')} tone="good" /> : null}
                            </span>
                        )
                    }
                ]}
            />
        </>
    );
}

/** A source in words. */
export function nameOf({ type, path, plugin }: Source): string {
    return type === 'panel' ? t('The panel') : (path ?? plugin ?? type);
}
