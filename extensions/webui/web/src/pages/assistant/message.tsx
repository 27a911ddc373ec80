/** One question or answer, with the calls that it made. */
import { Text } from '../../kit/display/text.tsx';
import { Badge, Json } from '../../kit/display/value.tsx';
import { t } from '../../words/t.ts';
import { type Called, piecesOf } from './assistant-view.ts';

/** Shows it. The text of a model is text: code stands out, and nothing else is mark-up. */
export function MessageView({
    role,
    text,
    calls,
    attachments = [],
    reason = null,
    isUnderWay = false
}: {
    readonly role: 'user' | 'assistant';
    readonly text: string;
    readonly calls: readonly Called[];
    readonly attachments?: readonly string[];
    readonly reason?: string | null;
    readonly isUnderWay?: boolean;
}) {
    return (
        <article class={`message by-${role}`} aria-label={role === 'user' ? t('You') : t('Assistant')}>
            {calls.map((each) => (
                <Call key={each.id} called={each} />
            ))}
            {piecesOf(text).map(({ isCode, text: part }, index) =>
                isCode ? (
                    <pre key={index} tabIndex={0}>
                        {part}
                    </pre>
                ) : (
                    <p key={index}>
                        <Text text={part.trim().replace(/\*\*([^*\n]+)\*\*/g, '$1')} />
                    </p>
                )
            )}
            {attachments.length === 0 ? null : <small class="dim">{attachments.join(', ')}</small>}
            {isUnderWay ? <p class="dim">{t('Thinking …')}</p> : null}
            {reason === null || reason === 'stop' || reason === 'approval' ? null : <Badge text={reason} />}
        </article>
    );
}

function Call({ called: { route, status, message, arguments: given, data } }: { readonly called: Called }) {
    const tone = status === null ? 'busy' : status < 300 ? 'good' : 'bad';
    return (
        <details class="call">
            <summary>
                <code>{route}</code>{' '}
                <Badge text={status === null ? t('waits') : String(status)} tone={tone} />
            </summary>
            {message === null || message === '' ? null : <p>{message}</p>}
            <h3>{t('Arguments')}</h3>
            <Json value={given} />
            {data === undefined || data === null ? null : (
                <>
                    <h3>{t('Result')}</h3>
                    <Json value={data} />
                </>
            )}
        </details>
    );
}
