/** What was changed, revision by revision, and the way back to one. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { queries, useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Differences } from '../../kit/display/difference.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Waiting } from '../../kit/page.tsx';
import { counted } from '../../words/format.ts';
import { t } from '../../words/t.ts';

interface Revision {
    readonly number: number;
    readonly at: string;
    readonly applied: boolean;
    readonly reloaded: boolean;
    readonly by: readonly { readonly username: string | null; readonly plugin: string | null }[];
    readonly changed: number;
}

interface RevisionDetail extends Revision {
    readonly changes: readonly {
        readonly id: number;
        readonly before: Readonly<Record<string, unknown>> | null;
        readonly after: Readonly<Record<string, unknown>> | null;
    }[];
}

/** Shows the revisions, newest first; `canRestore` adds the way back to each. */
export function Revisions({ canRestore }: { readonly canRestore: boolean }) {
    const { rows, error, isPending, more } = useRows<Revision>('/api/proxyengine/revisions', { limit: 50 });
    const [shown, setShown] = useState<number | null>(null);
    if (isPending || (error !== null && rows.length === 0)) {
        return <Waiting error={error} />;
    }
    return (
        <>
            <Table
                caption={t('Revisions')}
                rows={rows}
                icon="history"
                empty={t('No change yet')}
                keyOf={({ number }) => String(number)}
                columns={[
                    {
                        key: 'number',
                        title: t('Number'),
                        cell: (row) => <span class="number">{row.number}</span>
                    },
                    {
                        key: 'at',
                        title: t('When'),
                        cell: (row) => <Value value={row.at} schema={{ format: 'date-time' }} />
                    },
                    { key: 'by', title: t('By'), cell: (row) => byWhom(row) },
                    {
                        key: 'changed',
                        title: t('Hosts'),
                        cell: (row) => <span class="number">{row.changed}</span>
                    },
                    {
                        key: 'state',
                        title: t('State'),
                        cell: (row) => <Badge text={row.applied ? 'applied' : 'pending'} />
                    }
                ]}
                actions={(row) => (
                    <Button onPress={() => setShown(row.number)}>{t('See what changed')}</Button>
                )}
            />
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
            {shown === null ? null : (
                <RevisionDialog number={shown} canRestore={canRestore} onClose={() => setShown(null)} />
            )}
        </>
    );
}

function RevisionDialog({
    number,
    canRestore,
    onClose
}: {
    readonly number: number;
    readonly canRestore: boolean;
    readonly onClose: () => void;
}) {
    const path = `/api/proxyengine/revisions/${number}`;
    const { data, error } = useRead<RevisionDetail>(path);
    const restore = async (): Promise<void> => {
        const question = t('Bring all hosts back to how they were at revision {number}?', { number });
        if (await confirm(question, t('Bring them back'))) {
            await call<{ changed: number }>('POST', `${path}/restore`).then(({ data: { changed } }) => {
                toast(
                    counted(
                        changed,
                        t('1 host was brought back'),
                        t('{count} hosts were brought back', { count: changed })
                    )
                );
                onClose();
            }, toastFailure);
            await queries.invalidateQueries();
        }
    };
    return (
        <Dialog title={t('Revision {number}', { number })} onClose={onClose} isWide>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                data.changes.map(({ id, before, after }) => (
                    <section key={id}>
                        <h3>
                            {String((after ?? before)?.['domain'] ?? id)}{' '}
                            <Badge
                                text={before === null ? 'new' : after === null ? 'removed' : 'changed'}
                                tone={before === null ? 'good' : after === null ? 'bad' : 'busy'}
                            />
                        </h3>
                        <Differences before={before} after={after} />
                    </section>
                ))
            )}
            <footer>
                <Button onPress={onClose}>{t('Close')}</Button>
                {canRestore ? (
                    <Button look="danger" onPress={restore}>
                        {t('Bring the hosts back to this')}
                    </Button>
                ) : null}
            </footer>
        </Dialog>
    );
}

function byWhom({ by }: Revision): string {
    return by.map(({ username, plugin }) => username ?? plugin ?? t('the panel')).join(', ');
}
