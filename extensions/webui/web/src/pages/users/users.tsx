/** Users, and what their roles may do. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { carryOut } from '../../kit/dialogs/carry-out.ts';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Menu } from '../../kit/menu.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { Roles } from './roles.tsx';
import { UserDialog } from './user-dialog.tsx';
import type { UserView } from './user-view.ts';

/** Shows the screen *Users*: users and roles. */
export default function Users() {
    const may = useMay();
    const canWrite = may('users:write');
    const [isOpen, setOpen] = useState(false);
    const tabs = [
        { id: 'users', title: t('Users') },
        { id: 'roles', title: t('Roles') }
    ];
    const tab = useTab(tabs);
    return (
        <Page
            title={t('Users')}
            lead={t('Each user has one role; the role says what the user may do.')}
            actions={
                canWrite && tab === 'users' ? (
                    <Button look="primary" onPress={() => setOpen(true)}>
                        <Icon name="plus" />
                        {t('New user')}
                    </Button>
                ) : null
            }
        >
            <Tabs label={t('Users')} tabs={tabs} />
            {tab === 'roles' ? <Roles canWrite={canWrite} /> : <UserTable canWrite={canWrite} />}
            {isOpen ? <UserDialog user={null} onClose={() => setOpen(false)} /> : null}
        </Page>
    );
}

function UserTable({ canWrite }: { readonly canWrite: boolean }) {
    const { data, error } = useRead<readonly UserView[]>('/api/users');
    return data === undefined ? (
        <Waiting error={error} />
    ) : (
        <Table
            caption={t('Users')}
            rows={data}
            icon="users"
            keyOf={({ id }) => String(id)}
            columns={[
                { key: 'username', title: t('Name'), cell: (row) => <strong>{row.username}</strong> },
                { key: 'role', title: t('Role'), cell: (row) => <span class="tag">{t(row.role)}</span> },
                { key: 'state', title: t('State'), cell: (row) => <State user={row} /> },
                {
                    key: 'totp',
                    title: t('Second factor'),
                    cell: (row) => (row.totpEnabled ? t('On') : <span class="dim">{t('Off')}</span>)
                },
                {
                    key: 'login',
                    title: t('Last login'),
                    cell: (row) => <Value value={row.lastLoginAt} schema={{ format: 'date-time' }} />
                }
            ]}
            {...(canWrite ? { actions: (row: UserView) => <UserMenu user={row} /> } : {})}
        />
    );
}

function State({ user: { disabled, mustChangePassword } }: { readonly user: UserView }) {
    return disabled ? (
        <Badge text="disabled" />
    ) : mustChangePassword ? (
        <Badge text="must change the password" tone="warning" />
    ) : (
        <Badge text="active" />
    );
}

function UserMenu({ user }: { readonly user: UserView }) {
    const { id, username, disabled, totpEnabled } = user;
    const [isOpen, setOpen] = useState(false);
    const path = `/api/users/${id}`;
    const ask = async (question: string, action: string, work: () => Promise<unknown>): Promise<void> => {
        if (await confirm(question, action)) {
            await carryOut(action, '/api/users', work);
        }
    };
    const setDisabled = (): Promise<void> =>
        call('PUT', path, { body: { disabled: !disabled } })
            .then(() => invalidate('/api/users'))
            .catch(toastFailure);
    return (
        <>
            <Menu label={t('Actions for {name}', { name: username })}>
                <Button onPress={() => setOpen(true)}>{t('Change')}</Button>
                <Button onPress={setDisabled}>{disabled ? t('Enable') : t('Disable')}</Button>
                <Button
                    onPress={() =>
                        ask(t('End all sessions of {name}?', { name: username }), t('End the sessions'), () =>
                            call('DELETE', `${path}/sessions`)
                        )
                    }
                >
                    {t('End the sessions')}
                </Button>
                {totpEnabled ? (
                    <Button
                        onPress={() =>
                            ask(
                                t('Take the second factor of {name} away? The password alone lets in then.', {
                                    name: username
                                }),
                                t('Take the second factor away'),
                                () => call('DELETE', `${path}/totp`)
                            )
                        }
                    >
                        {t('Take the second factor away')}
                    </Button>
                ) : null}
                <Button
                    look="danger"
                    onPress={() =>
                        ask(t('Remove the user {name}?', { name: username }), t('Remove'), () =>
                            call('DELETE', path)
                        )
                    }
                >
                    {t('Remove')}
                </Button>
            </Menu>
            {isOpen ? <UserDialog user={user} onClose={() => setOpen(false)} /> : null}
        </>
    );
}
