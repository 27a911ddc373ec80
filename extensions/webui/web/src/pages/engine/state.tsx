/** How the engine is, and what starts and stops it. */
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Menu } from '../../kit/menu.tsx';
import { fullTime, quantity, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { EngineStatus } from './engine-status.ts';

/** Shows the buttons that control the engine. */
export function Controls({ status: { state, pending } }: { readonly status: EngineStatus }) {
    const run = async (action: string, done: string): Promise<void> => {
        await call('POST', `/api/proxyengine/${action}`).then(() => toast(done), toastFailure);
        await invalidate('/api/proxyengine');
    };
    const stop = async (): Promise<void> => {
        if (await confirm(t('Stop the engine? No host is served until it starts again.'), t('Stop it'))) {
            await run('stop', t('The engine is stopped'));
        }
    };
    if (state !== 'running') {
        return (
            <Button look="primary" onPress={() => run('start', t('The engine runs'))}>
                <Icon name="play" />
                {t('Start it')}
            </Button>
        );
    }
    return (
        <>
            <Button look={pending > 0 ? 'primary' : 'plain'} onPress={() => run('reload', t('Reloaded'))}>
                {t('Reload')}
            </Button>
            <Menu label={t('More for the engine')}>
                <Button onPress={() => run('restart', t('The engine was started again'))}>
                    {t('Start it again')}
                </Button>
                <Button look="danger" onPress={stop}>
                    {t('Stop it')}
                </Button>
            </Menu>
        </>
    );
}

/** Shows the state of the engine, and what waits to be applied. */
export function State({ status }: { readonly status: EngineStatus }) {
    const { state, version, pid, startedAt, message, pending, revision, appliedRevision, lastApply } = status;
    return (
        <div class="columns">
            <section class="card">
                <h2>{t('Process')}</h2>
                <p class="row">
                    <Badge text={state} /> {version === null ? null : <span>Caddy {version}</span>}
                </p>
                <p class="dim">
                    {startedAt === null ? null : (
                        <span title={fullTime(startedAt)}>
                            {t('Started {when}', { when: relativeTime(startedAt) })}
                            {pid === null ? '' : ` · pid ${pid}`}
                        </span>
                    )}
                </p>
                {message === null ? null : <p class="failure">{message}</p>}
            </section>
            <section class="card">
                <h2>{t('Changes')}</h2>
                <p class="row">
                    {pending === 0 ? (
                        <Badge text="all applied" tone="good" />
                    ) : (
                        <Badge text={t('{count} wait', { count: pending })} tone="warning" />
                    )}
                </p>
                <p class="dim">
                    {t('Revision {applied} of {revision} runs', { applied: appliedRevision, revision })}
                </p>
                {status.autoReload ? null : (
                    <p class="dim">{t('Changes wait for a reload, as the settings say.')}</p>
                )}
            </section>
            <section class="card">
                <h2>{t('Last change')}</h2>
                {lastApply === null ? (
                    <p class="dim">{t('None since the panel started')}</p>
                ) : (
                    <>
                        <p class="row">
                            <Badge text={lastApply.result} />
                            <time dateTime={lastApply.at} title={fullTime(lastApply.at)}>
                                {relativeTime(lastApply.at)}
                            </time>
                        </p>
                        <p class="dim">
                            {t('{time}, {how}', {
                                time: quantity(lastApply.durationMs, 'millisecond'),
                                how: lastApply.reloaded ? t('with a reload') : t('without a reload')
                            })}
                        </p>
                        {lastApply.message === null ? null : <p class="failure">{lastApply.message}</p>}
                    </>
                )}
            </section>
        </div>
    );
}

/** Hosts that the engine does not take. */
export function Refused({ status: { refused } }: { readonly status: EngineStatus }) {
    return refused.length === 0 ? null : (
        <section class="card">
            <h2>{t('Hosts that the engine does not take')}</h2>
            <ul class="bare lined">
                {refused.map(({ id, message }) => (
                    <li key={id}>
                        <Link href={`/hosts/${id}`}>{t('Host {id}', { id })}</Link>
                        <div class="fill failure">{message}</div>
                    </li>
                ))}
            </ul>
        </section>
    );
}
