/** Work on several hosts: all or none, in one change of the engine for each thousand. */
import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { readAll } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { counted } from '../../words/format.ts';
import { t } from '../../words/t.ts';

/** As many as one change takes. */
const mostAtOnce = 1_000;

/** The bar that is there while hosts are chosen. @param total - how many fit the filters */
export function BatchBar({
    ids,
    total,
    filters,
    onChoose,
    onDone
}: {
    readonly ids: readonly number[];
    readonly total: number;
    readonly filters: Readonly<Record<string, unknown>>;
    readonly onChoose: (ids: readonly number[]) => void;
    readonly onDone: () => void;
}) {
    const count = ids.length;
    const chooseAll = (): Promise<void> =>
        readAll<{ readonly id: number }>('/api/hosts', { ...filters, sort: 'id', limit: mostAtOnce }).then(
            (rows) => onChoose(rows.map(({ id }) => id)),
            toastFailure
        );
    const run = async (action: 'enable' | 'disable' | 'delete'): Promise<void> => {
        const question = counted(
            count,
            t('Remove 1 host? It is no longer served.'),
            t('Remove {count} hosts? They are no longer served.', { count })
        );
        if (action === 'delete' && !(await confirm(question, t('Remove')))) {
            return;
        }
        await inParts(ids, action).then(() => {
            toast(counted(count, t('Done for 1 host'), t('Done for {count} hosts', { count })));
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
            {total > count ? (
                <Button look="quiet" onPress={chooseAll}>
                    {t('Choose all {count} of the filter', { count: total })}
                </Button>
            ) : null}
            <Button look="quiet" onPress={onDone}>
                {t('Choose none')}
            </Button>
        </div>
    );
}

async function inParts(ids: readonly number[], action: string): Promise<void> {
    for (let at = 0; at < ids.length; at += mostAtOnce) {
        await call('POST', '/api/hosts/batch', { body: { ids: ids.slice(at, at + mostAtOnce), action } });
    }
}
