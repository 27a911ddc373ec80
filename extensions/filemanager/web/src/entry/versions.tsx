/** Earlier contents of a file, which can be downloaded and made the content again. */
import { useEffect, useState } from 'preact/hooks';

import { Card } from '../kit/card.tsx';
import { type At, panel, tell, type Version } from '../panel.ts';
import { bytes, t, time } from '../words.ts';

/** Shows the versions of a file. */
export function VersionsCard({
    at,
    canWrite,
    reload
}: {
    readonly at: At;
    readonly canWrite: boolean;
    readonly reload: () => Promise<void>;
}) {
    const [versions, setVersions] = useState<readonly Version[]>([]);
    useEffect(
        () =>
            void tell(async () =>
                setVersions((await panel.call('filemanager.versions', { query: at })).data)
            ),
        []
    );
    const restore = (id: number): Promise<boolean> =>
        tell(async () => {
            await panel.call('filemanager.restoreVersion', { path: { id } });
            await panel.toast(t('It has this content again'));
            await reload();
        });
    return (
        <Card title={t('Versions')}>
            {versions.length === 0 ? (
                <p class="dim">{t('No earlier content of this file is kept.')}</p>
            ) : (
                <ul class="lines">
                    {versions.map(({ id, size, at: replaced, by }) => (
                        <li key={id} class="row spread">
                            <span>
                                {time(replaced)}{' '}
                                <span class="dim">
                                    {bytes(size)} {by}
                                </span>
                            </span>
                            <span class="row">
                                <button
                                    type="button"
                                    aria-label={t('Download the version of {time}', { time: time(replaced) })}
                                    onClick={() =>
                                        void tell(() =>
                                            panel.download('filemanager.version', { path: { id } })
                                        )
                                    }
                                >
                                    {t('Download')}
                                </button>
                                {canWrite ? (
                                    <button
                                        type="button"
                                        aria-label={t('Restore the version of {time}', {
                                            time: time(replaced)
                                        })}
                                        onClick={() => void restore(id)}
                                    >
                                        {t('Restore')}
                                    </button>
                                ) : null}
                            </span>
                        </li>
                    ))}
                </ul>
            )}
        </Card>
    );
}
