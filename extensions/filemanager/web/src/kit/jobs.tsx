/** What takes a while: files that are sent, downloads of the panel and unpacking. It goes on while the user looks at other folders. */
import { useEffect, useState } from 'preact/hooks';

import { type At, join, panel, textOf } from '../panel.ts';
import { t } from '../words.ts';

interface Job {
    readonly id: number;
    readonly name: string;
    readonly controller: AbortController;
    readonly sent: number;
    readonly total: number;
    readonly state: 'running' | 'done' | 'failed';
    readonly failure: string;
}

/** What a job says of itself, and how it hears that it should stop. */
export interface JobRun {
    readonly signal: AbortSignal;
    readonly onProgress: (done: number, total: number) => void;
}

const listeners = new Set<(all: readonly Job[]) => void>();
let jobs: readonly Job[] = [];
let last = 0;

function set(next: readonly Job[]): void {
    jobs = next;
    listeners.forEach((listener) => listener(next));
}

const change = (id: number, part: Partial<Job>): void =>
    set(jobs.map((each) => (each.id === id ? { ...each, ...part } : each)));

/** Begins a job. @param onDone - called when it went well */
export function startJob(name: string, run: (job: JobRun) => Promise<unknown>, onDone: () => void): void {
    last += 1;
    const id = last;
    const controller = new AbortController();
    set([...jobs, { id, name, controller, sent: 0, total: 1, state: 'running', failure: '' }]);
    run({ signal: controller.signal, onProgress: (sent, total) => change(id, { sent, total }) }).then(
        () => {
            change(id, { state: 'done', sent: 1, total: 1 });
            onDone();
        },
        (error: unknown) => change(id, { state: 'failed', failure: textOf(error) })
    );
}

/** Sends files into a folder: each by tus, so a broken one goes on where it was. @param onDone - called after each of them */
export function startUploads(files: readonly File[], { root, path }: At, onDone: () => void): void {
    for (const file of files) {
        const tus = { root, path: join(path, file.name) };
        startJob(file.name, (job) => panel.upload('filemanager.upload', file, { tus, ...job }), onDone);
    }
}

/** Shows the jobs; nothing without any. */
export function Jobs() {
    const [all, setAll] = useState(jobs);
    useEffect(() => {
        listeners.add(setAll);
        return () => void listeners.delete(setAll);
    }, []);
    return all.length === 0 ? null : (
        <ul class="jobs card" aria-label={t('Work that goes on')}>
            {all.map((each) => (
                <li key={each.id} class="row">
                    <span class="name">{each.name}</span>
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
                            set(jobs.filter(({ id }) => id !== each.id));
                        }}
                    >
                        {each.state === 'running' ? t('Stop') : t('Close')}
                    </button>
                </li>
            ))}
        </ul>
    );
}
