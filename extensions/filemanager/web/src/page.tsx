/** The page of the file manager: a folder, a file in the editor, or a terminal, as the address says. */
import { adoptStyle } from '@portico/page-kit/style';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { FileEditor } from './editor.tsx';
import { Folder } from './folder.tsx';
import { useLocation } from './location.ts';
import { panel, type Root } from './panel.ts';
import css from './style.css?inline';
import { TerminalScreen } from './terminal.tsx';
import { t } from './words.ts';

adoptStyle(css);

function Screen() {
    const [place, go] = useLocation();
    const [roots, setRoots] = useState<readonly Root[] | null>(null);
    const [failure, setFailure] = useState('');
    useEffect(() => {
        panel.call('filemanager.roots').then(
            ({ data }) => setRoots(data),
            (error: unknown) => setFailure(String(error))
        );
    }, []);
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
    return place.view === 'file' ? (
        <FileEditor key={`${root.name}:${place.path}`} root={root.name} path={place.path} go={go} />
    ) : (
        <Folder key={`${root.name}:${place.path}`} roots={roots} root={root.name} path={place.path} go={go} />
    );
}

render(<Screen />, document.body);
