/** A terminal: xterm, with the panel's colours, a size that follows its element, and a way out of it by keyboard. */
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import css from '@xterm/xterm/css/xterm.css?inline';

import { adoptStyle, defineAdoptedStyle } from './adopted.ts';

/** What a terminal tells. */
export interface TerminalOptions {
    /** What a screen reader calls it. */
    readonly label: string;
    /** Bytes that the user typed. */
    readonly onInput: (bytes: Uint8Array) => void;
    readonly onResize: (size: { readonly columns: number; readonly rows: number }) => void;
    /** The user wants to leave it: Ctrl+Shift+Escape. */
    readonly onLeave?: () => void;
}

/** A terminal that is shown. */
export interface TerminalView {
    readonly size: { readonly columns: number; readonly rows: number };
    write(data: string | Uint8Array): void;
    focus(): void;
    /** Takes it away. */
    dispose(): void;
}

let hasStyle = false;

/** Shows a terminal in an element, as large as the element is. */
export function showTerminal(
    element: HTMLElement,
    { label, onInput, onResize, onLeave }: TerminalOptions
): TerminalView {
    if (!hasStyle) {
        hasStyle = true;
        defineAdoptedStyle();
        adoptStyle(css);
    }
    const terminal = new Terminal({
        cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
        fontFamily: 'ui-monospace, monospace',
        fontSize: 14,
        screenReaderMode: true,
        scrollback: 5_000,
        theme: { background: '#14171c', foreground: '#e6e9ef', cursor: '#7fb0ff' }
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(element);
    terminal.textarea?.setAttribute('aria-label', label);
    fit.fit();
    const encoder = new TextEncoder();
    terminal.onData((text) => onInput(encoder.encode(text)));
    terminal.onBinary((text) => onInput(Uint8Array.from(text, (char) => char.charCodeAt(0))));
    terminal.onResize(({ cols, rows }) => onResize({ columns: cols, rows }));
    terminal.attachCustomKeyEventHandler((event) => {
        const isLeave = event.key === 'Escape' && event.ctrlKey && event.shiftKey;
        if (isLeave && event.type === 'keydown') {
            onLeave?.();
        }
        return !isLeave;
    });
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    return {
        get size() {
            return { columns: terminal.cols, rows: terminal.rows };
        },
        write: (data) => terminal.write(data),
        focus: () => terminal.focus(),
        dispose() {
            observer.disconnect();
            terminal.dispose();
        }
    };
}
