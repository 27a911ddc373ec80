/** What happens: tasks under way, and the last entries of the audit log. */
import { Link } from 'wouter-preact';

import { useEntryWords } from '../../api/entry-words.ts';
import { useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { inWords } from '../../schema/schema.ts';
import { showTask } from '../../shell/tasks.tsx';
import { fullTime, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';

interface Entry {
    readonly id: number;
    readonly at: string;
    readonly action: string;
    readonly resource: string;
    readonly actor: { readonly username: string | null; readonly plugin: string | null };
    readonly outcome: string;
}
interface Task {
    readonly id: number;
    readonly kind: string;
    readonly title: string;
    readonly progress: number | null;
}

const shownEntries = 8;
/** That a session goes on, or that a plugin ran a program, is no change. */
const quiet: ReadonlySet<string> = new Set(['refresh', 'exec']);

/** Shows the last changes of the audit log. */
export function LastChanges() {
    const { data } = useRead<readonly Entry[]>('/api/audit?limit=50');
    const entries = (data ?? []).filter(({ action }) => !quiet.has(action)).slice(0, shownEntries);
    const wordsOf = useEntryWords(entries);
    return (
        <section class="card">
            <h2>
                <Link href="/audit">{t('Last changes')}</Link>
            </h2>
            <ul class="bare lined">
                {entries.map((entry) => (
                    <li key={entry.id}>
                        <span class="fill">
                            <strong>{wordsOf(entry)}</strong>{' '}
                            <span class="dim">{entry.actor.username ?? entry.actor.plugin ?? ''}</span>
                        </span>
                        {entry.outcome === 'success' ? null : <Badge text={entry.outcome} />}
                        <time class="dim" dateTime={entry.at} title={fullTime(entry.at)}>
                            {relativeTime(entry.at)}
                        </time>
                    </li>
                ))}
            </ul>
        </section>
    );
}

/** Shows the tasks that run now. */
export function RunningTasks() {
    const { data } = useRead<readonly Task[]>('/api/tasks?state=running&limit=5');
    return (
        <section class="card">
            <h2>
                <Link href="/tasks">{t('Tasks under way')}</Link>
            </h2>
            {data === undefined || data.length === 0 ? (
                <p class="dim">{t('None at the moment')}</p>
            ) : (
                <ul class="bare lined">
                    {data.map(({ id, kind, title, progress }) => (
                        <li key={id}>
                            <span class="fill">{title === '' ? inWords(kind) : title}</span>
                            <progress
                                {...(progress === null ? {} : { value: progress })}
                                aria-label={t('Progress')}
                            />
                            <Button onPress={() => showTask(id)}>{t('Follow')}</Button>
                        </li>
                    ))}
                </ul>
            )}
        </section>
    );
}
