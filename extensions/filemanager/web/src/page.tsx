/** The page of the file manager: a folder, a file in the editor, or another screen, as the address says. */
import { adoptStyle } from '@portico/page-kit/style';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Details } from './entry/details.tsx';
import { FileEditor } from './entry/editor.tsx';
import { Shares } from './entry/shares.tsx';
import { Favourites } from './folder/favourites.tsx';
import { Folder } from './folder/folder.tsx';
import { Search } from './folder/search.tsx';
import { Trash } from './folder/trash.tsx';
import { type Go, type Place, useLocation } from './location.ts';
import { may, panel, type Root, textOf } from './panel.ts';
import css from './style.css?inline';
import { TerminalScreen } from './terminal/terminal.tsx';
import { Terminals } from './terminal/terminals.tsx';
import { Tabs } from './way.tsx';
import { t } from './words.ts';

adoptStyle(css);

function Screen() {
    const [place, go] = useLocation();
    const [roots, setRoots] = useState<readonly Root[] | null>(null);
    const [failure, setFailure] = useState('');
    useEffect(() => {
        panel.call('filemanager.roots').then(
            ({ data }) => setRoots(data),
            (error: unknown) => setFailure(textOf(error))
        );
    }, [place.view, place.root]);
    if (place.view === 'terminal') {
        return <TerminalScreen onClose={() => go({ ...place, view: 'folder' })} />;
    }
    if (failure !== '' || roots === null) {
        return <p role="status">{failure === '' ? '…' : failure}</p>;
    }
    const root = roots.find(({ name }) => name === place.root) ?? roots.find(({ available }) => available);
    if (root === undefined) {
        return (
            <p class="dim">
                {t('No folder is open to you yet. An admin names them in the settings of the plugin.')}
            </p>
        );
    }
    const at = { root: root.name, path: place.path };
    return place.view === 'file' ? (
        <FileEditor key={`${at.root}:${at.path}`} {...at} go={go} />
    ) : (
        <>
            <Tabs view={place.view} at={at} go={go} />
            <Part
                key={`${place.view}:${at.root}:${at.path}`}
                place={place}
                root={root}
                roots={roots}
                go={go}
            />
        </>
    );
}

function Part({
    place: { view, path },
    root,
    roots,
    go
}: {
    readonly place: Place;
    readonly root: Root;
    readonly roots: readonly Root[];
    readonly go: Go;
}) {
    switch (view) {
        case 'details':
            return <Details root={root.name} path={path} canWrite={may('write') && !root.readOnly} go={go} />;
        case 'search':
            return <Search root={root.name} path={path} go={go} />;
        case 'favourites':
            return <Favourites go={go} />;
        case 'shares':
            return <Shares />;
        case 'trash':
            return <Trash roots={roots} />;
        case 'terminals':
            return <Terminals />;
        default:
            return <Folder roots={roots} root={root} path={path} go={go} />;
    }
}

render(<Screen />, document.body);
