/** What was removed, and can be put back. */
import { List } from '../kit/list.tsx';
import { may, panel, resultOf, type Root } from '../panel.ts';
import { bytes, t, time } from '../words.ts';
import { Sign } from './sign.tsx';

/** Shows the trash of all roots. That of a read-only root stays as it is. */
export function Trash({ roots }: { readonly roots: readonly Root[] }) {
    const writable = new Set(
        may('write') ? roots.flatMap(({ name, readOnly }) => (readOnly ? [] : [name])) : []
    );
    return (
        <List
            read={() => panel.call('filemanager.trash')}
            empty={t('The trash is empty.')}
            tools={(rows, change) =>
                rows.some(({ root }) => writable.has(root)) ? (
                    <button
                        type="button"
                        class="danger"
                        onClick={() =>
                            change(async () => resultOf(await panel.call('filemanager.emptyTrash')))
                        }
                    >
                        {t('Empty the trash')}
                    </button>
                ) : null
            }
        >
            {({ id, root, path, name, type, size, deletedAt, deletedBy }, change) => (
                <>
                    <span class="way">
                        <Sign type={type} /> {name}{' '}
                        <span class="dim">
                            {[
                                `${root}:${path}`,
                                type === 'file' ? bytes(size) : '',
                                time(deletedAt),
                                deletedBy
                            ]
                                .filter((fact) => fact !== '')
                                .join(' · ')}
                        </span>
                    </span>
                    {writable.has(root) ? (
                        <button
                            type="button"
                            aria-label={t('Put back {name}', { name })}
                            onClick={() => change(() => panel.call('filemanager.restore', { body: { id } }))}
                        >
                            {t('Put back')}
                        </button>
                    ) : null}
                </>
            )}
        </List>
    );
}
