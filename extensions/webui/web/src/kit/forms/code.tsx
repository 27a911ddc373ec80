/** A text of code, in an editor that is loaded when it is first shown. */
import type { EditorHandle } from '@portico/page-kit/code';
import { useEffect, useRef } from 'preact/hooks';

import { t } from '../../words/t.ts';
import { toastFailure } from '../dialogs/toast.tsx';

/** Endings of the languages that media types name; the editor knows languages by endings. */
const endings: Readonly<Record<string, string>> = {
    'application/sql': 'sql',
    'application/yaml': 'yaml',
    'application/json': 'json',
    'text/html': 'html',
    'text/x-shellscript': 'sh'
};

/** Whether there is a language for a media type. */
export const isCode = (media: string | undefined): boolean => media !== undefined && media in endings;

/** The editor. @param media - media type of the text */
export function CodeBox({
    id,
    label,
    media,
    initial,
    describedBy,
    isInvalid = false,
    onChange,
    onRun
}: {
    readonly id?: string;
    readonly label: string;
    readonly media: string;
    /** Later it is the editor that has the text: another one needs another editor. */
    readonly initial: string;
    readonly describedBy?: string;
    readonly isInvalid?: boolean;
    readonly onChange: (value: string) => void;
    /** Ctrl+Enter. */
    readonly onRun?: () => void;
}) {
    const element = useRef<HTMLDivElement>(null);
    const editor = useRef<EditorHandle | null>(null);
    const change = useRef(onChange);
    change.current = onChange;
    useEffect(() => {
        let isGone = false;
        const show = async (place: HTMLElement): Promise<void> => {
            const { showEditor } = await import('@portico/page-kit/code');
            const handle = await showEditor(place, {
                text: initial,
                label,
                fileName: endings[media] ?? '',
                onChange: () => editor.current !== null && change.current(editor.current.text())
            });
            if (isGone) {
                return handle.dispose();
            }
            editor.current = handle;
            place.ariaBusy = 'false';
        };
        if (element.current !== null) {
            show(element.current).catch(toastFailure);
        }
        return () => {
            isGone = true;
            editor.current?.dispose();
        };
    }, []);
    return (
        <div
            ref={element}
            id={id}
            class="code"
            role="group"
            tabIndex={-1}
            aria-busy="true"
            aria-describedby={describedBy}
            aria-invalid={isInvalid}
            title={t('Escape and then Tab leaves the editor.')}
            onFocus={({ currentTarget: { shadowRoot } }) => {
                if (shadowRoot?.activeElement === null) {
                    editor.current?.focus();
                }
            }}
            onKeyDownCapture={(event) => {
                if (onRun !== undefined && event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                    event.preventDefault();
                    event.stopPropagation();
                    onRun();
                }
            }}
        />
    );
}
