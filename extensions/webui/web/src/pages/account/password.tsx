import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { invalidate } from '../../api/queries.ts';
import { logOut } from '../../api/session/login.ts';
import { Button } from '../../kit/button.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { t } from '../../words/t.ts';

/** The form that changes the user's own password. */
export function PasswordForm({ onDone }: { readonly onDone?: () => void }) {
    const [current, setCurrent] = useState('');
    const [next, setNext] = useState('');
    const [fault, setFault] = useState('');
    const send = async (): Promise<void> => {
        try {
            await call('PUT', '/api/auth/password', {
                body: { currentPassword: current, newPassword: next }
            });
            toast(t('The password is changed'));
            setCurrent('');
            setNext('');
            await invalidate('/api/auth');
            onDone?.();
        } catch (error) {
            setFault(error instanceof ApiFailure ? error.message : String(error));
        }
    };
    return (
        <form
            onSubmit={(event) => {
                event.preventDefault();
                void send();
            }}
        >
            <TextField
                type="password"
                label={t('Present password')}
                autocomplete="current-password"
                value={current}
                onChange={setCurrent}
            />
            <TextField
                type="password"
                label={t('New password')}
                autocomplete="new-password"
                value={next}
                onChange={setNext}
            />
            {fault === '' ? null : (
                <p class="failure" role="alert">
                    {fault}
                </p>
            )}
            <Button look="primary" type="submit">
                {t('Change the password')}
            </Button>
        </form>
    );
}

/** The screen of a user who must change the password before anything else. */
export function ForcedPassword() {
    return (
        <main class="login">
            <div class="card">
                <h1>{t('Change your password first')}</h1>
                <PasswordForm />
                <Button look="quiet" onPress={logOut}>
                    {t('Log out')}
                </Button>
            </div>
        </main>
    );
}
