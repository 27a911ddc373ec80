/** The command palette: screens, hosts and actions by a few letters. */
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';

import { useMay, useRead } from '../api/queries.ts';
import { logOut } from '../api/session/login.ts';
import { Dialog } from '../kit/dialogs/dialog.tsx';
import { chooseLanguage, language } from '../words/language.ts';
import { t } from '../words/t.ts';
import { usePlaces } from './places.ts';

interface Command {
    readonly key: string;
    readonly title: string;
    /** What kind of thing it is. */
    readonly kind: string;
    readonly run: () => void;
}

const mostShown = 12;

/** Shows the palette, which finds screens and actions by their name. */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
    const [text, setText] = useState('');
    const [at, setAt] = useState(0);
    const shown = useCommands(text).slice(0, mostShown);
    const chosen = shown[Math.min(at, shown.length - 1)];
    const run = (command: Command | undefined): void => {
        if (command !== undefined) {
            onClose();
            command.run();
        }
    };
    const press = (event: KeyboardEvent): void => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step !== undefined) {
            event.preventDefault();
            setAt((Math.min(at, shown.length - 1) + step + shown.length) % Math.max(shown.length, 1));
        } else if (event.key === 'Enter') {
            event.preventDefault();
            run(chosen);
        }
    };
    return (
        <Dialog title={t('Go to')} onClose={onClose}>
            <div class="palette">
                <input
                    autofocus
                    role="combobox"
                    aria-label={t('Screen, host or action')}
                    aria-expanded="true"
                    aria-controls="palette-list"
                    aria-activedescendant={chosen === undefined ? undefined : idOf(chosen)}
                    autocomplete="off"
                    value={text}
                    onInput={(event) => {
                        setText(event.currentTarget.value);
                        setAt(0);
                    }}
                    onKeyDown={press}
                />
                <ul id="palette-list" role="listbox" aria-label={t('Go to')}>
                    {shown.map((each) => (
                        <li
                            key={each.key}
                            id={idOf(each)}
                            role="option"
                            aria-selected={each === chosen}
                            onClick={() => run(each)}
                        >
                            {each.title} <small>{each.kind}</small>
                        </li>
                    ))}
                </ul>
                {shown.length === 0 ? <p class="dim">{t('Nothing has this name')}</p> : null}
            </div>
        </Dialog>
    );
}

const idOf = ({ key }: Command): string => `palette-${key.replace(/[^\w-]/g, '_')}`;

/** The commands whose title has every word of the text; those that begin with it come first. */
function useCommands(text: string): readonly Command[] {
    const [, go] = useLocation();
    const may = useMay();
    const groups = usePlaces();
    const { data: hosts = [] } = useRead<readonly { readonly id: number; readonly domain: string }[]>(
        may('hosts:read') ? '/api/hosts?limit=100' : null
    );
    const other = language() === 'en' ? 'zh' : 'en';
    const all: readonly Command[] = [
        ...groups
            .flatMap(({ places }) => places)
            .map(({ href, title }) => ({ key: href, title, kind: t('Screen'), run: () => go(href) })),
        { key: 'account', title: t('Your account'), kind: t('Screen'), run: () => go('/account') },
        ...hosts.map(({ id, domain }) => ({
            key: `host-${id}`,
            title: domain,
            kind: t('Host'),
            run: () => go(`/hosts/${id}`)
        })),
        ...(may('hosts:write')
            ? [{ key: 'new-host', title: t('New host'), kind: t('Action'), run: () => go('/hosts/new') }]
            : []),
        {
            key: 'language',
            title: other === 'zh' ? '中文' : 'English',
            kind: t('Action'),
            run: () => chooseLanguage(other)
        },
        { key: 'log-out', title: t('Log out'), kind: t('Action'), run: () => void logOut() }
    ];
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const begins = ({ title }: Command): number => Number(title.toLowerCase().startsWith(words[0] ?? ''));
    return all
        .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)))
        .sort((a, b) => begins(b) - begins(a));
}
