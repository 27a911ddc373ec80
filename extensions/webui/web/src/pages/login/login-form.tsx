/** The form of a login: name and password, the code when the panel asks for it, and the progress of the proof of work. */
import { useState } from 'preact/hooks';

import { ApiFailure } from '../../api/failure.ts';
import { logIn, logInAgain } from '../../api/session/login.ts';
import { Button } from '../../kit/button.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { t } from '../../words/t.ts';

/** Shows the form of the login, and its second factor when the panel asks for it. */
export function LoginForm({
    again = null,
    onDone = () => undefined
}: {
    /** Name of the user whose session has ended; another one cannot go on with it. */
    readonly again?: string | null;
    readonly onDone?: () => void;
}) {
    const [typed, setUsername] = useState('');
    const [password, setPassword] = useState('');
    const [totp, setTotp] = useState('');
    const [stays, setStays] = useState(false);
    const [tried, setTried] = useState<number | null>(null);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const asksCode = failure?.reason === 'TOTP_REQUIRED' || failure?.reason === 'TOTP_INVALID' || totp !== '';
    const username = again ?? typed;
    const send = async (): Promise<void> => {
        setTried(0);
        try {
            await (again === null
                ? logIn({ username, password, totp, stays }, setTried)
                : logInAgain({ username, password, totp }, setTried));
            onDone();
        } catch (error) {
            if (!(error instanceof ApiFailure)) {
                throw error;
            }
            setFailure(error);
        } finally {
            setTried(null);
        }
    };
    return (
        <form
            onSubmit={(event) => {
                event.preventDefault();
                void send();
            }}
        >
            {again === null ? (
                <TextField
                    label={t('User name')}
                    autocomplete="username"
                    value={typed}
                    onChange={setUsername}
                />
            ) : null}
            <TextField
                label={t('Password')}
                autocomplete="current-password"
                type="password"
                value={password}
                onChange={setPassword}
            />
            {asksCode ? (
                <TextField
                    label={t('Code of the second factor, or a recovery code')}
                    autocomplete="one-time-code"
                    value={totp}
                    onChange={setTotp}
                />
            ) : null}
            {again === null ? (
                <label class="inline">
                    <input
                        type="checkbox"
                        checked={stays}
                        onChange={(event) => setStays(event.currentTarget.checked)}
                    />
                    {t('Stay signed in')}
                </label>
            ) : null}
            <Outcome failure={failure} tried={tried} />
        </form>
    );
}

/** Why the last attempt failed, the button of the next one, and how far its proof is. */
function Outcome({ failure, tried }: { readonly failure: ApiFailure | null; readonly tried: number | null }) {
    return (
        <>
            {failure === null ? null : (
                <p class="failure" role="alert">
                    {textOf(failure)}
                </p>
            )}
            <Button look="primary" type="submit" isDisabled={tried !== null}>
                {t('Log in')}
            </Button>
            {tried === null ? null : (
                <label class="proof">
                    <progress value={tried} /> {t('Proving that you are no robot …')}
                </label>
            )}
        </>
    );
}

function textOf(failure: ApiFailure): string {
    const seconds = failure.data['retryAfterSeconds'] ?? failure.data['retryAfter'];
    return failure.reason === 'RATE_LIMITED' && seconds !== undefined
        ? t('Too many attempts. Try again in {seconds} s.', { seconds: String(seconds) })
        : t(failure.message);
}
