/** One conversation: what was said, the answer as it comes, the approvals that wait, and the next question. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { useRead } from '../../api/queries.ts';
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { useAnswer } from './answering.ts';
import { ApprovalCard } from './approval.tsx';
import { type Approval, base, type Message } from './assistant-view.ts';
import { MessageView } from './message.tsx';

/** Shows it. @param first - a question that is asked at once */
export function ConversationView({ id, first }: { readonly id: number; readonly first: string | null }) {
    const path = `${base}/conversations/${id}`;
    const messages = useRows<Message>(`${path}/messages`, { limit: 50 });
    const { data: approvals = [] } = useRead<readonly Approval[]>(`${base}/approvals?state=pending`);
    const { answer, begin } = useAnswer(id);
    const end = useRef<HTMLDivElement>(null);
    const ask = (text: string): Promise<void> => begin('messages', text);
    useEffect(() => {
        if (first !== null) {
            void ask(first);
        }
    }, []);
    const shown = messages.rows.toReversed();
    useEffect(() => {
        end.current?.scrollIntoView({ block: 'end' });
    }, [shown.length, answer?.text, approvals.length]);
    if (messages.isPending) {
        return <Waiting error={messages.error} />;
    }
    const last = shown.at(-1);
    return (
        <div class="chat">
            <div class="messages" role="log" aria-label={t('Conversation')} tabIndex={0}>
                {messages.more === null ? null : (
                    <Button look="quiet" onPress={messages.more}>
                        {t('Show older ones')}
                    </Button>
                )}
                {shown
                    .filter(({ reason, role }) => answer === null || role === 'user' || reason !== null)
                    .filter(
                        ({ text, role }) =>
                            !(role === 'user' && text === answer?.question && text === last?.text)
                    )
                    .map((each) => (
                        <MessageView key={each.id} {...each} />
                    ))}
                {answer === null ? null : (
                    <>
                        {answer.question === null ? null : (
                            <MessageView role="user" text={answer.question} calls={[]} />
                        )}
                        <MessageView role="assistant" {...answer} isUnderWay={answer.text === ''} />
                    </>
                )}
                {answer === null
                    ? approvals
                          .filter(({ conversationId }) => conversationId === id)
                          .map((each) => (
                              <ApprovalCard
                                  key={each.id}
                                  approval={each}
                                  onDecided={() => void begin('continue', null)}
                              />
                          ))
                    : null}
                <div ref={end} />
            </div>
            <Question
                isBusy={answer !== null}
                onAsk={ask}
                onStop={() => call('POST', `${path}/stop`).catch(toastFailure)}
                onAnew={
                    last?.role === 'assistant' && answer === null ? () => begin('regenerate', null) : null
                }
            />
        </div>
    );
}

/** The field for the next question. Enter asks; Shift and Enter make a new line. */
export function Question({
    isBusy,
    onAsk,
    onStop,
    onAnew
}: {
    readonly isBusy: boolean;
    readonly onAsk: (text: string) => unknown;
    readonly onStop?: () => unknown;
    readonly onAnew?: (() => unknown) | null;
}) {
    const [text, setText] = useState('');
    const ask = (): void => {
        if (text.trim() !== '' && !isBusy) {
            setText('');
            void onAsk(text.trim());
        }
    };
    return (
        <form
            class="question"
            onSubmit={(event) => {
                event.preventDefault();
                ask();
            }}
        >
            <label class="offscreen" for="question">
                {t('Your question')}
            </label>
            <textarea
                id="question"
                rows={3}
                placeholder={t('Why does a host not serve?')}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
                        event.preventDefault();
                        ask();
                    }
                }}
            />
            <div class="row">
                {onAnew === null || onAnew === undefined ? null : (
                    <Button look="quiet" onPress={onAnew}>
                        {t('Answer anew')}
                    </Button>
                )}
                {isBusy && onStop !== undefined ? (
                    <Button onPress={onStop}>{t('Stop')}</Button>
                ) : (
                    <Button look="primary" type="submit" isDisabled={text.trim() === ''}>
                        {t('Ask')}
                    </Button>
                )}
            </div>
        </form>
    );
}
