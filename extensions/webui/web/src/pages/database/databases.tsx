/** The servers of databases. */
import { Link } from 'wouter-preact';

import { useRead } from '../../api/queries.ts';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { base, type Server } from './database-view.ts';

const tones = { online: 'good', offline: 'bad' } as const;

/** Shows the screen *Databases*: all servers. */
export default function Databases() {
    const { data, error } = useRead<readonly Server[]>(`${base}/servers`);
    return (
        <Page
            title={t('Databases')}
            lead={t('Servers, what is in them, and a console for statements.')}
            actions={
                <Link class="button" href="/p/database">
                    {t('Servers, accounts and dumps')}
                </Link>
            }
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Servers')}
                    rows={data}
                    icon="database"
                    empty={t('No server is here yet: register one that runs, or let the panel run one.')}
                    firstStep={
                        <Link class="button primary" href="/p/database">
                            {t('Add one')}
                        </Link>
                    }
                    keyOf={({ id }) => String(id)}
                    columns={[
                        {
                            key: 'name',
                            title: t('Name'),
                            cell: ({ id, name }) => <Link href={`/database/${id}`}>{name}</Link>
                        },
                        {
                            key: 'state',
                            title: t('State'),
                            cell: ({ state }) => (
                                <Badge text={state} tone={tones[state as keyof typeof tones]} />
                            )
                        },
                        {
                            key: 'kind',
                            title: t('Kind'),
                            cell: ({ kind, serverVersion }) => `${kind} ${serverVersion ?? ''}`
                        }
                    ]}
                />
            )}
        </Page>
    );
}
