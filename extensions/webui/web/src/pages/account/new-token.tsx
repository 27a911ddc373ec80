/** A new API token: what it may do is ticked, never more than the user may. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { useTitles } from '../../api/document.ts';
import { ApiFailure } from '../../api/failure.ts';
import { invalidate, useMe } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { useSubmit } from '../../kit/forms/once.ts';
import { TextField } from '../../kit/forms/text-field.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';

/** What a token is filled in with before the user changes it. */
interface Suggested {
    readonly name: string;
    readonly permissions: readonly string[];
}

/** The dialog. The token is shown once, at its end. @param onMade - is told the token, where the page behind it needs it */
export function NewToken({
    suggested,
    onMade,
    onClose
}: {
    readonly suggested?: Suggested;
    readonly onMade?: (token: string) => void;
    readonly onClose: () => void;
}) {
    const [token, setToken] = useState<string | null>(null);
    const made = (token: string): void => {
        setToken(token);
        onMade?.(token);
    };
    return (
        <Dialog title={t('New token')} onClose={onClose} isWide>
            {token === null ? (
                <TokenForm suggested={suggested} onMade={made} onCancel={onClose} />
            ) : (
                <>
                    <p>{t('Copy the token now. It is never shown again.')}</p>
                    <p class="row">
                        <code class="clip">{token}</code>
                        <CopyButton text={token} />
                    </p>
                    <footer>
                        <Button look="primary" onPress={onClose}>
                            {t('I have kept it')}
                        </Button>
                    </footer>
                </>
            )}
        </Dialog>
    );
}

function TokenForm({
    suggested = { name: '', permissions: [] },
    onMade,
    onCancel
}: {
    readonly suggested: Suggested | undefined;
    readonly onMade: (token: string) => void;
    readonly onCancel: () => void;
}) {
    const [name, setName] = useState(suggested.name);
    const [day, setDay] = useState('');
    const [given, setGiven] = useState<ReadonlySet<string>>(new Set(suggested.permissions));
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const send = async (): Promise<void> => {
        try {
            const body = {
                name,
                permissions: [...given],
                ...(day === '' ? {} : { expiresAt: `${day}T00:00:00.000Z` })
            };
            onMade((await call<{ token: string }>('POST', '/api/auth/tokens', { body })).data.token);
            await invalidate('/api/auth');
        } catch (error) {
            setFailure(error instanceof ApiFailure ? error : null);
        }
    };
    const { isBusy, onSubmit } = useSubmit(send);
    return (
        <form onSubmit={onSubmit}>
            <TextField
                label={t('Name')}
                autocomplete="off"
                value={name}
                error={failure?.fields['name'] ?? ''}
                onChange={setName}
            />
            <Permissions given={given} onChange={setGiven} />
            <label class="field">
                <span>
                    {t('Ends at')} <span class="dim">{t('A year from now by default')}</span>
                </span>
                <input type="date" value={day} onInput={(event) => setDay(event.currentTarget.value)} />
            </label>
            {failure === null || failure.fields['name'] !== undefined ? null : <Waiting error={failure} />}
            <footer>
                <Button onPress={onCancel}>{t('Cancel')}</Button>
                <Button
                    look="primary"
                    type="submit"
                    isDisabled={name === '' || given.size === 0}
                    isSending={isBusy}
                >
                    {t('Make the token')}
                </Button>
            </footer>
        </form>
    );
}

/** The permissions of the user, in groups by area. */
function Permissions({
    given,
    onChange
}: {
    readonly given: ReadonlySet<string>;
    readonly onChange: (given: ReadonlySet<string>) => void;
}) {
    const own = useMe()?.permissions ?? [];
    const titleOf = useTitles();
    const areas = Map.groupBy(own, (name) => name.split(':')[0] ?? '');
    const toggle = (name: string): void => {
        const next = new Set(given);
        if (!next.delete(name)) {
            next.add(name);
        }
        onChange(next);
    };
    return (
        <fieldset>
            <legend>{t('What it may do')}</legend>
            <p class="row compact">
                <Button onPress={() => onChange(new Set(own.filter((name) => name.endsWith(':read'))))}>
                    {t('Only read')}
                </Button>
                <Button onPress={() => onChange(new Set(own))}>{t('All that I may')}</Button>
                <Button look="quiet" onPress={() => onChange(new Set())}>
                    {t('Choose none')}
                </Button>
            </p>
            <div class="areas" role="group" aria-label={t('Permissions')} tabIndex={0}>
                {[...areas].map(([area, names]) => (
                    <div key={area}>
                        <strong>{titleOf(area)}</strong>
                        {names.map((name) => (
                            <label key={name} class="inline">
                                <input
                                    type="checkbox"
                                    aria-label={name}
                                    checked={given.has(name)}
                                    onChange={() => toggle(name)}
                                />
                                {name.split(':')[1]}
                            </label>
                        ))}
                    </div>
                ))}
            </div>
        </fieldset>
    );
}
