/** What was done, by whom, and what it changed. New entries come by the panel's events. */
import { useState } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { downloadFrom } from '../../api/download.ts';
import { useEntryWords } from '../../api/entry-words.ts';
import { useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Differences } from '../../kit/display/difference.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Json, Value } from '../../kit/display/value.tsx';
import { FilterChoice, FilterText } from '../../kit/forms/filter.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { fullTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';

interface Entry {
    readonly id: number;
    readonly at: string;
    readonly actor: {
        readonly username: string | null;
        readonly tokenId: number | null;
        readonly plugin: string | null;
    };
    readonly action: string;
    readonly resource: string;
    readonly resourceId: number | string | null;
    readonly outcome: 'success' | 'failure';
    readonly status: number | null;
    readonly code: number;
    readonly count: number;
    readonly ip: string | null;
    readonly userAgent: string | null;
    readonly requestId: string | null;
    readonly changes: Readonly<Record<string, unknown>> | null;
}

interface Names {
    readonly actions: readonly string[];
    readonly resources: readonly string[];
}

/** Shows the screen *Audit log*, with its filters in the address. */
export default function Audit() {
    const [search] = useSearchParams();
    const filters = Object.fromEntries([...search].filter(([, value]) => value !== ''));
    const { rows, error, isPending, more } = useRows<Entry>('/api/audit', filters);
    const { data: names } = useRead<Names>('/api/audit/names');
    const wordsOf = useEntryWords(rows);
    const [shown, setShown] = useState<Entry | null>(null);
    return (
        <Page
            title={t('Audit log')}
            lead={t('Every change, login and refusal. Entries are chained, so a missing one is noticed.')}
            actions={
                <>
                    <Button onPress={verify}>
                        <Icon name="shield" />
                        {t('Verify')}
                    </Button>
                    <Button onPress={() => downloadFrom('/api/audit/export', filters).catch(toastFailure)}>
                        <Icon name="download" />
                        {t('Export')}
                    </Button>
                </>
            }
        >
            <div class="row filters" role="search">
                <FilterText name="q" title={t('Search')} />
                <FilterText name="actor" title={t('Who')} />
                <FilterChoice name="action" title={t('Action')} values={names?.actions ?? []} />
                <FilterChoice name="resource" title={t('What')} values={names?.resources ?? []} />
                <FilterChoice name="outcome" title={t('Outcome')} values={['success', 'failure']} />
            </div>
            {isPending || (error !== null && rows.length === 0) ? (
                <Waiting error={error} />
            ) : (
                <Entries rows={rows} wordsOf={wordsOf} onShow={setShown} />
            )}
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
            {shown === null ? null : (
                <EntryDialog entry={shown} words={wordsOf(shown)} onClose={() => setShown(null)} />
            )}
        </Page>
    );
}

function Entries({
    rows,
    wordsOf,
    onShow
}: {
    readonly rows: readonly Entry[];
    readonly wordsOf: (entry: Entry) => string;
    readonly onShow: (entry: Entry) => void;
}) {
    return (
        <Table
            caption={t('Audit log')}
            rows={rows}
            icon="history"
            empty={t('No entry fits these filters')}
            keyOf={({ id }) => String(id)}
            columns={[
                {
                    key: 'at',
                    title: t('When'),
                    cell: (row) => <Value value={row.at} schema={{ format: 'date-time' }} />
                },
                { key: 'actor', title: t('Who'), cell: (row) => actorOf(row) },
                {
                    key: 'what',
                    title: t('What'),
                    cell: (row) => (
                        <span>
                            <strong>{wordsOf(row)}</strong>
                            {row.resourceId === null ? '' : ` ${row.resourceId}`}
                            {row.count > 1 ? <small> × {row.count}</small> : null}
                        </span>
                    )
                },
                { key: 'outcome', title: t('Outcome'), cell: (row) => <Badge text={row.outcome} /> },
                { key: 'ip', title: t('From'), cell: (row) => <span class="dim">{row.ip ?? '–'}</span> }
            ]}
            actions={(row) => (
                <Button label={t('Details of entry {id}', { id: row.id })} onPress={() => onShow(row)}>
                    {t('Details')}
                </Button>
            )}
        />
    );
}

function EntryDialog({
    entry,
    words,
    onClose
}: {
    readonly entry: Entry;
    readonly words: string;
    readonly onClose: () => void;
}) {
    const { id, at, action, resource, status, code, ip, userAgent, requestId, changes } = entry;
    const { before, after, ...others } = changes ?? {};
    const facts = [
        [t('When'), fullTime(at)],
        [t('Who'), actorOf(entry)],
        [t('Action'), `${action} ${resource}`],
        [t('Answer'), `${status ?? '–'} ${code === 0 ? '' : `(${code})`}`],
        [t('From'), ip],
        [t('Browser'), userAgent],
        [t('Request'), requestId]
    ] as const;
    return (
        <Dialog title={`${words} · ${id}`} onClose={onClose} isWide>
            <dl class="facts">
                {facts.map(([title, text]) => (
                    <div key={title}>
                        <dt>{title}</dt>
                        <dd>{text ?? '–'}</dd>
                    </div>
                ))}
            </dl>
            <h3>{t('What it changed')}</h3>
            <Differences before={before} after={after} />
            {Object.keys(others).length === 0 ? null : <Json value={others} />}
        </Dialog>
    );
}

async function verify(): Promise<void> {
    try {
        const { data } = await call<{ holds: boolean; entries: number; break: { message: string } | null }>(
            'GET',
            '/api/audit/verify'
        );
        if (data.holds) {
            toast(t('The chain of {count} entries holds', { count: data.entries }));
        } else {
            toastFailure(new Error(data.break?.message ?? t('The chain is broken')));
        }
    } catch (error) {
        toastFailure(error);
    }
}

function actorOf({ actor: { username, tokenId, plugin } }: Entry): string {
    const name = username ?? plugin ?? t('a stranger');
    return tokenId === null ? name : `${name} (${t('token {id}', { id: tokenId })})`;
}
