/** What was sent over a channel, how it went, and sending it again. */
import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';

/** One message and how its sending goes. */
export interface Delivery {
    readonly n: number;
    readonly event: string;
    readonly title: string;
    readonly state: 'pending' | 'delivered' | 'failed';
    readonly attempts: number;
    readonly createdAt: string;
    readonly nextAttemptAt: string | null;
    readonly status: number | null;
    readonly error: string | null;
}

/** Shows the deliveries of one channel; `canReplay` adds the button that sends one again. */
export function Deliveries({
    channel,
    canReplay
}: {
    readonly channel: number;
    readonly canReplay: boolean;
}) {
    const path = `/api/settings/channels/${channel}/deliveries`;
    const { rows, error, isPending, more } = useRows<Delivery>(path, { limit: 20 });
    const replay = async (n: number): Promise<void> => {
        await call('POST', `${path}/${n}/replay`).then(() => toast(t('It is on its way')), toastFailure);
        await invalidate(path);
    };
    if (isPending || (error !== null && rows.length === 0)) {
        return <Waiting error={error} />;
    }
    return (
        <>
            <Table
                caption={t('What was sent')}
                rows={rows}
                icon="bell"
                empty={t('Nothing was sent yet')}
                keyOf={({ n }) => String(n)}
                columns={[
                    {
                        key: 'title',
                        title: t('Message'),
                        cell: (row) => (
                            <span>
                                {row.title} <small>{row.event}</small>
                            </span>
                        )
                    },
                    {
                        key: 'state',
                        title: t('State'),
                        cell: (row) => (
                            <span title={row.error ?? undefined}>
                                <Badge
                                    text={row.state}
                                    tone={row.state === 'delivered' ? 'good' : undefined}
                                />{' '}
                                {row.error === null ? null : <small>{row.error}</small>}
                            </span>
                        )
                    },
                    { key: 'attempts', title: t('Tries'), cell: (row) => row.attempts },
                    {
                        key: 'at',
                        title: t('When'),
                        cell: (row) => <Value value={row.createdAt} schema={{ format: 'date-time' }} />
                    },
                    {
                        key: 'next',
                        title: t('Next try'),
                        cell: (row) => <Value value={row.nextAttemptAt} schema={{ format: 'date-time' }} />
                    }
                ]}
                {...(canReplay
                    ? {
                          actions: (row: Delivery) => (
                              <Button onPress={() => replay(row.n)}>{t('Send again')}</Button>
                          )
                      }
                    : {})}
            />
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
        </>
    );
}
