/** One entry: what it is, how it looks, its versions, what is in it as an archive, and links to it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { EntryActions, openEntry } from '../folder/entries.tsx';
import { Card } from '../kit/card.tsx';
import { Jobs } from '../kit/jobs.tsx';
import { Ask, type Asker, type Question } from '../kit/question.tsx';
import type { Go } from '../location.ts';
import {
    type At,
    may,
    nameOf,
    type OneEntry,
    panel,
    parentOf,
    resultOf,
    tell,
    textOf,
    type TreeSize
} from '../panel.ts';
import { bytes, t, time } from '../words.ts';
import { ArchiveCard, isArchive } from './archive.tsx';
import { Preview } from './preview.tsx';
import { askShare } from './shares.tsx';
import { VersionsCard } from './versions.tsx';

/** Shows the attributes of one file or folder, and what can be done with it. */
export function Details({ root, path, canWrite, go }: At & { readonly canWrite: boolean; readonly go: Go }) {
    const [entry, setEntry] = useState<OneEntry | null>(null);
    const [failure, setFailure] = useState('');
    const [question, setQuestion] = useState<Question | null>(null);
    const [link, setLink] = useState('');
    const load = async (): Promise<void> => {
        try {
            setEntry((await panel.call('filemanager.entry', { query: { root, path } })).data);
        } catch (error) {
            setFailure(textOf(error));
        }
    };
    useEffect(() => void load(), []);
    const close = (): void =>
        go({ view: 'folder', root, path: entry?.type === 'folder' ? path : parentOf(path) });
    return (
        <div>
            <div class="row spread">
                <h2 class="way">{path === '' ? root : path}</h2>
                <button type="button" onClick={close}>
                    {t('Close')}
                </button>
            </div>
            {failure === '' ? null : <p role="alert">{failure}</p>}
            {entry === null ? null : (
                <>
                    <Actions
                        entry={entry}
                        at={{ root, path }}
                        canWrite={canWrite}
                        go={go}
                        ask={setQuestion}
                        setLink={setLink}
                    />
                    {link === '' ? null : (
                        <div class="card" role="status">
                            <label>
                                {t('The address of the link. It is shown only now.')}
                                <input
                                    readOnly
                                    value={link}
                                    onFocus={(event) => event.currentTarget.select()}
                                />
                            </label>
                        </div>
                    )}
                    <Jobs />
                    <div class="cards">
                        <Facts entry={entry} at={{ root, path }} />
                        {entry.type === 'file' && may('content') ? (
                            <FileCards
                                key={entry.version}
                                at={{ root, path }}
                                canWrite={canWrite}
                                ask={setQuestion}
                                reload={load}
                            />
                        ) : null}
                    </div>
                </>
            )}
            {question === null ? null : <Ask {...question} onClose={() => setQuestion(null)} />}
        </div>
    );
}

function FileCards(props: {
    readonly at: At;
    readonly canWrite: boolean;
    readonly ask: Asker;
    readonly reload: () => Promise<void>;
}) {
    return (
        <>
            <VersionsCard {...props} />
            {isArchive(props.at.path) ? <ArchiveCard {...props} /> : <Preview {...props.at} />}
        </>
    );
}

function Actions({
    entry,
    at,
    canWrite,
    go,
    ask,
    setLink
}: {
    readonly entry: OneEntry;
    readonly at: At;
    readonly canWrite: boolean;
    readonly go: Go;
    readonly ask: Asker;
    readonly setLink: (address: string) => void;
}) {
    const { root, path } = at;
    const canRead = may('content') && (entry.type === 'file' || entry.type === 'folder');
    const mark = (): Promise<boolean> =>
        tell(async () => {
            await panel.call('filemanager.addFavourite', { body: at });
            await panel.toast(t('It is among the favourites now'));
        });
    return (
        <div class="row tools">
            {canRead ? (
                <button type="button" class="primary" onClick={() => openEntry(root, { ...entry, path }, go)}>
                    {t('Open')}
                </button>
            ) : null}
            {path === '' ? null : (
                <EntryActions
                    at={at}
                    type={entry.type}
                    ask={ask}
                    canWrite={canWrite}
                    done={(next) =>
                        go(
                            next === null
                                ? { view: 'folder', root, path: parentOf(path) }
                                : { view: 'details', root, path: next }
                        )
                    }
                />
            )}
            <button type="button" onClick={() => void mark()}>
                {t('Add to the favourites')}
            </button>
            {may('share') && canRead ? (
                <button type="button" onClick={() => askShare(at, ask, setLink)}>
                    {t('Make a public link')}
                </button>
            ) : null}
        </div>
    );
}

const types = { file: 'File', folder: 'Folder', link: 'Link', other: 'Special file' } as const;

function Facts({ entry, at }: { readonly entry: OneEntry; readonly at: At }) {
    const { type, size, mode, owner, group, modifiedAt, target } = entry;
    return (
        <Card title={t('Facts')}>
            <dl>
                <Fact term={t('Type')}>{t(types[type])}</Fact>
                {type === 'file' ? <Fact term={t('Size')}>{bytes(size)}</Fact> : null}
                {target === null ? null : <Fact term={t('Leads to')}>{target}</Fact>}
                <Fact term={t('Changed')}>{time(modifiedAt)}</Fact>
                <Fact term={t('Owner')}>{`${owner}:${group}`}</Fact>
                <Fact term={t('Permissions')}>{`0${(mode & 0o777).toString(8)}`}</Fact>
                {type === 'folder' ? <FolderSize {...at} /> : null}
                {type === 'file' && may('content') ? <Checksum {...at} /> : null}
            </dl>
        </Card>
    );
}

function Fact({ term, children }: { readonly term: string; readonly children: ComponentChildren }) {
    return (
        <>
            <dt>{term}</dt>
            <dd>{children}</dd>
        </>
    );
}

/** Something that is worked out when the user asks for it. */
function useAsked<T>(ask: () => Promise<T>): { value: T | null; isBusy: boolean; start: () => void } {
    const [value, setValue] = useState<T | null>(null);
    const [isBusy, setBusy] = useState(false);
    const start = (): void => {
        setBusy(true);
        void tell(async () => setValue(await ask())).finally(() => setBusy(false));
    };
    return { value, isBusy, start };
}

function FolderSize(at: At) {
    const { value, isBusy, start } = useAsked(async () =>
        resultOf<TreeSize>(await panel.call('filemanager.size', { body: at }))
    );
    return (
        <Fact term={t('Size')}>
            {value === null ? (
                <button type="button" disabled={isBusy} onClick={start}>
                    {isBusy ? t('Working…') : t('Count')}
                </button>
            ) : (
                <>
                    {t('{size} in {files} files and {folders} folders', {
                        size: bytes(value.bytes),
                        files: value.files,
                        folders: value.folders
                    })}
                    <ul>
                        {value.largest.slice(0, 5).map(({ path, size }) => (
                            <li key={path}>
                                {nameOf(path)} <span class="dim">{bytes(size)}</span>
                            </li>
                        ))}
                    </ul>
                </>
            )}
        </Fact>
    );
}

function Checksum({ root, path }: At) {
    const { value, isBusy, start } = useAsked(async () => {
        const body = { root, paths: [path] };
        const answer = await panel.call('filemanager.checksums', { body });
        return (await resultOf<readonly { readonly checksum: string }[]>(answer))[0]?.checksum ?? null;
    });
    return (
        <Fact term="SHA-256">
            {value === null ? (
                <button type="button" disabled={isBusy} onClick={start}>
                    {isBusy ? t('Working…') : t('Calculate')}
                </button>
            ) : (
                <code>{value}</code>
            )}
        </Fact>
    );
}
