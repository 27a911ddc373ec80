/** A terminal on the machine, by a ticket and a WebSocket that the panel holds. */
import type { TerminalView } from '@portico/page-kit/terminal';
import { useEffect, useRef, useState } from 'preact/hooks';

import { panel, tell } from '../panel.ts';
import { t } from '../words.ts';

/** Shows a terminal of the machine, and a new one when it has ended. */
export function TerminalScreen({ onClose }: { readonly onClose: () => void }) {
    const [run, setRun] = useState(0);
    return <Terminal key={run} onClose={onClose} onAgain={() => setRun(run + 1)} />;
}

function Terminal({ onClose, onAgain }: { readonly onClose: () => void; readonly onAgain: () => void }) {
    const element = useRef<HTMLDivElement>(null);
    const leave = useRef<HTMLButtonElement>(null);
    const [end, setEnd] = useState<string | null>(null);
    useEffect(() => {
        let view: TerminalView | null = null;
        let close = (): void => undefined;
        void tell(async () => {
            const { showTerminal } = await import('@portico/page-kit/terminal');
            if (element.current === null) {
                return;
            }
            let send = (_data: string | Uint8Array): void => undefined;
            view = showTerminal(element.current, {
                label: t('Terminal'),
                onInput: (bytes) => send(bytes),
                onResize: (size) => send(JSON.stringify(size)),
                onLeave: () => leave.current?.focus()
            });
            const { data } = await panel.call('filemanager.openTerminal', { body: view.size });
            const socket = panel.open(data.path, (message) => {
                if (typeof message !== 'string') {
                    view?.write(new Uint8Array(message));
                    return;
                }
                const { exitCode, error } = JSON.parse(message) as {
                    exitCode?: number;
                    error?: { message: string };
                };
                setEnd(error?.message ?? t('The shell has ended with {code}.', { code: exitCode ?? 0 }));
            });
            close = () => socket.close();
            send = (bytes) => socket.send(bytes);
            view.focus();
            await socket.closed;
            setEnd((before) => before ?? t('The terminal was closed.'));
        });
        return () => {
            close();
            view?.dispose();
        };
    }, []);
    return (
        <div class="editor">
            <div class="row spread">
                <span class="dim">{t('Ctrl+Shift+Escape leaves the terminal.')}</span>
                <button type="button" ref={leave} onClick={onClose}>
                    {t('Close')}
                </button>
            </div>
            {end === null ? null : (
                <div class="card row" role="status">
                    {end}
                    <button type="button" onClick={onAgain}>
                        {t('Open again')}
                    </button>
                </div>
            )}
            <div class="shell" ref={element} />
        </div>
    );
}
