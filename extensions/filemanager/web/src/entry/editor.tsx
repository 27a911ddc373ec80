/** One file in the editor. It is saved for the version that was read: a newer one is never overwritten without asking. */
import type { EditorHandle } from '@portico/page-kit/code';
import { PanelError } from '@portico/sdk/page';
import { useEffect, useRef, useState } from 'preact/hooks';

import type { Go } from '../location.ts';
import { may, panel, parentOf, tell, textOf } from '../panel.ts';
import { t } from '../words.ts';

interface At {
    readonly root: string;
    readonly path: string;
}

/** Reads a file as text; null where it is none. */
async function readText(query: At): Promise<{ readonly text: string | null; readonly etag: string | null }> {
    const { data, etag } = await panel.call('filemanager.read', { query });
    try {
        const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
            await data.arrayBuffer()
        );
        return { text: text.includes('\0') ? null : text, etag };
    } catch {
        return { text: null, etag };
    }
}

type State = 'loading' | 'saved' | 'changed' | 'newer' | 'unreadable';

interface File {
    readonly element: { current: HTMLDivElement | null };
    readonly state: State;
    /** Writes it for the version that was read; with `isForced` over every version. */
    readonly save: (isForced?: boolean) => Promise<void>;
    /** Replaces the text by what the file has now. */
    readonly takeTheirs: () => Promise<boolean>;
}

/** A file, the editor that shows it, and the version that it was read at. */
function useFile({ root, path }: At): File {
    const element = useRef<HTMLDivElement>(null);
    const editor = useRef<EditorHandle | null>(null);
    const etag = useRef<string | null>(null);
    const [state, setState] = useState<State>('loading');
    const save = async (isForced = false): Promise<void> => {
        const text = editor.current?.text() ?? '';
        const condition = isForced || etag.current === null ? {} : { ifMatch: etag.current };
        try {
            const answer = await panel.upload('filemanager.write', new Blob([text]), {
                query: { root, path },
                ...condition
            });
            etag.current = answer.etag;
            // What was typed meanwhile is not saved.
            setState(editor.current?.text() === text ? 'saved' : 'changed');
            await panel.toast(t('Saved'));
        } catch (error) {
            if (error instanceof PanelError && error.status === 412) {
                setState('newer');
            } else {
                await panel.toast(textOf(error), 'bad');
            }
        }
    };
    const show = async (): Promise<void> => {
        const [{ showEditor }, file] = await Promise.all([
            import('@portico/page-kit/code'),
            readText({ root, path })
        ]);
        if (file.text === null || element.current === null) {
            setState('unreadable');
            return;
        }
        etag.current = file.etag;
        editor.current = await showEditor(element.current, {
            text: file.text,
            label: path,
            fileName: path.split('/').pop() ?? path,
            isReadOnly: !may('write'),
            onChange: () => setState((before) => (before === 'newer' ? before : 'changed')),
            onSave: () => void save()
        });
        setState('saved');
        editor.current.focus();
    };
    useEffect(() => {
        void tell(show);
        return () => editor.current?.dispose();
    }, []);
    const takeTheirs = (): Promise<boolean> =>
        tell(async () => {
            const file = await readText({ root, path });
            etag.current = file.etag;
            editor.current?.replace(file.text ?? '');
            setState('saved');
        });
    return { element, state, save, takeTheirs };
}

/** Shows the text of a file, and saves it. */
export function FileEditor({ root, path, go }: At & { readonly go: Go }) {
    const { element, state, save, takeTheirs } = useFile({ root, path });
    const close = async (): Promise<void> => {
        const isLost = state === 'changed' || state === 'newer';
        if (!isLost || (await panel.confirm(t('Leave without saving?'), t('Leave')))) {
            go({ view: 'folder', root, path: parentOf(path) });
        }
    };
    return (
        <div class="editor">
            <div class="row spread">
                <h2>{path}</h2>
                <div class="row">
                    <span class="dim" role="status">
                        {state === 'changed' ? t('Not saved yet') : ''}
                    </span>
                    {may('write') && state !== 'unreadable' ? (
                        <button
                            type="button"
                            class="primary"
                            disabled={state !== 'changed'}
                            onClick={() => void save()}
                        >
                            {t('Save')}
                        </button>
                    ) : null}
                    <button type="button" onClick={() => void close()}>
                        {t('Close')}
                    </button>
                </div>
            </div>
            {state === 'newer' ? (
                <Newer onTake={() => void takeTheirs()} onWrite={() => void save(true)} />
            ) : null}
            {state === 'unreadable' ? (
                <p>{t('This file is not text, or too large to be edited here.')}</p>
            ) : (
                <div class="code" ref={element} />
            )}
        </div>
    );
}

function Newer({ onTake, onWrite }: { readonly onTake: () => void; readonly onWrite: () => void }) {
    return (
        <div class="card row" role="alert">
            {t('The file was changed meanwhile.')}
            <button type="button" onClick={onTake}>
                {t('Take theirs')}
            </button>
            <button type="button" class="danger" onClick={onWrite}>
                {t('Write mine')}
            </button>
        </div>
    );
}
