/** What the registry offers. */
import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import type { ApiFailure } from '../../api/failure.ts';
import { Button } from '../../kit/button.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import type { Wanted } from './change-dialog.tsx';
import type { Offer } from './plugin-view.ts';

/** The catalogue, and a package by its name. */
export function Catalogue({ onChoose }: { readonly onChoose: (wanted: Wanted) => void }) {
    const { data, error } = useQuery<{ offers: readonly Offer[]; note: string }, ApiFailure>({
        queryKey: ['catalogue'],
        staleTime: 60_000,
        async queryFn({ signal }) {
            const answer = await call<readonly Offer[]>('GET', '/api/plugins', {
                query: { available: true },
                signal
            });
            return { offers: answer.data, note: answer.message === 'ok' ? '' : answer.message };
        }
    });
    return (
        <>
            <ByName onChoose={onChoose} />
            {data === undefined ? (
                <Waiting error={error} />
            ) : data.offers.length === 0 ? (
                <div class="empty">
                    <Icon name="puzzle" />
                    <p>{t('The registry offers nothing that is not here.')}</p>
                    {data.note === '' ? null : (
                        <details>
                            <summary>{t('What the registry said')}</summary>
                            <small>{data.note}</small>
                        </details>
                    )}
                </div>
            ) : (
                <div class="columns">
                    {data.offers.map((offer) => (
                        <OfferCard key={offer.package} offer={offer} onChoose={onChoose} />
                    ))}
                </div>
            )}
        </>
    );
}

function OfferCard({
    offer: { package: name, title, version, latest, conflict, installed, upgrade },
    onChoose
}: {
    readonly offer: Offer;
    readonly onChoose: (wanted: Wanted) => void;
}) {
    const choose = (): void => onChoose({ kind: 'package', package: name, version });
    return (
        <section class="card">
            <h2>{title}</h2>
            <p class="dim">{name}</p>
            <p class="row">
                <span class="tag">{version ?? latest}</span>
                {installed === null ? null : (
                    <span class="tag">{t('here: {version}', { version: installed })}</span>
                )}
            </p>
            {conflict === null ? null : <p class="warning">{conflict}</p>}
            <footer class="row">
                {installed !== null && !upgrade ? (
                    <span class="dim">{t('Installed')}</span>
                ) : (
                    <Button look="primary" isDisabled={version === null} onPress={choose}>
                        {upgrade ? t('Upgrade …') : t('Install …')}
                    </Button>
                )}
            </footer>
        </section>
    );
}

function ByName({ onChoose }: { readonly onChoose: (wanted: Wanted) => void }) {
    const [name, setName] = useState('');
    return (
        <form
            class="row by-name"
            onSubmit={(event) => {
                event.preventDefault();
                const at = name.lastIndexOf('@');
                onChoose({
                    kind: 'package',
                    package: at > 0 ? name.slice(0, at) : name,
                    version: at > 0 ? name.slice(at + 1) : null
                });
            }}
        >
            <label class="filter">
                <span>{t('A package by its name')}</span>
                <input
                    type="search"
                    placeholder="@scope/plugin@1.2.3"
                    value={name}
                    onInput={(event) => setName(event.currentTarget.value.trim())}
                />
            </label>
            <Button type="submit" isDisabled={name === ''}>
                {t('Look at it')}
            </Button>
        </form>
    );
}
