/** A new user, or a change of one. */
import { call } from '../../api/client.ts';
import { invalidate, useRead } from '../../api/queries.ts';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { changed, filled, initialValue } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import type { RoleView, UserView } from './user-view.ts';

/** The dialog. @param user - null for a new one */
export function UserDialog({
    user,
    onClose
}: {
    readonly user: UserView | null;
    readonly onClose: () => void;
}) {
    const { data: roles } = useRead<readonly RoleView[]>('/api/users/roles');
    if (roles === undefined) {
        return null;
    }
    const schema: Schema = {
        properties: {
            username: { type: 'string', title: t('User name') },
            password: {
                type: 'string',
                format: 'password',
                title: user === null ? t('Password') : t('New password'),
                description: t('At least 10 characters')
            },
            role: {
                title: t('Role'),
                oneOf: roles.map(({ name, description }) => ({
                    const: name,
                    title: description === '' ? t(name) : `${t(name)} – ${t(description)}`
                }))
            },
            mustChangePassword: {
                type: 'boolean',
                title: t('Must choose another password at the first login'),
                default: user === null
            }
        },
        required: user === null ? ['username', 'password', 'role'] : ['username', 'role']
    };
    const before = user === null ? {} : { ...user };
    return (
        <Dialog
            title={user === null ? t('New user') : t('Change {name}', { name: user.username })}
            onClose={onClose}
        >
            <SchemaForm
                schema={schema}
                initial={user === null ? { role: 'viewer' } : initialValue(schema, before)}
                action={t('Save')}
                onCancel={onClose}
                onSend={async (value) => {
                    if (user === null) {
                        await call('POST', '/api/users', { body: filled(value) });
                    } else {
                        await call('PUT', `/api/users/${user.id}`, {
                            body: filled(changed(schema, before, value)),
                            version: user.version
                        });
                    }
                    toast(t('Saved'));
                    await invalidate('/api/users');
                    onClose();
                }}
            />
        </Dialog>
    );
}
