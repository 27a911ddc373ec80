/** What is in a folder, and what can be done with it. */
import { useEffect, useState } from 'preact/hooks';

import { Jobs, startUploads } from '../kit/jobs.tsx';
import { Ask, type Question } from '../kit/question.tsx';
import type { Go } from '../location.ts';
import { type At, type Entry, may, panel, type Root, textOf } from '../panel.ts';
import { RootFacts, Way } from '../way.tsx';
import { t } from '../words.ts';
import { Selection } from './batch.tsx';
import { Entries } from './entries.tsx';
import { Tools } from './tools.tsx';

/** Shows a folder with its path, its entries and its actions. */
export function Folder({
    roots,
    root,
    path,
    go
}: {
    readonly roots: readonly Root[];
    readonly root: Root;
    readonly path: string;
    readonly go: Go;
}) {
    const at = { root: root.name, path };
    const { entries, next, load, failure } = useEntries(at);
    const [question, setQuestion] = useState<Question | null>(null);
    const [selected, select] = useState<ReadonlySet<string>>(new Set());
    const [isOver, setOver] = useState(false);
    const canWrite = may('write') && !root.readOnly;
    const upload = (files: FileList | null): void => {
        if (files !== null && canWrite) {
            startUploads([...files], at, () => void load());
        }
    };
    const onDone = async (): Promise<void> => {
        select(new Set());
        await load();
    };
    return (
        <div
            class={`drop ${isOver ? 'over' : ''}`}
            onDragOver={(event) => {
                event.preventDefault();
                setOver(canWrite);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
                event.preventDefault();
                setOver(false);
                upload(event.dataTransfer?.files ?? null);
            }}
        >
            <div class="row spread">
                <Way roots={roots} {...at} go={go} />
                <RootFacts root={root} />
            </div>
            <div class="tools">
                <Tools {...at} go={go} load={load} ask={setQuestion} upload={upload} canWrite={canWrite} />
            </div>
            <Jobs />
            <Selection at={at} roots={roots} selected={selected} ask={setQuestion} onDone={onDone} />
            {failure === '' ? null : <p role="alert">{failure}</p>}
            {entries === null ? null : (
                <Entries
                    {...at}
                    go={go}
                    entries={entries}
                    load={load}
                    ask={setQuestion}
                    canWrite={canWrite}
                    selected={selected}
                    select={select}
                />
            )}
            {next === null ? null : (
                <button type="button" onClick={() => void load(next)}>
                    {t('Show more')}
                </button>
            )}
            {question === null ? null : <Ask {...question} onClose={() => setQuestion(null)} />}
        </div>
    );
}

function useEntries({ root, path }: At): {
    entries: readonly Entry[] | null;
    next: string | null;
    failure: string;
    load: (cursor?: string) => Promise<void>;
} {
    const [entries, setEntries] = useState<readonly Entry[] | null>(null);
    const [next, setNext] = useState<string | null>(null);
    const [failure, setFailure] = useState('');
    const load = async (cursor?: string): Promise<void> => {
        try {
            const query = { root, path, ...(cursor === undefined ? {} : { cursor }) };
            const answer = await panel.call('filemanager.list', { query });
            setEntries((before) =>
                cursor === undefined ? answer.data : [...(before ?? []), ...answer.data]
            );
            setNext(answer.next);
        } catch (error) {
            setFailure(textOf(error));
        }
    };
    useEffect(() => void load(), [root, path]);
    return { entries, next, failure, load };
}
