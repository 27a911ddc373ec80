/** A terminal over a WebSocket of the panel: binary messages are what is typed and shown, texts are its size and its end. */
import type { TerminalView } from '@portico/page-kit/terminal';
import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../../words/t.ts';
import { toastFailure } from '../dialogs/toast.tsx';

/** Size in characters. */
interface Size {
    readonly columns: number;
    readonly rows: number;
}

/** Shows a terminal until it is taken away. @param open - gets the path of the WebSocket, with its ticket */
export function TerminalBox({
    label,
    open
}: {
    readonly label: string;
    readonly open: (size: Size) => Promise<string>;
}) {
    const element = useRef<HTMLDivElement>(null);
    const note = useRef<HTMLParagraphElement>(null);
    const [end, setEnd] = useState<string | null>(null);
    useEffect(() => {
        const controller = new AbortController();
        if (element.current !== null) {
            const leave = (): void => note.current?.focus();
            const tell = (text: string): void => setEnd((before) => before ?? text);
            begin(element.current, label, { open, leave, tell, signal: controller.signal }).catch(
                toastFailure
            );
        }
        return () => controller.abort();
    }, []);
    return (
        <>
            <p class="dim" ref={note} tabIndex={-1} role="status">
                {end ?? t('Ctrl+Shift+Escape leaves the terminal.')}
            </p>
            <div class="console" ref={element} />
        </>
    );
}

interface Session {
    readonly open: (size: Size) => Promise<string>;
    readonly leave: () => void;
    /** Says why it has ended. */
    readonly tell: (text: string) => void;
    /** Takes the terminal away. */
    readonly signal: AbortSignal;
}

async function begin(
    element: HTMLElement,
    label: string,
    { open, leave, tell, signal }: Session
): Promise<void> {
    const { showTerminal } = await import('@portico/page-kit/terminal');
    if (signal.aborted) {
        return;
    }
    let send = (_data: string | Uint8Array<ArrayBuffer>): void => undefined;
    const view: TerminalView = showTerminal(element, {
        label,
        onInput: (bytes) => send(new Uint8Array(bytes)),
        onResize: (size) => send(JSON.stringify(size)),
        onLeave: leave
    });
    signal.addEventListener('abort', () => view.dispose());
    const path = await open(view.size);
    if (signal.aborted) {
        return;
    }
    const socket = new WebSocket(path);
    socket.binaryType = 'arraybuffer';
    signal.addEventListener('abort', () => socket.close());
    socket.onopen = () => {
        send = (data) => socket.readyState === WebSocket.OPEN && socket.send(data);
        send(JSON.stringify(view.size));
        view.focus();
    };
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) =>
        typeof data === 'string' ? tell(endOf(data)) : view.write(new Uint8Array(data));
    socket.onclose = () => tell(t('The terminal was closed.'));
}

/** The last message in words. */
function endOf(message: string): string {
    const { exitCode, error } = JSON.parse(message) as { exitCode?: number; error?: { message: string } };
    return error?.message ?? t('It has ended with {code}.', { code: exitCode ?? '?' });
}
