/** What is in an archive, and what of it is unpacked. */
import { useEffect, useState } from 'preact/hooks';

import { Card } from '../kit/card.tsx';
import { startJob } from '../kit/jobs.tsx';
import { type Asker, askText } from '../kit/question.tsx';
import { type ArchiveEntry, type At, panel, parentOf, resultOf, tell, textOf } from '../panel.ts';
import { bytes, t } from '../words.ts';

const endings = /\.(tar|tgz|txz|tzst|tbz2|gz|xz|zst|bz2|zip|7z|rar)$/i;
const mostShown = 1_000;

/** Whether a name is one of an archive. */
export const isArchive = (path: string): boolean => endings.test(path);

/** Shows what is in an archive. Without a selection all of it is unpacked. */
export function ArchiveCard({
    at,
    canWrite,
    ask
}: {
    readonly at: At;
    readonly canWrite: boolean;
    readonly ask: Asker;
}) {
    const [entries, setEntries] = useState<readonly ArchiveEntry[] | null>(null);
    const [selected, select] = useState<readonly string[]>([]);
    const [failure, setFailure] = useState('');
    useEffect(() => {
        panel.call('filemanager.archiveEntries', { query: { ...at, limit: mostShown } }).then(
            ({ data }) => setEntries(data),
            (error: unknown) => setFailure(textOf(error))
        );
    }, []);
    const unpack = (to: string): Promise<boolean> =>
        tell(async () => {
            const body = { ...at, to, entries: selected };
            const answer = await panel.call('filemanager.extract', { body });
            startJob(
                t('Unpack to {to}', { to }),
                ({ signal, onProgress }) =>
                    resultOf(answer, { signal, onProgress: (part) => onProgress(part, 1) }),
                () => undefined
            );
        });
    return (
        <Card title={t('Archive')}>
            {failure === '' ? null : <p role="alert">{failure}</p>}
            {entries === null ? null : (
                <>
                    <ul class="lines" role="list" tabIndex={0} aria-label={t('Entries')}>
                        {entries.map(({ name, size }) => (
                            <li key={name}>
                                <label class="row">
                                    <input
                                        type="checkbox"
                                        checked={selected.includes(name)}
                                        disabled={!canWrite}
                                        onChange={() =>
                                            select(
                                                selected.includes(name)
                                                    ? selected.filter((each) => each !== name)
                                                    : [...selected, name]
                                            )
                                        }
                                    />
                                    <span class="way">{name}</span>{' '}
                                    <span class="dim">{size === null ? '' : bytes(size)}</span>
                                </label>
                            </li>
                        ))}
                    </ul>
                    {entries.length === mostShown ? (
                        <p class="dim">{t('Only the first {count} are shown.', { count: mostShown })}</p>
                    ) : null}
                    {canWrite ? (
                        <button
                            type="button"
                            onClick={() => {
                                const to = at.path.replace(/(\.tar)?\.\w+$/, '');
                                const suggested = to === at.path ? parentOf(at.path) : to;
                                ask(askText(t('Unpack into the folder'), t('Unpack'), suggested, unpack));
                            }}
                        >
                            {selected.length === 0
                                ? t('Unpack all')
                                : t('Unpack {count} entries', { count: selected.length })}
                        </button>
                    ) : null}
                </>
            )}
        </Card>
    );
}
