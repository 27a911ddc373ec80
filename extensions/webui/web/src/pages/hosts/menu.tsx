/** What can be done with one host: in its row of the list, and on its own screen. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Menu } from '../../kit/menu.tsx';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';

interface HostName {
    readonly id: number;
    readonly domain: string;
    readonly enabled: boolean;
}

/** Shows the menu of actions on one host. */
export function HostMenu({ host }: { readonly host: HostName }) {
    const { id, domain, enabled } = host;
    const [isCopying, setCopying] = useState(false);
    const [location, navigate] = useLocation();
    const change = async (work: Promise<unknown>, text: string): Promise<void> => {
        await work.then(() => toast(text), toastFailure);
        await invalidate('/api/hosts');
    };
    const remove = async (): Promise<void> => {
        if (await confirm(t('Remove {name}? It is no longer served.', { name: domain }), t('Remove'))) {
            await change(call('DELETE', `/api/hosts/${id}`), t('Removed: {name}', { name: domain }));
            if (location !== '/hosts') {
                navigate('/hosts');
            }
        }
    };
    return (
        <>
            <Menu label={t('Actions for {name}', { name: domain })}>
                <Button
                    onPress={() =>
                        change(
                            call('PUT', `/api/hosts/${id}`, { body: { enabled: !enabled } }),
                            enabled
                                ? t('Disabled: {name}', { name: domain })
                                : t('Enabled: {name}', { name: domain })
                        )
                    }
                >
                    {enabled ? t('Disable') : t('Enable')}
                </Button>
                <Button onPress={() => setCopying(true)}>{t('Copy as …')}</Button>
                <Button look="danger" onPress={remove}>
                    {t('Remove')}
                </Button>
            </Menu>
            {isCopying ? <Copy host={host} onClose={() => setCopying(false)} /> : null}
        </>
    );
}

function Copy({ host: { id, domain }, onClose }: { readonly host: HostName; readonly onClose: () => void }) {
    const [, navigate] = useLocation();
    return (
        <Dialog title={t('Copy {name}', { name: domain })} onClose={onClose}>
            <SchemaForm
                schema={{
                    properties: {
                        domain: {
                            type: 'string',
                            title: t('Name of the copy'),
                            description: t('Everything else is as it is here; aliases are left out.')
                        }
                    },
                    required: ['domain']
                }}
                initial={{}}
                action={t('Copy')}
                onCancel={onClose}
                onSend={async (body) => {
                    const { data } = await call<{ id: number }>('POST', `/api/hosts/${id}/clone`, { body });
                    await invalidate('/api/hosts');
                    navigate(`/hosts/${data.id}`);
                    onClose();
                }}
            />
        </Dialog>
    );
}
