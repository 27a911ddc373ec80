/** A code editor: CodeMirror in a shadow root, where it adopts its styles and so keeps to the panel's content policy. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import {
    bracketMatching,
    HighlightStyle,
    indentOnInput,
    type LanguageSupport,
    StreamLanguage,
    syntaxHighlighting
} from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** What an editor shows. */
export interface EditorOptions {
    readonly text: string;
    /** What a screen reader calls it. */
    readonly label: string;
    /** Its ending says which language it is in. */
    readonly fileName: string;
    readonly isReadOnly?: boolean;
    readonly onChange?: () => void;
    /** Ctrl+S. */
    readonly onSave?: () => void;
}

/** An editor that is shown. */
export interface EditorHandle {
    text(): string;
    /** Replaces the text. */
    replace(text: string): void;
    focus(): void;
    /** Takes it away. */
    dispose(): void;
}

const colors = HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword, tags.tagName], color: 'light-dark(#8a1a8f, #e0a3ff)' },
    { tag: [tags.string, tags.special(tags.string)], color: 'light-dark(#17692f, #7ad492)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#7d5200, #f0c05a)' },
    { tag: tags.comment, color: 'light-dark(#5a6270, #a3acba)', fontStyle: 'italic' },
    {
        tag: [tags.propertyName, tags.attributeName, tags.definition(tags.variableName)],
        color: 'light-dark(#1d5fd0, #7fb0ff)'
    },
    { tag: tags.heading, fontWeight: 'bold' }
]);
const theme = EditorView.theme({
    '&': {
        height: '100%',
        color: 'var(--portico-text)',
        backgroundColor: 'var(--portico-surface)',
        fontSize: '14px'
    },
    '.cm-scroller': { fontFamily: 'ui-monospace, monospace' },
    '.cm-content': { caretColor: 'var(--portico-text)' },
    '.cm-cursor': { borderLeftColor: 'var(--portico-text)' },
    '.cm-gutters': {
        color: 'var(--portico-dim)',
        backgroundColor: 'var(--portico-raised)',
        border: 'none'
    },
    '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--portico-accent) 8%, transparent)' },
    '.cm-panels': { color: 'var(--portico-text)', backgroundColor: 'var(--portico-raised)' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
        backgroundColor: 'color-mix(in srgb, var(--portico-accent) 25%, transparent)'
    }
});

/** What is typed over a selection. The browser itself would keep the colours of what it replaces, in a style attribute that the policy refuses. */
const replacing = EditorView.domEventHandlers({
    beforeinput(event, view) {
        const { state } = view;
        if (
            event.inputType !== 'insertText' ||
            event.data === null ||
            event.isComposing ||
            state.readOnly ||
            state.selection.main.empty
        ) {
            return false;
        }
        event.preventDefault();
        view.dispatch({
            ...state.replaceSelection(event.data),
            userEvent: 'input.type',
            scrollIntoView: true
        });
        return true;
    }
});

/** Shows an editor in an element. Tab indents; Escape and then Tab leaves it. */
export async function showEditor(
    element: HTMLElement,
    { text, label, fileName, isReadOnly = false, onChange, onSave }: EditorOptions
): Promise<EditorHandle> {
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const editable = new Compartment();
    const view = new EditorView({
        parent: root,
        root,
        state: EditorState.create({
            doc: text,
            extensions: [
                lineNumbers(),
                history(),
                drawSelection(),
                indentOnInput(),
                bracketMatching(),
                highlightActiveLine(),
                highlightSelectionMatches(),
                search({ top: true }),
                syntaxHighlighting(colors),
                theme,
                replacing,
                await languageOf(fileName),
                editable.of(EditorState.readOnly.of(isReadOnly)),
                EditorView.contentAttributes.of({ 'aria-label': label }),
                EditorView.updateListener.of(({ docChanged }) => (docChanged ? onChange?.() : undefined)),
                keymap.of([
                    {
                        key: 'Mod-s',
                        run: () => {
                            onSave?.();
                            return true;
                        }
                    },
                    ...defaultKeymap,
                    ...historyKeymap,
                    ...searchKeymap,
                    indentWithTab
                ])
            ]
        })
    });
    return {
        text: () => view.state.doc.toString(),
        replace: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
        focus: () => view.focus(),
        dispose: () => view.destroy()
    };
}

type Load = () => Promise<LanguageSupport | Extension>;

const html: Load = async () => (await import('@codemirror/lang-html')).html();
const javascript =
    (options: object): Load =>
    async () =>
        (await import('@codemirror/lang-javascript')).javascript(options);
const shell: Load = async () =>
    StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell);
const yaml: Load = async () =>
    StreamLanguage.define((await import('@codemirror/legacy-modes/mode/yaml')).yaml);
const properties: Load = async () =>
    StreamLanguage.define((await import('@codemirror/legacy-modes/mode/properties')).properties);

/** Languages by the ending of a name, or by the name. Each is loaded when it is wanted. */
const languages: Readonly<Record<string, Load>> = {
    html,
    htm: html,
    js: javascript({}),
    mjs: javascript({}),
    cjs: javascript({}),
    jsx: javascript({ jsx: true }),
    ts: javascript({ typescript: true }),
    tsx: javascript({ jsx: true, typescript: true }),
    json: async () => (await import('@codemirror/lang-json')).json(),
    php: async () => (await import('@codemirror/lang-php')).php(),
    css: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/css')).css),
    xml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/xml')).xml),
    svg: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/xml')).xml),
    py: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/python')).python),
    toml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/toml')).toml),
    sql: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/sql')).standardSQL),
    dockerfile: async () =>
        StreamLanguage.define((await import('@codemirror/legacy-modes/mode/dockerfile')).dockerFile),
    'nginx.conf': async () =>
        StreamLanguage.define((await import('@codemirror/legacy-modes/mode/nginx')).nginx),
    sh: shell,
    bash: shell,
    '.bashrc': shell,
    '.profile': shell,
    yaml,
    yml: yaml,
    ini: properties,
    conf: properties,
    env: properties,
    properties
};

async function languageOf(fileName: string): Promise<Extension> {
    const name = fileName.toLowerCase();
    const load = languages[name] ?? languages[name.slice(name.lastIndexOf('.') + 1)];
    return load === undefined ? [] : load();
}
