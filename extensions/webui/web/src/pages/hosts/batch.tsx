/** Work on several hosts: all or none, in one change of the engine. */
import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/questions.tsx';
import { toast, toastFailure } from '../../kit/toast.tsx';
import { t } from '../../words/t.ts';

/** The bar that is there while hosts are chosen. */
export function BatchBar({ ids, onDone }: { readonly ids: readonly number[]; readonly onDone: () => void }) {
    const count = ids.length;
    const run = async (action: 'enable' | 'disable' | 'delete'): Promise<void> => {
        const question = t('Remove {count} hosts? They are no longer served.', { count });
        if (action === 'delete' && !(await confirm(question, t('Remove')))) {
            return;
        }
        await call('POST', '/api/hosts/batch', { body: { ids, action } }).then(() => {
            toast(t('Done for {count} hosts', { count }));
            onDone();
        }, toastFailure);
        await invalidate('/api/hosts');
    };
    return (
        <div class="batch row compact" role="group" aria-label={t('Chosen hosts')}>
            <strong>{t('{count} chosen', { count })}</strong>
            <Button onPress={() => run('enable')}>{t('Enable')}</Button>
            <Button onPress={() => run('disable')}>{t('Disable')}</Button>
            <Button look="danger" onPress={() => run('delete')}>
                {t('Remove')}
            </Button>
            <Button look="quiet" onPress={onDone}>
                {t('Choose none')}
            </Button>
        </div>
    );
}
