/** The places that the user marked. */
import { List } from '../kit/list.tsx';
import type { Go } from '../location.ts';
import { panel } from '../panel.ts';
import { t } from '../words.ts';
import { openEntry } from './entries.tsx';
import { Sign } from './sign.tsx';

/** Shows the favourites of the user. */
export function Favourites({ go }: { readonly go: Go }) {
    return (
        <List
            read={() => panel.call('filemanager.favourites')}
            empty={t('Nothing is marked. The details of a file or folder have a button for it.')}
        >
            {({ id, title, root, path, type, missing }, change) => (
                <>
                    <span class="way">
                        <Sign type={type ?? 'other'} />{' '}
                        {missing ? (
                            title
                        ) : (
                            <button
                                type="button"
                                class="link"
                                onClick={() =>
                                    type === 'folder'
                                        ? openEntry(root, { path, type, size: 0 }, go)
                                        : go({ view: 'details', root, path })
                                }
                            >
                                {title}
                            </button>
                        )}{' '}
                        <span class="dim">
                            {root}:{path} {missing ? t('It is gone') : ''}
                        </span>
                    </span>
                    <button
                        type="button"
                        aria-label={t('Take {title} from the favourites', { title })}
                        onClick={() =>
                            change(() => panel.call('filemanager.removeFavourite', { path: { id } }))
                        }
                    >
                        {t('Take away')}
                    </button>
                </>
            )}
        </List>
    );
}
