/** The login: name and password, the code when the panel asks for it, and the progress of the proof of work. */
import { useState } from 'preact/hooks';

import { ApiFailure } from '../../api/failure.ts';
import { logIn } from '../../api/session/login.ts';
import { Button } from '../../kit/button.tsx';
import { LanguageButton } from '../../kit/language.tsx';
import { TextField } from '../../kit/text-field.tsx';
import { t } from '../../words/t.ts';

/** The screen of a user who is not logged in. */
export function Login() {
    const [username, setUsername] = useState('');
    const [password, setPassword] = useState('');
    const [totp, setTotp] = useState('');
    const [stays, setStays] = useState(false);
    const [tried, setTried] = useState<number | null>(null);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const asksCode = failure?.reason === 'TOTP_REQUIRED' || failure?.reason === 'TOTP_INVALID' || totp !== '';
    const send = async (): Promise<void> => {
        setTried(0);
        try {
            await logIn({ username, password, totp, stays }, setTried);
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
        <main class="login">
            <form
                onSubmit={(event) => {
                    event.preventDefault();
                    void send();
                }}
            >
                <h1>
                    <img src="/favicon.svg" alt="" width="32" height="32" /> Portico
                </h1>
                <TextField
                    label={t('User name')}
                    autocomplete="username"
                    value={username}
                    onChange={setUsername}
                />
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
                <label class="inline">
                    <input
                        type="checkbox"
                        checked={stays}
                        onChange={(event) => setStays(event.currentTarget.checked)}
                    />
                    {t('Stay signed in')}
                </label>
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
                <LanguageButton />
            </form>
        </main>
    );
}

function textOf(failure: ApiFailure): string {
    const seconds = failure.data['retryAfterSeconds'] ?? failure.data['retryAfter'];
    return failure.reason === 'RATE_LIMITED' && seconds !== undefined
        ? t('Too many attempts. Try again in {seconds} s.', { seconds: String(seconds) })
        : t(failure.message);
}
