/** A change that the assistant proposes: what it does, bound to these arguments, and the user's answer to it. */
import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { toast, toastBad, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Differences } from '../../kit/display/difference.tsx';
import { Badge, Json } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { type Approval, base } from './assistant-view.ts';

/** The card. @param onDecided - it was approved or refused: the assistant may go on */
export function ApprovalCard({
    approval,
    onDecided
}: {
    readonly approval: Approval;
    readonly onDecided: () => void;
}) {
    const { id, route, plan, hash, effect, dangerous, expiresAt } = approval;
    const decide = async (verdict: 'approve' | 'reject'): Promise<void> => {
        await call<{ readonly answer?: { readonly code: number; readonly message: string } }>(
            'POST',
            `${base}/approvals/${id}/${verdict}`,
            { body: verdict === 'approve' ? { hash } : {} }
        ).then(({ data: { answer } }) => {
            if (answer !== undefined) {
                (answer.code === 0 ? toast : toastBad)(answer.code === 0 ? t('It is done') : answer.message);
            }
            onDecided();
        }, toastFailure);
        await invalidate(base);
    };
    return (
        <section class="card approval" aria-label={t('Approval of {route}', { route })}>
            <header class="row spread">
                <h2>
                    <Icon name="warning" /> {t('The assistant asks for a change')}
                </h2>
                <span class="row compact">
                    {dangerous ? <Badge text={t('far-reaching')} tone="bad" /> : null}
                    <Badge text={effect} tone={effect === 'destructive' ? 'bad' : 'warning'} />
                </span>
            </header>
            <p>
                <code>
                    {plan.method} {plan.path}
                </code>{' '}
                <span class="dim">{route}</span>
            </p>
            {plan.before === null && plan.after === null ? (
                <Json value={approval.arguments} />
            ) : (
                <Differences before={plan.before} after={plan.after} />
            )}
            {plan.validated === null ? null : (
                <p class={plan.validated.code === 0 ? 'dim' : 'failure'}>
                    {plan.validated.code === 0
                        ? t('The panel checked it: it would take it.')
                        : plan.validated.message}
                </p>
            )}
            <p class="dim">
                {t('Good for this call alone, {hash}. It ends {time}.', {
                    hash: hash.slice(0, 12),
                    time: relativeTime(expiresAt)
                })}
            </p>
            <footer class="row">
                <Button
                    look={effect === 'destructive' ? 'danger' : 'primary'}
                    onPress={() => decide('approve')}
                >
                    {t('Approve')}
                </Button>
                <Button onPress={() => decide('reject')}>{t('Reject')}</Button>
            </footer>
        </section>
    );
}
