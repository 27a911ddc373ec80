/** A server of databases: its databases, their tables, and the console. */
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { useQueryValue } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { Console } from './console.tsx';
import { base, type Database, type Server } from './database-view.ts';

/** Shows the screen of one database server. */
export default function ServerPage({ id }: { readonly id: string }) {
    const path = `${base}/servers/${encodeURIComponent(id)}`;
    const may = useMay();
    const { data: server, error } = useRead<Server>(path);
    const { data: databases, error: unread } = useRead<readonly Database[]>(
        server?.state === 'online' ? `${path}/databases` : null
    );
    const [chosen, choose] = useQueryValue('db');
    const database =
        databases?.find(({ name }) => name === chosen) ??
        databases?.find((each) => !each.system) ??
        databases?.[0];
    return (
        <Page
            title={server?.name ?? t('Server')}
            lead={<Link href="/database">← {t('Databases')}</Link>}
            actions={
                <Link class="button" href={`/p/database?list=database.servers&id=${encodeURIComponent(id)}`}>
                    {t('All of the server')}
                </Link>
            }
        >
            {server !== undefined && server.state !== 'online' ? (
                <p class="notice">{server.message ?? t('The server does not answer.')}</p>
            ) : server === undefined || databases === undefined ? (
                <Waiting error={error ?? unread} />
            ) : (
                <>
                    <div class="row filters">
                        <label class="filter">
                            <span>{t('Database')}</span>
                            <select
                                value={database?.name ?? ''}
                                onChange={(event) => choose(event.currentTarget.value)}
                            >
                                {databases.map(({ name, sizeBytes }) => (
                                    <option key={name} value={name}>
                                        {name} · {quantity(sizeBytes, 'byte')}
                                    </option>
                                ))}
                            </select>
                        </label>
                    </div>
                    {database === undefined ? (
                        <p class="empty">{t('No database yet')}</p>
                    ) : may('database:query') ? (
                        <Console key={database.name} server={server} path={path} database={database.name} />
                    ) : (
                        <p class="notice">{t('Your role may not read what is in databases.')}</p>
                    )}
                </>
            )}
        </Page>
    );
}
