/** Where the user is: the root and what it allows, the folders above this one, and the other screens. */
import type { Go, View } from './location.ts';
import { type At, may, parentOf, type Root } from './panel.ts';
import { bytes, t } from './words.ts';

/** The screens beside the folders. */
export function Tabs({ view, at, go }: { readonly view: View; readonly at: At; readonly go: Go }) {
    const tabs: readonly (readonly [View, string, boolean])[] = [
        ['folder', t('Folders'), true],
        ['favourites', t('Favourites'), true],
        ['search', t('Search'), true],
        ['shares', t('Public links'), may('share')],
        ['trash', t('Trash'), true],
        ['terminals', t('Terminals'), may('terminal')]
    ];
    return (
        <nav class="row tabs" aria-label={t('Screens')}>
            {tabs.map(([to, title, isOpen]) =>
                isOpen ? (
                    <button
                        key={to}
                        type="button"
                        aria-current={view === to ? 'page' : undefined}
                        onClick={() => go({ ...at, view: to })}
                    >
                        {title}
                    </button>
                ) : null
            )}
        </nav>
    );
}

/** The roots, and the folders above this one. */
export function Way({ roots, root, path, go }: At & { readonly roots: readonly Root[]; readonly go: Go }) {
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

/** What the root allows, and how full it is. */
export function RootFacts({ root: { readOnly, quotaBytes, usedBytes, space } }: { readonly root: Root }) {
    const facts = [
        quotaBytes === null
            ? null
            : usedBytes === null
              ? t('Quota {limit}', { limit: bytes(quotaBytes) })
              : t('{used} of {limit} used', { used: bytes(usedBytes), limit: bytes(quotaBytes) }),
        space === null ? null : t('{free} free', { free: bytes(space.available) })
    ];
    return (
        <div class="row facts dim">
            {readOnly ? <span class="badge">{t('Read only')}</span> : null}
            {quotaBytes === null || usedBytes === null ? null : (
                <meter
                    aria-label={t('Quota')}
                    min={0}
                    max={quotaBytes}
                    high={quotaBytes * 0.9}
                    value={Math.min(usedBytes, quotaBytes)}
                />
            )}
            <span>{facts.filter((each) => each !== null).join(' · ')}</span>
        </div>
    );
}
