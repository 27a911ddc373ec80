/** Looks for names, or for a text in files, below a folder. */
import { useState } from 'preact/hooks';

import type { Go } from '../location.ts';
import { type At, type Entry, type Match, may, panel, tell } from '../panel.ts';
import { t } from '../words.ts';
import { openEntry } from './entries.tsx';
import { Sign } from './sign.tsx';

type Found =
    | { readonly kind: 'names'; readonly entries: readonly Entry[] }
    | { readonly kind: 'content'; readonly matches: readonly Match[] };

/** Asks for a text, and shows where it is. */
export function Search({ root, path, go }: At & { readonly go: Go }) {
    const [q, setText] = useState('');
    const [kind, setKind] = useState<Found['kind']>('names');
    const [options, setOptions] = useState({ case: false, word: false });
    const [found, setFound] = useState<Found | null>(null);
    const [isBusy, setBusy] = useState(false);
    const search = async (): Promise<void> => {
        if (q === '' || isBusy) {
            return;
        }
        setBusy(true);
        await tell(async () => {
            const query = { root, path, q };
            setFound(
                kind === 'names'
                    ? { kind, entries: (await panel.call('filemanager.search', { query })).data }
                    : {
                          kind,
                          matches: (
                              await panel.call('filemanager.searchContent', {
                                  query: { ...query, ...options }
                              })
                          ).data
                      }
            );
        });
        setBusy(false);
    };
    return (
        <>
            <div class="row search" role="search">
                <label>
                    {t('Search in {place}', { place: path === '' ? root : `${root}:${path}` })}
                    <input
                        type="search"
                        value={q}
                        maxLength={255}
                        onInput={(event) => setText(event.currentTarget.value)}
                        onKeyDown={(event) => (event.key === 'Enter' ? void search() : undefined)}
                    />
                </label>
                <label>
                    {t('What')}
                    <select
                        value={kind}
                        onChange={(event) =>
                            setKind(event.currentTarget.value === 'content' ? 'content' : 'names')
                        }
                    >
                        <option value="names">{t('Names')}</option>
                        {may('content') ? <option value="content">{t('Text in files')}</option> : null}
                    </select>
                </label>
                {kind === 'content'
                    ? (['case', 'word'] as const).map((option) => (
                          <label key={option} class="row tick">
                              <input
                                  type="checkbox"
                                  checked={options[option]}
                                  onChange={() => setOptions({ ...options, [option]: !options[option] })}
                              />
                              {option === 'case' ? t('Match the case') : t('Whole words')}
                          </label>
                      ))
                    : null}
                <button type="button" class="primary" disabled={isBusy} onClick={() => void search()}>
                    {isBusy ? t('Working…') : t('Find')}
                </button>
            </div>
            <div role="status">{found === null ? null : <FoundList found={found} root={root} go={go} />}</div>
        </>
    );
}

function FoundList({ found, root, go }: { readonly found: Found; readonly root: string; readonly go: Go }) {
    const count = found.kind === 'names' ? found.entries.length : found.matches.length;
    if (count === 0) {
        return <p class="dim">{t('Nothing was found.')}</p>;
    }
    return (
        <ul class="lines card" aria-label={t('{count} found', { count })}>
            {found.kind === 'names'
                ? found.entries.map((entry) => (
                      <li key={entry.path}>
                          <Sign type={entry.type} />{' '}
                          <button
                              type="button"
                              class="link"
                              onClick={() =>
                                  entry.type === 'folder'
                                      ? openEntry(root, entry, go)
                                      : go({ view: 'details', root, path: entry.path })
                              }
                          >
                              {entry.path}
                          </button>
                      </li>
                  ))
                : found.matches.map(({ path, line, text }) => (
                      <li key={`${path}:${line}`}>
                          <button
                              type="button"
                              class="link"
                              onClick={() => go({ view: 'details', root, path })}
                          >
                              {path}
                          </button>
                          <span class="dim">:{line}</span> <code class="way">{text.trim()}</code>
                      </li>
                  ))}
        </ul>
    );
}
