/** What is in a folder, and what can be done with it. */
import { useEffect, useState } from 'preact/hooks';

import type { Go } from './location.ts';
import { type Entry, join, may, panel, parentOf, type Root, tell } from './panel.ts';
import { Ask, type Question } from './question.tsx';
import { startUploads, Uploads } from './uploads.tsx';
import { bytes, t, time } from './words.ts';

const editableBytes = 2_000_000;

interface At {
    readonly root: string;
    readonly path: string;
}

/** Shows a folder. */
export function Folder({ roots, root, path, go }: At & { readonly roots: readonly Root[]; readonly go: Go }) {
    const { entries, next, load, failure } = useEntries({ root, path });
    const [question, setQuestion] = useState<Question | null>(null);
    const [isOver, setOver] = useState(false);
    const upload = (files: FileList | null): void => {
        if (files !== null && may('write')) {
            startUploads([...files], { root, path }, () => void load());
        }
    };
    return (
        <div
            class={`folder ${isOver ? 'over' : ''}`}
            onDragOver={(event) => {
                event.preventDefault();
                setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
                event.preventDefault();
                setOver(false);
                upload(event.dataTransfer?.files ?? null);
            }}
        >
            <div class="row spread">
                <Way roots={roots} root={root} path={path} go={go} />
                <Tools root={root} path={path} go={go} load={load} ask={setQuestion} upload={upload} />
            </div>
            <Uploads />
            {failure === '' ? null : <p role="alert">{failure}</p>}
            {entries === null ? null : (
                <Entries root={root} path={path} go={go} entries={entries} load={load} ask={setQuestion} />
            )}
            {next === null ? null : (
                <button type="button" onClick={() => void load(next)}>
                    {t('Show more')}
                </button>
            )}
            {question === null ? null : <Ask {...question} onClose={() => setQuestion(null)} />}
        </div>
    );
}

function useEntries({ root, path }: At): {
    entries: readonly Entry[] | null;
    next: string | null;
    failure: string;
    load: (cursor?: string) => Promise<void>;
} {
    const [entries, setEntries] = useState<readonly Entry[] | null>(null);
    const [next, setNext] = useState<string | null>(null);
    const [failure, setFailure] = useState('');
    const load = async (cursor?: string): Promise<void> => {
        try {
            const query = { root, path, ...(cursor === undefined ? {} : { cursor }) };
            const answer = await panel.call('filemanager.list', { query });
            setEntries((before) =>
                cursor === undefined ? answer.data : [...(before ?? []), ...answer.data]
            );
            setNext(answer.next);
        } catch (error) {
            setFailure(error instanceof Error ? error.message : String(error));
        }
    };
    useEffect(() => void load(), [root, path]);
    return { entries, next, failure, load };
}

/** The roots, and the folders above this one. */
function Way({ roots, root, path, go }: At & { readonly roots: readonly Root[]; readonly go: Go }) {
    const parts = path === '' ? [] : path.split('/');
    return (
        <nav class="row way" aria-label={t('Path')}>
            <select
                aria-label={t('Folder')}
                value={root}
                onChange={(event) => go({ view: 'folder', root: event.currentTarget.value, path: '' })}
            >
                {roots.map(({ name, available }) => (
                    <option key={name} value={name} disabled={!available}>
                        {name}
                    </option>
                ))}
            </select>
            {parts.length === 0 ? null : (
                <button
                    type="button"
                    aria-label={t('Parent')}
                    onClick={() => go({ view: 'folder', root, path: parentOf(path) })}
                >
                    ↑
                </button>
            )}
            {parts.map((part, index) => {
                const target = parts.slice(0, index + 1).join('/');
                return (
                    <span key={target}>
                        /{' '}
                        <button
                            type="button"
                            class="link"
                            onClick={() => go({ view: 'folder', root, path: target })}
                        >
                            {part}
                        </button>
                    </span>
                );
            })}
        </nav>
    );
}

function Tools({
    root,
    path,
    go,
    load,
    ask,
    upload
}: At & {
    readonly go: Go;
    readonly load: () => Promise<void>;
    readonly ask: (question: Question) => void;
    readonly upload: (files: FileList | null) => void;
}) {
    const makeFolder = (): void =>
        ask({
            label: t('Name of the new folder'),
            action: t('Create'),
            value: '',
            async onSend(name) {
                const body = { root, path: join(path, name) };
                return tell(async () => {
                    await panel.call('filemanager.makeFolder', { body });
                    await load();
                });
            }
        });
    const makeFile = (): void =>
        ask({
            label: t('Name of the new file'),
            action: t('Create'),
            value: '',
            async onSend(name) {
                const query = { root, path: join(path, name) };
                const isMade = await tell(() =>
                    panel.upload('filemanager.write', new Blob(['']), { query, onlyNew: true })
                );
                if (isMade) {
                    go({ view: 'file', ...query });
                }
                return isMade;
            }
        });
    return (
        <div class="row">
            {may('write') ? (
                <>
                    <button type="button" onClick={makeFolder}>
                        {t('New folder')}
                    </button>
                    <button type="button" onClick={makeFile}>
                        {t('New file')}
                    </button>
                    <label class="button upload">
                        {t('Upload')}
                        <input
                            type="file"
                            multiple
                            onChange={(event) => {
                                upload(event.currentTarget.files);
                                event.currentTarget.value = '';
                            }}
                        />
                    </label>
                </>
            ) : null}
            {may('terminal') ? (
                <button type="button" onClick={() => go({ view: 'terminal', root, path })}>
                    {t('Terminal')}
                </button>
            ) : null}
        </div>
    );
}

function Entries({
    root,
    path,
    go,
    entries,
    load,
    ask
}: At & {
    readonly go: Go;
    readonly entries: readonly Entry[];
    readonly load: () => Promise<void>;
    readonly ask: (question: Question) => void;
}) {
    if (entries.length === 0) {
        return <p class="dim">{t('This folder is empty')}</p>;
    }
    const sorted = [...entries].sort(
        (a, b) => Number(b.type === 'folder') - Number(a.type === 'folder') || (a.name < b.name ? -1 : 1)
    );
    return (
        <div class="scroll" role="region" aria-label={path === '' ? root : path} tabIndex={0}>
            <table>
                <thead>
                    <tr>
                        <th scope="col">{t('Name')}</th>
                        <th scope="col">{t('Size')}</th>
                        <th scope="col" class="wide">
                            {t('Changed')}
                        </th>
                        <th scope="col">{t('Actions')}</th>
                    </tr>
                </thead>
                <tbody>
                    {sorted.map((entry) => (
                        <Row key={entry.path} root={root} entry={entry} go={go} load={load} ask={ask} />
                    ))}
                </tbody>
            </table>
        </div>
    );
}

const signs: Readonly<Record<Entry['type'], string>> = { folder: '📁', file: '📄', link: '🔗', other: '▫' };

function Row({
    root,
    entry,
    go,
    load,
    ask
}: {
    readonly root: string;
    readonly entry: Entry;
    readonly go: Go;
    readonly load: () => Promise<void>;
    readonly ask: (question: Question) => void;
}) {
    const { name, path, type, size, modifiedAt } = entry;
    const query = { root, path };
    const open = (): void => {
        if (type === 'folder') {
            go({ view: 'folder', root, path });
        } else if (size <= editableBytes) {
            go({ view: 'file', root, path });
        } else {
            void tell(() => panel.download('filemanager.read', { query }));
        }
    };
    const canOpen = type === 'folder' || (type === 'file' && may('content'));
    return (
        <tr>
            <td>
                <span aria-hidden="true">{signs[type]}</span>{' '}
                {canOpen ? (
                    <button type="button" class="link" onClick={open}>
                        {name}
                    </button>
                ) : (
                    name
                )}
            </td>
            <td class="number">{type === 'file' ? bytes(size) : ''}</td>
            <td class="wide">{time(modifiedAt)}</td>
            <td>
                <RowActions entry={entry} query={query} load={load} ask={ask} />
            </td>
        </tr>
    );
}

function RowActions({
    entry: { name, path, type },
    query,
    load,
    ask
}: {
    readonly entry: Entry;
    readonly query: At;
    readonly load: () => Promise<void>;
    readonly ask: (question: Question) => void;
}) {
    const rename = (): void =>
        ask({
            label: t('New name of {name}', { name }),
            action: t('Rename'),
            value: name,
            onSend: (next) =>
                tell(async () => {
                    const body = { root: query.root, from: path, to: join(parentOf(path), next) };
                    await panel.call('filemanager.move', { body });
                    await load();
                })
        });
    const remove = (): Promise<boolean> =>
        tell(async () => {
            await panel.call('filemanager.remove', { query });
            await load();
        });
    return (
        <div class="row">
            {type === 'file' && may('content') ? (
                <button
                    type="button"
                    aria-label={`${t('Download')} ${name}`}
                    onClick={() => void tell(() => panel.download('filemanager.read', { query }))}
                >
                    {t('Download')}
                </button>
            ) : null}
            {may('write') ? (
                <>
                    <button type="button" aria-label={`${t('Rename')} ${name}`} onClick={rename}>
                        {t('Rename')}
                    </button>
                    <button
                        type="button"
                        class="danger"
                        aria-label={`${t('Remove')} ${name}`}
                        onClick={() => void remove()}
                    >
                        {t('Remove')}
                    </button>
                </>
            ) : null}
        </div>
    );
}
