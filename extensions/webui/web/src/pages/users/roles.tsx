/** Roles as a matrix: a row for each permission, in groups by area and plugin; a column for each role. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { useTitles } from '../../api/document.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Waiting } from '../../kit/page.tsx';
import { filled } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';
import type { PermissionView, RoleView } from './user-view.ts';

/** What was ticked and is not saved yet, by the name of the role. */
type Draft = Readonly<Record<string, ReadonlySet<string>>>;

/** The matrix, and new roles. */
export function Roles({ canWrite }: { readonly canWrite: boolean }) {
    const { data: roles, error } = useRead<readonly RoleView[]>('/api/users/roles');
    const { data: permissions } = useRead<readonly PermissionView[]>('/api/users/permissions');
    const [draft, setDraft] = useState<Draft>({});
    const [isOpen, setOpen] = useState(false);
    if (roles === undefined || permissions === undefined) {
        return <Waiting error={error} />;
    }
    const given = (role: RoleView): ReadonlySet<string> => draft[role.name] ?? new Set(role.permissions);
    const toggle = (role: RoleView, permission: string): void => {
        const next = new Set(given(role));
        if (!next.delete(permission)) {
            next.add(permission);
        }
        setDraft({ ...draft, [role.name]: next });
    };
    return (
        <>
            <div class="row spread">
                <p class="dim">{t('The first three roles are fixed. Your own are a set of permissions.')}</p>
                {canWrite ? (
                    <Button onPress={() => setOpen(true)}>
                        <Icon name="plus" />
                        {t('New role')}
                    </Button>
                ) : null}
            </div>
            <Matrix
                roles={roles}
                permissions={permissions}
                given={given}
                canWrite={canWrite}
                onToggle={toggle}
            />
            <Drafts draft={draft} roles={roles} onDone={() => setDraft({})} />
            {isOpen ? <NewRole onClose={() => setOpen(false)} /> : null}
        </>
    );
}

function Matrix({
    roles,
    permissions,
    given,
    canWrite,
    onToggle
}: {
    readonly roles: readonly RoleView[];
    readonly permissions: readonly PermissionView[];
    readonly given: (role: RoleView) => ReadonlySet<string>;
    readonly canWrite: boolean;
    readonly onToggle: (role: RoleView, permission: string) => void;
}) {
    const may = useMay();
    const titleOf = useTitles();
    const areas = Map.groupBy(permissions, ({ name }) => name.split(':')[0] ?? '');
    return (
        <div class="scroll matrix" role="region" aria-label={t('Permissions of the roles')} tabIndex={0}>
            <table>
                <caption class="offscreen">{t('Permissions of the roles')}</caption>
                <thead>
                    <tr>
                        <th scope="col">{t('Permission')}</th>
                        {roles.map((role) => (
                            <th key={role.name} scope="col">
                                <RoleHead role={role} canWrite={canWrite} />
                            </th>
                        ))}
                    </tr>
                </thead>
                {[...areas].map(([area, members]) => (
                    <tbody key={area}>
                        <tr>
                            <th scope="rowgroup" colSpan={roles.length + 1}>
                                {titleOf(area)}
                                {members[0]?.plugin === null ? null : <span class="tag">{t('plugin')}</span>}
                            </th>
                        </tr>
                        {members.map(({ name, title, dangerous }) => (
                            <tr key={name}>
                                <th scope="row">
                                    <span>{t(title)}</span>
                                    <small>
                                        {name}
                                        {dangerous ? <span class="warning"> {t('far-reaching')}</span> : null}
                                    </small>
                                </th>
                                {roles.map((role) => (
                                    <td key={role.name}>
                                        <input
                                            type="checkbox"
                                            aria-label={`${t(role.name)}: ${name}`}
                                            checked={given(role).has(name)}
                                            // A permission that one does not have cannot be given.
                                            disabled={role.fixed || !canWrite || !may(name)}
                                            onChange={() => onToggle(role, name)}
                                        />
                                    </td>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                ))}
            </table>
        </div>
    );
}

function RoleHead({
    role: { name, fixed },
    canWrite
}: {
    readonly role: RoleView;
    readonly canWrite: boolean;
}) {
    const remove = async (): Promise<void> => {
        if (await confirm(t('Remove the role {name}?', { name }), t('Remove'))) {
            await call('DELETE', `/api/users/roles/${encodeURIComponent(name)}`).catch(toastFailure);
            await invalidate('/api/users');
        }
    };
    return (
        <span class="row">
            {t(name)}
            {fixed || !canWrite ? null : (
                <Button look="quiet" label={t('Remove the role {name}', { name })} onPress={remove}>
                    <Icon name="close" />
                </Button>
            )}
        </span>
    );
}

/** The bar that saves what was ticked. */
function Drafts({
    draft,
    roles,
    onDone
}: {
    readonly draft: Draft;
    readonly roles: readonly RoleView[];
    readonly onDone: () => void;
}) {
    const names = Object.keys(draft);
    const save = async (): Promise<void> => {
        try {
            for (const name of names) {
                await call('PUT', `/api/users/roles/${encodeURIComponent(name)}`, {
                    body: { permissions: [...(draft[name] ?? [])] },
                    version: roles.find((role) => role.name === name)?.version
                });
            }
            toast(t('Saved'));
            onDone();
        } catch (error) {
            toastFailure(error);
        }
        await invalidate('/api/users');
    };
    return names.length === 0 ? null : (
        <div class="save-bar row">
            <p>{t('Changed and not saved: {names}', { names: names.join(', ') })}</p>
            <Button onPress={onDone}>{t('Undo')}</Button>
            <Button look="primary" onPress={save}>
                {t('Save')}
            </Button>
        </div>
    );
}

function NewRole({ onClose }: { readonly onClose: () => void }) {
    return (
        <Dialog title={t('New role')} onClose={onClose}>
            <SchemaForm
                schema={{
                    properties: {
                        name: { type: 'string', title: t('Name'), examples: ['deployers'] },
                        description: { type: 'string', title: t('What it is for') }
                    },
                    required: ['name']
                }}
                initial={{}}
                action={t('Make the role')}
                onCancel={onClose}
                onSend={async (value) => {
                    await call('POST', '/api/users/roles', { body: { ...filled(value), permissions: [] } });
                    await invalidate('/api/users');
                    onClose();
                }}
            />
        </Dialog>
    );
}
