/** Files that are being sent: each by tus, so a broken one goes on where it was. They go on while the user looks at other folders. */
import { useEffect, useState } from 'preact/hooks';

import { join, panel } from './panel.ts';
import { t } from './words.ts';

interface Running {
    readonly id: number;
    readonly name: string;
    readonly controller: AbortController;
    readonly sent: number;
    readonly total: number;
    readonly state: 'running' | 'done' | 'failed';
    readonly failure: string;
}

const listeners = new Set<(all: readonly Running[]) => void>();
let running: readonly Running[] = [];
let last = 0;

function set(next: readonly Running[]): void {
    running = next;
    listeners.forEach((listener) => listener(next));
}

const change = (id: number, part: Partial<Running>): void =>
    set(running.map((each) => (each.id === id ? { ...each, ...part } : each)));

/** Begins to send files into a folder. @param onDone - called after each of them */
export function startUploads(
    files: readonly File[],
    { root, path }: { readonly root: string; readonly path: string },
    onDone: () => void
): void {
    for (const file of files) {
        last += 1;
        const id = last;
        const controller = new AbortController();
        const { name } = file;
        set([...running, { id, name, controller, sent: 0, total: file.size, state: 'running', failure: '' }]);
        panel
            .upload('filemanager.upload', file, {
                tus: { root, path: join(path, name) },
                signal: controller.signal,
                onProgress: (sent, total) => change(id, { sent, total })
            })
            .then(
                () => {
                    change(id, { state: 'done', sent: file.size });
                    onDone();
                },
                (error: unknown) =>
                    change(id, {
                        state: 'failed',
                        failure: error instanceof Error ? error.message : String(error)
                    })
            );
    }
}

/** Shows the files that are being sent; nothing without any. */
export function Uploads() {
    const [all, setAll] = useState(running);
    useEffect(() => {
        listeners.add(setAll);
        return () => void listeners.delete(setAll);
    }, []);
    return all.length === 0 ? null : (
        <ul class="uploads card" aria-label={t('Uploads of files')}>
            {all.map((each) => (
                <li key={each.id} class="row">
                    <span>{each.name}</span>
                    <progress value={each.sent} max={Math.max(each.total, 1)} aria-label={each.name} />
                    <span role="status">
                        {each.state === 'done'
                            ? t('Done')
                            : each.state === 'failed'
                              ? `${t('Failed')}: ${each.failure}`
                              : ''}
                    </span>
                    <button
                        type="button"
                        onClick={() => {
                            each.controller.abort();
                            set(running.filter(({ id }) => id !== each.id));
                        }}
                    >
                        {each.state === 'running' ? t('Stop') : t('Close')}
                    </button>
                </li>
            ))}
        </ul>
    );
}
