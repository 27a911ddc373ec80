/** One snapshot: a tree to choose what comes back. A folder is read when it is opened. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { downloadFrom } from '../../api/download.ts';
import { useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { fullTime, quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import {
    base,
    type FileEntry,
    isBelow,
    keyOf,
    outermost,
    type Repository,
    type RestoreItem,
    type Snapshot
} from './backup-view.ts';
import { RestoreDialog } from './restore.tsx';

/** What all parts of the tree share. */
interface Choice {
    /** Path of the snapshot's routes. */
    readonly path: string;
    readonly chosen: readonly RestoreItem[];
    readonly toggle: (item: RestoreItem) => void;
}

/** The screen of a snapshot. */
export function SnapshotPage({ repository, id }: { readonly repository: Repository; readonly id: string }) {
    const may = useMay();
    const path = `${base}/repositories/${repository.id}/snapshots/${id}`;
    const { data: snapshot, error } = useRead<Snapshot>(path);
    const [chosen, setChosen] = useState<readonly RestoreItem[]>([]);
    const [isRestoring, setRestoring] = useState(false);
    const [pattern, setPattern] = useState('');
    const toggle = (item: RestoreItem): void =>
        setChosen((before) =>
            before.some((each) => keyOf(each) === keyOf(item))
                ? before.filter((each) => keyOf(each) !== keyOf(item))
                : [...before, item]
        );
    const items = outermost(chosen);
    const canRestore = may('backup:restore');
    return (
        <Page
            title={snapshot === undefined ? id.slice(0, 8) : fullTime(snapshot.time)}
            lead={<Link href={`/backup?repository=${repository.id}`}>← {repository.name}</Link>}
            actions={
                canRestore ? (
                    <Button look="primary" isDisabled={items.length === 0} onPress={() => setRestoring(true)}>
                        {items.length === 0
                            ? t('Restore …')
                            : t('Restore {count} …', { count: items.length })}
                    </Button>
                ) : null
            }
        >
            {snapshot === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <label class="filter">
                        <span>{t('Find by name, as *.conf')}</span>
                        <input
                            type="search"
                            onChange={(event) => setPattern(event.currentTarget.value.trim())}
                        />
                    </label>
                    <section class="card">
                        {pattern === '' ? (
                            <Roots snapshot={snapshot} choice={{ path, chosen, toggle }} />
                        ) : (
                            <Folder
                                address={`${path}/search?q=${encodeURIComponent(pattern)}`}
                                choice={{ path, chosen, toggle }}
                                isFlat
                            />
                        )}
                    </section>
                </>
            )}
            {isRestoring ? (
                <RestoreDialog path={path} items={items} onClose={() => setRestoring(false)} />
            ) : null}
        </Page>
    );
}

function Roots({ snapshot, choice }: { readonly snapshot: Snapshot; readonly choice: Choice }) {
    return (
        <ul class="tree" aria-label={t('What is in the snapshot')}>
            {snapshot.sources.map((source) => {
                const { type, path, plugin } = source;
                return path === undefined ? (
                    <li key={plugin ?? type}>
                        <div class="tree-row">
                            <span class="tree-space" />
                            <Chooser
                                item={plugin === undefined ? { panel: true } : { plugin }}
                                title={plugin ?? t('The panel')}
                                choice={choice}
                            />
                            <Icon name={plugin === undefined ? 'shield' : 'puzzle'} />
                            <span>{plugin ?? t('The panel')}</span>
                        </div>
                    </li>
                ) : (
                    <Node
                        key={path}
                        choice={choice}
                        shown={path}
                        entry={{ name: path, path, type: 'folder', size: 0, modifiedAt: '' }}
                    />
                );
            })}
        </ul>
    );
}

/** The entries of a folder, or what was found. */
function Folder({
    address,
    choice,
    isFlat = false
}: {
    readonly address: string;
    readonly choice: Choice;
    readonly isFlat?: boolean;
}) {
    const { data, error } = useRead<readonly FileEntry[]>(address);
    if (data === undefined) {
        return <Waiting error={error} />;
    }
    const sorted = data.toSorted(
        (one, other) =>
            Number(other.type === 'folder') - Number(one.type === 'folder') ||
            one.path.localeCompare(other.path)
    );
    return data.length === 0 ? (
        <p class="dim">{isFlat ? t('Nothing has this name') : t('The folder is empty')}</p>
    ) : (
        <ul class={isFlat ? 'tree' : ''}>
            {sorted.map((entry) => (
                <Node
                    key={entry.path}
                    entry={entry}
                    shown={isFlat ? entry.path : entry.name}
                    choice={choice}
                />
            ))}
        </ul>
    );
}

function Node({
    entry,
    shown,
    choice
}: {
    readonly entry: FileEntry;
    readonly shown: string;
    readonly choice: Choice;
}) {
    const [isOpen, setOpen] = useState(false);
    const { path, type, size } = entry;
    const isFolder = type === 'folder';
    return (
        <li>
            <div class="tree-row">
                {isFolder ? (
                    <button
                        type="button"
                        class="button quiet tree-open"
                        aria-expanded={isOpen}
                        aria-label={
                            isOpen ? t('Close {name}', { name: shown }) : t('Open {name}', { name: shown })
                        }
                        onClick={() => setOpen(!isOpen)}
                    >
                        <Icon name={isOpen ? 'down' : 'right'} />
                    </button>
                ) : (
                    <span class="tree-space" />
                )}
                <Chooser item={{ path }} title={shown} choice={choice} />
                <Icon name={isFolder ? 'folder' : 'file'} />
                <span class="tree-name">{shown}</span>
                {isFolder ? null : <span class="dim number">{quantity(size, 'byte')}</span>}
                <Fetch entry={entry} path={choice.path} />
            </div>
            {isOpen ? (
                <Folder address={`${choice.path}/files?path=${encodeURIComponent(path)}`} choice={choice} />
            ) : null}
        </li>
    );
}

/** What lies in a folder that is chosen comes back with it. */
function Chooser({
    item,
    title,
    choice: { chosen, toggle }
}: {
    readonly item: RestoreItem;
    readonly title: string;
    readonly choice: Choice;
}) {
    const may = useMay();
    const { path } = item;
    const isInside =
        path !== undefined && chosen.some((each) => each.path !== undefined && isBelow(path, each.path));
    return may('backup:restore') ? (
        <input
            type="checkbox"
            aria-label={t('Choose {name}', { name: title })}
            checked={isInside || chosen.some((each) => keyOf(each) === keyOf(item))}
            disabled={isInside}
            onChange={() => toggle(item)}
        />
    ) : null;
}

function Fetch({
    entry: { path, name, type },
    path: routes
}: {
    readonly entry: FileEntry;
    readonly path: string;
}) {
    const may = useMay();
    return may('backup:content') && (type === 'file' || type === 'folder') ? (
        <Button
            look="quiet"
            label={t('Download {name}', { name })}
            onPress={() => downloadFrom(`${routes}/content`, { path }).catch(toastFailure)}
        >
            <Icon name="download" />
        </Button>
    ) : null;
}
