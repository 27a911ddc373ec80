/** Projects, and the timeline of the releases of one: what serves, what served before, and why something does not. */
import { Link } from 'wouter-preact';

import { useRead } from '../../api/queries.ts';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { base, type Project, tones } from './deploy-view.ts';

/** The screen of all projects. */
export default function Deploy() {
    const { data, error } = useRead<readonly Project[]>(`${base}/projects`);
    return (
        <Page
            title={t('Deployments')}
            lead={t('From a commit to a release that serves.')}
            actions={
                <Link class="button" href="/p/deploy">
                    {t('Projects, variables and connections')}
                </Link>
            }
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Projects')}
                    rows={data}
                    icon="rocket"
                    empty={t('No project yet: it says which repository is served at which host.')}
                    firstStep={
                        <Link class="button primary" href="/p/deploy">
                            {t('Make one')}
                        </Link>
                    }
                    keyOf={({ id }) => String(id)}
                    columns={[
                        {
                            key: 'name',
                            title: t('Name'),
                            cell: ({ id, name }) => <Link href={`/deploy/${id}`}>{name}</Link>
                        },
                        {
                            key: 'state',
                            title: t('State'),
                            cell: ({ state }) => <Badge text={state} tone={tones[state]} />
                        },
                        {
                            key: 'host',
                            title: t('Host'),
                            cell: ({ hostId }) =>
                                hostId === null ? (
                                    <span class="dim">–</span>
                                ) : (
                                    <Link href={`/hosts/${hostId}`}>{t('Host {id}', { id: hostId })}</Link>
                                )
                        }
                    ]}
                />
            )}
        </Page>
    );
}
