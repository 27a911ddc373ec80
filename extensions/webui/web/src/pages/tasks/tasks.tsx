/** Long work: what is under way, what has ended, and how. */
import { useSearchParams } from 'wouter-preact';

import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { FilterChoice } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { inWords } from '../../schema/schema.ts';
import { showTask } from '../../shell/tasks.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';

interface Task {
    readonly id: number;
    readonly kind: string;
    readonly title: string;
    readonly state: string;
    readonly progress: number | null;
    readonly createdAt: string;
    readonly actor: { readonly username: string | null; readonly plugin: string | null };
    readonly startedAt: string | null;
    readonly finishedAt: string | null;
    readonly error: { readonly message?: string } | null;
}

/** Shows the screen *Tasks*, with its filters in the address. */
export default function Tasks() {
    const [search] = useSearchParams();
    const filters = Object.fromEntries([...search].filter(([, value]) => value !== ''));
    const { rows, error, isPending, more } = useRows<Task>('/api/tasks', filters);
    return (
        <Page title={t('Tasks')} lead={t('Work that takes longer than a moment. It goes on when you leave.')}>
            <div class="row filters" role="search">
                <FilterChoice
                    name="state"
                    title={t('State')}
                    values={['queued', 'running', 'succeeded', 'failed', 'cancelled']}
                />
            </div>
            {isPending || (error !== null && rows.length === 0) ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Tasks')}
                    rows={rows}
                    icon="tasks"
                    empty={t('No task yet')}
                    keyOf={({ id }) => String(id)}
                    columns={[
                        { key: 'title', title: t('Task'), cell: (row) => <Title task={row} /> },
                        { key: 'state', title: t('State'), cell: (row) => <State task={row} /> },
                        {
                            key: 'by',
                            title: t('Who'),
                            cell: (row) => row.actor.username ?? row.actor.plugin ?? t('the panel')
                        },
                        {
                            key: 'at',
                            title: t('When'),
                            cell: (row) => <Value value={row.createdAt} schema={{ format: 'date-time' }} />
                        },
                        { key: 'took', title: t('Took'), cell: (row) => took(row) }
                    ]}
                    actions={(row) => <Button onPress={() => showTask(row.id)}>{t('Follow')}</Button>}
                />
            )}
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
        </Page>
    );
}

function Title({ task: { title, kind, error } }: { readonly task: Task }) {
    return (
        <span>
            <strong>{title === '' ? inWords(kind) : title}</strong>
            {error?.message === undefined ? null : <small class="failure"> {error.message}</small>}
        </span>
    );
}

function State({ task: { state, progress } }: { readonly task: Task }) {
    return (
        <span class="row">
            <Badge text={state} />
            {state === 'running' && progress !== null ? (
                <span class="number">{quantity(progress, 'ratio')}</span>
            ) : null}
        </span>
    );
}

function took({ startedAt, finishedAt }: Task): string {
    return startedAt === null || finishedAt === null
        ? '–'
        : quantity((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000, 'second');
}
