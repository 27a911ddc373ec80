/** Public links: they are made, listed and ended. */
import { List } from '../kit/list.tsx';
import type { Asker } from '../kit/question.tsx';
import { type At, panel, tell } from '../panel.ts';
import { t, time } from '../words.ts';

/** Asks how long a link is good, and makes it. @param onMade - gets its address, which is told only once */
export function askShare(at: At, ask: Asker, onMade: (address: string) => void): void {
    ask({
        title: t('Make a public link'),
        action: t('Make'),
        fields: {
            until: {
                label: t('Good until; empty: as long as the settings allow'),
                value: '',
                type: 'date',
                isOptional: true
            },
            most: { label: t('Most downloads; empty: no limit'), value: '', type: 'number', isOptional: true }
        },
        onSend: ({ until = '', most = '' }) =>
            tell(async () => {
                const body = {
                    ...at,
                    ...(until === '' ? {} : { expiresAt: new Date(`${until}T23:59:59`).toISOString() }),
                    ...(most === '' ? {} : { maxDownloads: Number(most) })
                };
                onMade((await panel.call('filemanager.share', { body })).data.url);
            })
    });
}

/** Shows the links of all users. */
export function Shares() {
    return (
        <List
            read={() => panel.call('filemanager.shares')}
            empty={t('Nothing is shared. The details of a file or folder have a button for it.')}
        >
            {({ id, root, path, maker, expiresAt, maxDownloads, downloads }, change) => (
                <>
                    <span class="way">
                        {root}:{path}{' '}
                        <span class="dim">
                            {t('by {maker}, until {time}, {count} downloads', {
                                maker,
                                time: time(expiresAt),
                                count: maxDownloads === null ? downloads : `${downloads}/${maxDownloads}`
                            })}
                        </span>
                    </span>
                    <button
                        type="button"
                        class="danger"
                        aria-label={t('End the link to {path}', { path })}
                        onClick={() => change(() => panel.call('filemanager.removeShare', { path: { id } }))}
                    >
                        {t('End')}
                    </button>
                </>
            )}
        </List>
    );
}
