/** The entries of a folder, which can be opened, changed one by one, or selected. */
import { type Asker, askText } from '../kit/question.tsx';
import type { Go } from '../location.ts';
import { type At, type Entry, join, may, panel, parentOf, tell } from '../panel.ts';
import { bytes, t, time } from '../words.ts';
import { Sign } from './sign.tsx';

const editableBytes = 2_000_000;

interface EntriesProps {
    readonly root: string;
    readonly entries: readonly Entry[];
    readonly go: Go;
    readonly load: () => Promise<void>;
    readonly ask: Asker;
    readonly canWrite: boolean;
    readonly selected: ReadonlySet<string>;
    readonly select: (paths: ReadonlySet<string>) => void;
}

/** Shows the entries of a folder, with those that are selected. */
export function Entries({ path, entries, ...props }: EntriesProps & { readonly path: string }) {
    const { root, canWrite, selected, select } = props;
    if (entries.length === 0) {
        return <p class="dim">{t('This folder is empty')}</p>;
    }
    const sorted = [...entries].sort(
        (a, b) => Number(b.type === 'folder') - Number(a.type === 'folder') || (a.name < b.name ? -1 : 1)
    );
    const isWhole = selected.size === entries.length;
    return (
        <div class="scroll" role="region" aria-label={path === '' ? root : path} tabIndex={0}>
            <table>
                <thead>
                    <tr>
                        {canWrite ? (
                            <td class="check">
                                <input
                                    type="checkbox"
                                    aria-label={t('Select all')}
                                    checked={isWhole}
                                    onChange={() =>
                                        select(new Set(isWhole ? [] : entries.map((each) => each.path)))
                                    }
                                />
                            </td>
                        ) : null}
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
                        <Row key={entry.path} entry={entry} {...props} />
                    ))}
                </tbody>
            </table>
        </div>
    );
}

/** Opens an entry: a folder, a file in the editor, or a large one as a download. */
export function openEntry(
    root: string,
    { path, type, size }: Pick<Entry, 'path' | 'type' | 'size'>,
    go: Go
): void {
    if (type === 'folder') {
        go({ view: 'folder', root, path });
    } else if (size <= editableBytes) {
        go({ view: 'file', root, path });
    } else {
        void tell(() => panel.download('filemanager.read', { query: { root, path } }));
    }
}

function Row({ entry, ...props }: Omit<EntriesProps, 'entries'> & { readonly entry: Entry }) {
    const { root, go, canWrite, selected, select } = props;
    const { name, path, type, size, modifiedAt } = entry;
    const canOpen = type === 'folder' || (type === 'file' && may('content'));
    const toggle = (): void => {
        const next = new Set(selected);
        if (!next.delete(path)) {
            next.add(path);
        }
        select(next);
    };
    return (
        <tr>
            {canWrite ? (
                <td class="check">
                    <input
                        type="checkbox"
                        aria-label={t('Select {name}', { name })}
                        checked={selected.has(path)}
                        onChange={toggle}
                    />
                </td>
            ) : null}
            <td>
                <span class="name">
                    <Sign type={type} />
                    {canOpen ? (
                        <button type="button" class="link" onClick={() => openEntry(root, entry, go)}>
                            {name}
                        </button>
                    ) : (
                        name
                    )}
                </span>
            </td>
            <td class="number">{type === 'file' ? bytes(size) : ''}</td>
            <td class="wide">{time(modifiedAt)}</td>
            <td>
                <div class="row">
                    <button
                        type="button"
                        aria-label={`${t('Details')} ${name}`}
                        onClick={() => go({ view: 'details', root, path })}
                    >
                        {t('Details')}
                    </button>
                    <span class="row wide">
                        <EntryActions at={{ root, path }} {...props} type={type} done={() => props.load()} />
                    </span>
                </div>
            </td>
        </tr>
    );
}

/** What can be done with one entry. */
export function EntryActions({
    at,
    type,
    ask,
    canWrite,
    done
}: {
    readonly at: At;
    readonly type: Entry['type'];
    readonly ask: Asker;
    readonly canWrite: boolean;
    /** Called with the path that the entry has then; null when it is gone. */
    readonly done: (path: string | null) => unknown;
}) {
    const { root, path } = at;
    const name = path.split('/').pop() ?? path;
    const rename = (next: string): Promise<boolean> =>
        tell(async () => {
            const to = join(parentOf(path), next);
            await panel.call('filemanager.move', { body: { root, from: path, to } });
            await done(to);
        });
    const remove = (): Promise<boolean> =>
        tell(async () => {
            await panel.call('filemanager.remove', { query: at });
            await done(null);
        });
    return (
        <>
            {type === 'file' && may('content') ? (
                <button
                    type="button"
                    aria-label={`${t('Download')} ${name}`}
                    onClick={() => void tell(() => panel.download('filemanager.read', { query: at }))}
                >
                    {t('Download')}
                </button>
            ) : null}
            {canWrite ? (
                <>
                    <button
                        type="button"
                        aria-label={`${t('Rename')} ${name}`}
                        onClick={() =>
                            ask(askText(t('New name of {name}', { name }), t('Rename'), name, rename))
                        }
                    >
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
        </>
    );
}
