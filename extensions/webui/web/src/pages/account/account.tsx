/** The user's own account: password, second factor, sessions and API tokens. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate, useMe, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Value } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import type { Schema } from '../../schema/schema.ts';
import { browserOf } from '../../words/browser.ts';
import { t } from '../../words/t.ts';
import { NewToken } from './new-token.tsx';
import { PasswordForm } from './password.tsx';
import { TotpRemoval, TotpSetup } from './totp.tsx';

interface Session {
    readonly id: number;
    readonly lastSeenAt: string;
    readonly ip: string;
    readonly userAgent: string | null;
    readonly current: boolean;
}
interface Token {
    readonly id: number;
    readonly name: string;
    readonly permissions: readonly string[];
    readonly expiresAt: string | null;
    readonly lastUsedAt: string | null;
}

const time: Schema = { type: 'string', format: 'date-time' };

/** Shows the screen of the user's own account. */
export default function Account() {
    const me = useMe();
    return (
        <Page title={t('Your account')} lead={me === undefined ? '' : `${me.username} · ${me.role}`}>
            <div class="columns">
                <section class="card">
                    <h2>{t('Password')}</h2>
                    <PasswordForm />
                </section>
                <SecondFactor isOn={me?.totpEnabled === true} />
            </div>
            <Sessions />
            <Tokens />
        </Page>
    );
}

function SecondFactor({ isOn }: { readonly isOn: boolean }) {
    // What was opened stays: the recovery codes are shown when the factor is on already.
    const [opened, setOpened] = useState<'setup' | 'removal' | null>(null);
    const close = (): void => {
        setOpened(null);
        void invalidate('/api/auth');
    };
    return (
        <section class="card">
            <h2>{t('Second factor')}</h2>
            <p>
                {isOn
                    ? t('It is on: a login needs a code of your app.')
                    : t('It is off: a password alone lets you in.')}
            </p>
            <Button look={isOn ? 'plain' : 'primary'} onPress={() => setOpened(isOn ? 'removal' : 'setup')}>
                {isOn ? t('Switch off') : t('Switch on')}
            </Button>
            {opened === null ? null : (
                <Dialog title={t('Second factor')} onClose={close}>
                    {opened === 'removal' ? <TotpRemoval onDone={close} /> : <TotpSetup onDone={close} />}
                </Dialog>
            )}
        </section>
    );
}

function Sessions() {
    const { data, error } = useRead<readonly Session[]>('/api/auth/sessions');
    const end = async (id: number): Promise<void> => {
        if (await confirm(t('End this session?'))) {
            await call('DELETE', `/api/auth/sessions/${id}`).catch(toastFailure);
            await invalidate('/api/auth');
        }
    };
    return (
        <section>
            <h2>{t('Sessions')}</h2>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Sessions')}
                    rows={data}
                    keyOf={({ id }) => String(id)}
                    columns={[
                        {
                            key: 'agent',
                            title: t('Browser'),
                            cell: (row) => (
                                <span title={row.userAgent ?? undefined}>{browserOf(row.userAgent)}</span>
                            )
                        },
                        { key: 'ip', title: t('Address'), cell: (row) => row.ip },
                        {
                            key: 'seen',
                            title: t('Last seen'),
                            cell: (row) => <Value value={row.lastSeenAt} schema={time} />
                        }
                    ]}
                    actions={(row) =>
                        row.current ? t('this one') : <Button onPress={() => end(row.id)}>{t('End')}</Button>
                    }
                />
            )}
        </section>
    );
}

function Tokens() {
    const { data, error } = useRead<readonly Token[]>('/api/auth/tokens');
    const [isOpen, setOpen] = useState(false);
    const remove = async ({ id, name }: Token): Promise<void> => {
        if (await confirm(t('End {name}? What uses it loses its access at once.', { name }), t('End it'))) {
            await call('DELETE', `/api/auth/tokens/${id}`).catch(toastFailure);
            await invalidate('/api/auth');
        }
    };
    return (
        <section>
            <header class="row spread">
                <h2>{t('API tokens')}</h2>
                <Button look="primary" onPress={() => setOpen(true)}>
                    {t('New token')}
                </Button>
            </header>
            {isOpen ? <NewToken onClose={() => setOpen(false)} /> : null}
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('API tokens')}
                    rows={data}
                    keyOf={({ id }) => String(id)}
                    columns={[
                        { key: 'name', title: t('Name'), cell: (row) => row.name },
                        {
                            key: 'permissions',
                            title: t('May'),
                            cell: (row) => <span class="clip">{row.permissions.join(', ')}</span>
                        },
                        {
                            key: 'used',
                            title: t('Last used'),
                            cell: (row) => <Value value={row.lastUsedAt} schema={time} />
                        },
                        {
                            key: 'expires',
                            title: t('Ends'),
                            cell: (row) => <Value value={row.expiresAt} schema={time} />
                        }
                    ]}
                    actions={(row) => <Button onPress={() => remove(row)}>{t('End')}</Button>}
                />
            )}
        </section>
    );
}
