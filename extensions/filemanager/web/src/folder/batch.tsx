/** One thing done with all selected entries, and what became of each. */
import { useState } from 'preact/hooks';

import { startJob } from '../kit/jobs.tsx';
import { type Asker, askText, type Question } from '../kit/question.tsx';
import { type At, type BatchResult, join, panel, resultOf, type Root, tell } from '../panel.ts';
import { t } from '../words.ts';

type Order = Parameters<typeof panel.call<'filemanager.batch'>>[1]['body'];

interface SelectionProps {
    readonly at: At;
    readonly roots: readonly Root[];
    readonly selected: ReadonlySet<string>;
    readonly ask: Asker;
    readonly onDone: () => Promise<void>;
}

/** The bar below the tools while entries are selected, and the last result. */
export function Selection({ at, roots, selected, ask, onDone }: SelectionProps) {
    const [last, setLast] = useState<{ readonly order: Order; readonly result: BatchResult } | null>(null);
    const [isBusy, setBusy] = useState(false);
    const send = async (order: Order): Promise<boolean> => {
        setBusy(true);
        const isSent = await tell(async () => {
            const answer = await panel.call('filemanager.batch', { body: order });
            setLast({ order, result: await resultOf<BatchResult>(answer) });
            await onDone();
        });
        setBusy(false);
        return isSent;
    };
    const items = [...selected].map((path) => ({ root: at.root, path }));
    const askTarget = (action: 'move' | 'copy', title: string): void =>
        ask(targetQuestion(at, roots, title, (target) => send({ action, items, ...target })));
    return (
        <>
            {items.length === 0 ? null : (
                <div class="card row selection" role="group" aria-label={t('Selected entries')}>
                    <strong>{t('{count} selected', { count: items.length })}</strong>
                    <button type="button" disabled={isBusy} onClick={() => askTarget('move', t('Move'))}>
                        {t('Move')}
                    </button>
                    <button type="button" disabled={isBusy} onClick={() => askTarget('copy', t('Copy'))}>
                        {t('Copy')}
                    </button>
                    <button
                        type="button"
                        disabled={isBusy}
                        onClick={() => ask(bitsQuestion((mode) => send({ action: 'mode', items, mode })))}
                    >
                        {t('Permissions')}
                    </button>
                    <button
                        type="button"
                        disabled={isBusy}
                        onClick={() => ask(packQuestion(at, [...selected], onDone))}
                    >
                        {t('Make an archive')}
                    </button>
                    <button
                        type="button"
                        disabled={isBusy}
                        onClick={() => void send({ action: 'trash', items })}
                    >
                        {t('To the trash')}
                    </button>
                    <button
                        type="button"
                        class="danger"
                        disabled={isBusy}
                        onClick={() => void send({ action: 'delete', items })}
                    >
                        {t('Remove for good')}
                    </button>
                    <span role="status">{isBusy ? t('Working…') : ''}</span>
                </div>
            )}
            {last === null ? null : (
                <Result
                    result={last.result}
                    onAgain={(failed) => void send({ ...last.order, items: failed })}
                    onClose={() => setLast(null)}
                />
            )}
        </>
    );
}

/** Asks for permission bits. */
function bitsQuestion(onSend: (mode: string) => Promise<boolean>): Question {
    return {
        ...askText(t('Permissions, such as 644 or 755'), t('Set'), '644', onSend),
        title: t('Permissions')
    };
}

/** Asks for the name of an archive, and has the panel make it. */
function packQuestion({ root, path }: At, paths: readonly string[], onDone: () => Promise<void>): Question {
    return {
        ...askText(
            t('Name with its format: .zip, .tar.gz, .tar.xz, .tar.zst, .tar.bz2, .tar or .7z'),
            t('Create'),
            'archive.zip',
            (name) =>
                tell(async () => {
                    const to = join(path, name);
                    const answer = await panel.call('filemanager.pack', { body: { root, paths, to } });
                    startJob(
                        to,
                        ({ signal, onProgress }) =>
                            resultOf(answer, { signal, onProgress: (part) => onProgress(part, 1) }),
                        () => void onDone()
                    );
                })
        ),
        title: t('Make an archive')
    };
}

/** Asks where entries are moved or copied to. */
function targetQuestion(
    at: At,
    roots: readonly Root[],
    action: string,
    onSend: (target: Pick<Order, 'to' | 'onConflict'>) => Promise<boolean>
): Question {
    return {
        title: action,
        action,
        fields: {
            root: {
                label: t('To the root'),
                value: at.root,
                options: roots
                    .filter(({ available, readOnly }) => available && !readOnly)
                    .map(({ name }) => ({ value: name, title: name }))
            },
            path: {
                label: t('Into the folder; empty: the root itself'),
                value: at.path,
                isOptional: true
            },
            onConflict: {
                label: t('Where a name is taken'),
                value: 'fail',
                options: [
                    { value: 'fail', title: t('Fail') },
                    { value: 'skip', title: t('Leave out') },
                    { value: 'rename', title: t('Take another name') },
                    { value: 'replace', title: t('Replace') }
                ]
            }
        },
        onSend: ({ root = '', path = '', onConflict = 'fail' }) => onSend({ to: { root, path }, onConflict })
    };
}

function Result({
    result: { done, skipped, failed, items },
    onAgain,
    onClose
}: {
    readonly result: BatchResult;
    readonly onAgain: (items: readonly At[]) => void;
    readonly onClose: () => void;
}) {
    const states = { done: t('Done'), skipped: t('Left out'), failed: t('Failed') };
    const failures = items
        .filter(({ state }) => state === 'failed')
        .map(({ root, path }) => ({ root, path }));
    return (
        <section class="card result" aria-label={t('What became of each')}>
            <div class="row spread">
                <strong role="status">
                    {t('{done} done, {skipped} left out, {failed} failed', { done, skipped, failed })}
                </strong>
                <div class="row">
                    {failures.length === 0 ? null : (
                        <button type="button" onClick={() => onAgain(failures)}>
                            {t('Try the failed ones again')}
                        </button>
                    )}
                    <button type="button" aria-label={t('Close the result')} onClick={onClose}>
                        {t('Close')}
                    </button>
                </div>
            </div>
            <ul role="list" tabIndex={0} aria-label={t('Entries')}>
                {items.map(({ root, path, state, code, to }) => (
                    <li key={`${root}:${path}`} class={state}>
                        <span>{path}</span>{' '}
                        <span class="dim">
                            {to === null ? '' : `→ ${to} · `}
                            {states[state]}
                            {code === null ? '' : ` (${code})`}
                        </span>
                    </li>
                ))}
            </ul>
        </section>
    );
}
