/** How to connect an agent: the address, what its client is set up with, a token for it, and which ones are connected. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useMay, useMe, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Value } from '../../kit/display/value.tsx';
import { useQueryValue } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { NewToken } from '../account/new-token.tsx';

interface Status {
    readonly url: string;
    readonly mode: 'read' | 'write';
    readonly tools: number;
    readonly pendingApprovals: number;
}
interface Client {
    readonly id: string;
    readonly title: string;
    /** Null: a command. */
    readonly file: string | null;
    readonly text: string;
}
interface Session {
    readonly id: string;
    readonly username: string;
    readonly client: string | null;
    readonly lastSeenAt: string;
}

const base = '/api/plugins/mcpserver';
/** What stands for the token in the text of a client. */
const placeholder = '${PORTICO_TOKEN}';

/** Shows the screen *Agents*: the programs that use the panel for a user. */
export default function Agents() {
    const { data: status, error } = useRead<Status>(`${base}/status`);
    const may = useMay();
    return (
        <Page
            title={t('Agents')}
            lead={t('Connect your own agent: an editor, a desktop client, a pipeline.')}
            actions={
                <Link class="button" href="/p/mcpserver">
                    {t('Tools, approvals and calls')}
                </Link>
            }
        >
            {status === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <Address status={status} />
                    {may('mcpserver:use') ? (
                        <>
                            <Setup />
                            <Connected />
                        </>
                    ) : null}
                </>
            )}
        </Page>
    );
}

function Address({ status: { url, mode, tools, pendingApprovals } }: { readonly status: Status }) {
    return (
        <section class="card">
            <h2>{t('Address')}</h2>
            <p class="row">
                <code>{url}</code>
                <CopyButton text={url} />
            </p>
            <p>{t('A client that speaks OAuth needs nothing else: it asks you for your consent here.')}</p>
            <p class="dim">
                {mode === 'read'
                    ? t('{tools} tools; agents only read.', { tools })
                    : t('{tools} tools; agents may propose changes.', { tools })}{' '}
                {mode === 'read' ? <Link href="/plugins/mcpserver?tab=settings">{t('Settings')}</Link> : null}
            </p>
            {pendingApprovals === 0 ? null : (
                <p class="notice">
                    <Link href="/p/mcpserver?list=mcpserver.approvals">
                        {t('Changes wait for your approval: {count}', { count: pendingApprovals })}
                    </Link>
                </p>
            )}
        </section>
    );
}

/** What one client is set up with. The token stands in it once it was made, and is gone with the page. */
function Setup() {
    const { data, error } = useRead<readonly Client[]>(`${base}/clients`);
    const own = useMe()?.permissions ?? [];
    const [wanted, setWanted] = useQueryValue('client');
    const [isAsking, setAsking] = useState(false);
    const [token, setToken] = useState<string | null>(null);
    const client = data?.find(({ id }) => id === wanted) ?? data?.[0];
    if (data === undefined || client === undefined) {
        return <Waiting error={error} />;
    }
    const text = client.text.replaceAll(placeholder, token ?? placeholder);
    return (
        <section class="card">
            <h2>{t('Set up your client')}</h2>
            <label class="field">
                <span>{t('Client')}</span>
                <select value={client.id} onChange={(event) => setWanted(event.currentTarget.value)}>
                    {data.map(({ id, title }) => (
                        <option key={id} value={id}>
                            {title}
                        </option>
                    ))}
                </select>
            </label>
            <div class="row spread">
                <span>
                    {client.file === null ? (
                        t('Run this command')
                    ) : (
                        <>
                            {t('Write this to')} <code>{client.file}</code>
                        </>
                    )}
                </span>
                <CopyButton text={text} />
            </div>
            <pre tabIndex={0} aria-label={client.title}>
                {text}
            </pre>
            {text.includes('PORTICO_TOKEN') ? (
                <p class="dim">
                    {t('Keep the token in the environment variable PORTICO_TOKEN of the client.')}
                </p>
            ) : null}
            <Button look="primary" onPress={() => setAsking(true)}>
                {t('Make a token for it')}
            </Button>
            {isAsking ? (
                <NewToken
                    suggested={{
                        name: client.title,
                        permissions: own.filter((name) => name === 'mcpserver:use' || name.endsWith(':read'))
                    }}
                    onMade={setToken}
                    onClose={() => setAsking(false)}
                />
            ) : null}
        </section>
    );
}

function Connected() {
    const { data, error } = useRead<readonly Session[]>(`${base}/sessions`);
    return (
        <section>
            <h2>{t('Connected now')}</h2>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Connected now')}
                    rows={data}
                    icon="bot"
                    empty={t(
                        'No agent is connected. Those of the newest protocol keep no session: look at the calls.'
                    )}
                    keyOf={({ id }) => id}
                    columns={[
                        { key: 'client', title: t('Client'), cell: (row) => row.client ?? '–' },
                        { key: 'username', title: t('User'), cell: (row) => row.username },
                        {
                            key: 'seen',
                            title: t('Last seen'),
                            cell: (row) => (
                                <Value
                                    value={row.lastSeenAt}
                                    schema={{ type: 'string', format: 'date-time' }}
                                />
                            )
                        }
                    ]}
                />
            )}
        </section>
    );
}
