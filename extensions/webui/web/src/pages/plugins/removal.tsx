/** Uninstalling a plugin: the user chooses what happens to its data. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { queries } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { t } from '../../words/t.ts';
import type { PluginView } from './plugin-view.ts';

/** The button with its question. */
export function Removal({ plugin: { name, title } }: { readonly plugin: PluginView }) {
    const [isOpen, setOpen] = useState(false);
    const [purges, setPurges] = useState(false);
    const [, navigate] = useLocation();
    const remove = async (): Promise<void> => {
        try {
            await call('DELETE', `/api/plugins/${name}`, { query: purges ? { purge: true } : {} });
            toast(t('Removed: {name}', { name: title }));
            navigate('/plugins');
        } catch (error) {
            toastFailure(error);
        }
        setOpen(false);
        await queries.invalidateQueries();
    };
    return (
        <>
            <Button look="danger" onPress={() => setOpen(true)}>
                {t('Uninstall')}
            </Button>
            {isOpen ? (
                <Dialog title={t('Uninstall {title}?', { title })} onClose={() => setOpen(false)}>
                    <p>
                        {t(
                            'Its routes and pages go. Its data and settings stay for a later install, unless you delete them now.'
                        )}
                    </p>
                    <label class="inline">
                        <input
                            type="checkbox"
                            checked={purges}
                            onChange={(event) => setPurges(event.currentTarget.checked)}
                        />
                        {t('Delete its data and settings for ever')}
                    </label>
                    <footer>
                        <Button onPress={() => setOpen(false)}>{t('Cancel')}</Button>
                        <Button look="danger" onPress={remove}>
                            {t('Uninstall')}
                        </Button>
                    </footer>
                </Dialog>
            ) : null}
        </>
    );
}
