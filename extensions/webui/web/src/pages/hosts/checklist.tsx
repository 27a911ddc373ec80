/** Whether the host is reached: name, address, engine, certificate and upstream, tried again until all is good. */
import { useQuery } from '@tanstack/preact-query';

import { call } from '../../api/client.ts';
import type { ApiFailure } from '../../api/failure.ts';
import { Button } from '../../kit/button.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Waiting } from '../../kit/page.tsx';
import { said, t } from '../../words/t.ts';

interface Check {
    readonly id: string;
    readonly title: string;
    /** Null: it could not be tried, or does not apply. */
    readonly ok: boolean | null;
    readonly evidence: string;
    readonly remedy: string | null;
}

const againMs = 4_000;
const isGood = (checks: readonly Check[]): boolean => checks.every(({ ok }) => ok !== false);

/** Shows the checklist of one host, and checks again on request. */
export function Checklist({ id }: { readonly id: number }) {
    const { data, error, isFetching, refetch } = useQuery<readonly Check[], ApiFailure>({
        // Not below `/api/hosts`: a change of another host is no reason to try this one again.
        queryKey: ['check', id],
        queryFn: async ({ signal }) =>
            (await call<readonly Check[]>('GET', `/api/hosts/${id}/check`, { signal })).data,
        staleTime: 0,
        refetchInterval: ({ state }) =>
            state.data !== undefined && (isGood(state.data) || state.dataUpdateCount > 30) ? false : againMs
    });
    return (
        <section class="card">
            <header class="row spread">
                <h2>{t('Is it reached?')}</h2>
                <div class="row">
                    <span class="dim" role="status">
                        {data === undefined
                            ? ''
                            : isGood(data)
                              ? t('All is good')
                              : isFetching
                                ? t('Trying …')
                                : t('Tried again every few seconds')}
                    </span>
                    <Button onPress={() => refetch()}>{t('Try again')}</Button>
                </div>
            </header>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <ol class="bare lined">
                    {data.map(({ id: key, title, ok, evidence, remedy }) => (
                        <li key={key}>
                            <span class={`sign ${ok === null ? '' : ok ? 'good' : 'bad'}`}>
                                <Icon name={ok === null ? 'more' : ok ? 'check' : 'close'} />
                            </span>
                            <div class="fill">
                                <strong>{t(title)}</strong>
                                <p class="dim">{said(evidence)}</p>
                                {remedy === null ? null : <p>{said(remedy)}</p>}
                            </div>
                            <Badge
                                text={ok === null ? 'not tried' : ok ? 'good' : 'bad'}
                                tone={ok === null ? 'neutral' : ok ? 'good' : 'bad'}
                            />
                        </li>
                    ))}
                </ol>
            )}
        </section>
    );
}
