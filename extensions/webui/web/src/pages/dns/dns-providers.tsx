/** DNS providers: what proves that names are the admin's, each with the form of its type. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { base, type Provider, type ProviderType } from './dns-view.ts';
import { ProviderDialog } from './provider-dialog.tsx';
import { TestDialog } from './test-dialog.tsx';

/** Shows the screen *DNS providers*. */
export default function DnsProviders() {
    const { data: providers, error } = useRead<readonly Provider[]>(base);
    const { data: types = [] } = useRead<readonly ProviderType[]>(`${base}/types`);
    const canWrite = useMay()('dns:write');
    const [changing, setChanging] = useState<Provider | 'new' | null>(null);
    const [testing, setTesting] = useState<Provider | null>(null);
    const add = canWrite ? (
        <Button look="primary" onPress={() => setChanging('new')}>
            <Icon name="plus" />
            {t('New provider')}
        </Button>
    ) : null;
    return (
        <Page
            title={t('DNS providers')}
            lead={t('They prove that a name is yours, by a record that the panel writes for a moment.')}
            actions={add}
        >
            {providers === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('DNS providers')}
                    rows={providers}
                    icon="compass"
                    empty={t('No provider yet. Certificates for `*.example.com` need one.').replaceAll(
                        '`',
                        ''
                    )}
                    firstStep={add}
                    keyOf={({ id }) => String(id)}
                    columns={[
                        {
                            key: 'name',
                            title: t('Name'),
                            cell: ({ name, isDefault }) => (
                                <span class="row compact">
                                    <strong>{name}</strong>
                                    {isDefault ? <Badge text={t('default')} tone="good" /> : null}
                                </span>
                            )
                        },
                        {
                            key: 'type',
                            title: t('Type'),
                            cell: ({ type }) => types.find((each) => each.type === type)?.label ?? type
                        },
                        { key: 'usedBy', title: t('Used by'), cell: ({ usedBy }) => <Users ids={usedBy} /> }
                    ]}
                    {...(canWrite
                        ? {
                              actions: (row: Provider) => (
                                  <div class="row">
                                      <Button onPress={() => setTesting(row)}>{t('Test')}</Button>
                                      <Button onPress={() => setChanging(row)}>{t('Change')}</Button>
                                      <Button look="danger" onPress={() => remove(row)}>
                                          {t('Remove')}
                                      </Button>
                                  </div>
                              )
                          }
                        : {})}
                />
            )}
            {changing === null || types.length === 0 ? null : (
                <ProviderDialog
                    provider={changing === 'new' ? null : changing}
                    types={types}
                    onClose={() => setChanging(null)}
                />
            )}
            {testing === null ? null : <TestDialog provider={testing} onClose={() => setTesting(null)} />}
        </Page>
    );
}

function Users({ ids }: { readonly ids: readonly number[] }) {
    return ids.length === 0 ? (
        <span class="dim">{t('no certificate')}</span>
    ) : (
        <span class="row compact">
            {ids.map((id) => (
                <Link key={id} href={`/certificates/${id}`}>
                    {t('Certificate {id}', { id })}
                </Link>
            ))}
        </span>
    );
}

async function remove({ id, name, version }: Provider): Promise<void> {
    if (await confirm(t('Remove {name}?', { name }), t('Remove'))) {
        await call('DELETE', `${base}/${id}`, { version }).catch(toastFailure);
        await invalidate(base);
    }
}
