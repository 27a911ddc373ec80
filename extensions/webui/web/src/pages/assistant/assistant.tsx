/** The assistant: conversations, answers as they come, and changes that wait for the user's word. */
import { useState } from 'preact/hooks';
import { Link, useLocation, useSearchParams } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Page } from '../../kit/page.tsx';
import { relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { base, type Conversation } from './assistant-view.ts';
import { ConversationView, Question } from './conversation.tsx';

const longestTitle = 60;

/** The screen. The query says which conversation (`id`). */
export default function Assistant() {
    const [search] = useSearchParams();
    const [, go] = useLocation();
    const may = useMay();
    const [first, setFirst] = useState<{ readonly id: number; readonly text: string } | null>(null);
    const { data: conversations = [] } = useRead<readonly Conversation[]>(`${base}/conversations?limit=30`);
    const { data: providers } = useRead<readonly unknown[]>(may('ai:manage') ? `${base}/providers` : null);
    const id = Number(search.get('id')) || null;
    const begin = async (text: string): Promise<void> => {
        const title = text.split('\n')[0]?.slice(0, longestTitle) ?? text;
        await call<Conversation>('POST', `${base}/conversations`, { body: { title } }).then(({ data }) => {
            setFirst({ id: data.id, text });
            go(`/assistant?id=${data.id}`);
            return invalidate(`${base}/conversations`);
        }, toastFailure);
    };
    return (
        <Page
            title={t('Assistant')}
            lead={t('It reads what you may read, and changes nothing without your word.')}
            actions={
                <Link class="button" href="/p/ai">
                    {t('Providers, tools and changes')}
                </Link>
            }
        >
            {providers?.length === 0 ? (
                <p class="notice">
                    {t('There is no model yet.')}{' '}
                    <Link href="/p/ai?list=ai.providers">{t('Set one up')}</Link>
                </p>
            ) : null}
            <div class="assistant">
                <nav aria-label={t('Conversations')}>
                    <Link class="button" href="/assistant">
                        {t('New conversation')}
                    </Link>
                    <ul>
                        {conversations.map((each) => (
                            <li key={each.id}>
                                <Link
                                    href={`/assistant?id=${each.id}`}
                                    aria-current={each.id === id ? 'page' : undefined}
                                >
                                    {each.title}
                                    <small>{relativeTime(each.updatedAt)}</small>
                                </Link>
                            </li>
                        ))}
                    </ul>
                </nav>
                {id === null ? (
                    <div class="chat">
                        <p class="empty">{t('Ask about hosts, certificates, logs, or what to change.')}</p>
                        <Question isBusy={false} onAsk={begin} />
                    </div>
                ) : (
                    <ConversationView key={id} id={id} first={first?.id === id ? first.text : null} />
                )}
            </div>
        </Page>
    );
}
