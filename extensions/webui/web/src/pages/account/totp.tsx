/** The second factor: switched on with a code, and off with password and code. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { invalidate } from '../../api/queries.ts';
import { logOut } from '../../api/session/login.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

interface Enrolment {
    readonly secret: string;
    readonly qr: string;
}

const secretField = (title: string): Schema => ({ type: 'string', title, format: 'password' });

/** Switches the second factor on in three steps: password, code, recovery codes. */
export function TotpSetup({ onDone }: { readonly onDone: () => void }) {
    const [enrolment, setEnrolment] = useState<Enrolment | null>(null);
    const [codes, setCodes] = useState<readonly string[] | null>(null);
    const [password, setPassword] = useState('');
    const [code, setCode] = useState('');
    const [fault, setFault] = useState('');
    const attempt = async (work: () => Promise<void>): Promise<void> => {
        setFault('');
        await work().catch((error: unknown) =>
            setFault(error instanceof ApiFailure ? error.message : String(error))
        );
    };
    if (codes !== null) {
        return <RecoveryCodes codes={codes} onDone={onDone} />;
    }
    const send = (): Promise<void> =>
        attempt(async () => {
            if (enrolment === null) {
                setEnrolment((await call<Enrolment>('POST', '/api/auth/totp', { body: { password } })).data);
            } else {
                setCodes(
                    (await call<{ recoveryCodes: string[] }>('PUT', '/api/auth/totp', { body: { code } }))
                        .data.recoveryCodes
                );
            }
        });
    return (
        <form
            onSubmit={(event) => {
                event.preventDefault();
                void send();
            }}
        >
            {enrolment === null ? (
                <TextField
                    label={t('Password')}
                    type="password"
                    autocomplete="current-password"
                    value={password}
                    onChange={setPassword}
                />
            ) : (
                <>
                    <Secret enrolment={enrolment} />
                    <TextField
                        label={t('Code')}
                        autocomplete="one-time-code"
                        value={code}
                        onChange={setCode}
                    />
                </>
            )}
            {fault === '' ? null : (
                <p class="failure" role="alert">
                    {fault}
                </p>
            )}
            <Button look="primary" type="submit">
                {enrolment === null ? t('Begin') : t('Switch on')}
            </Button>
        </form>
    );
}

/** Switches the second factor off. */
export function TotpRemoval({ onDone }: { readonly onDone: () => void }) {
    const schema: Schema = {
        properties: {
            password: secretField(t('Password')),
            code: secretField(t('Code, or a recovery code'))
        },
        required: ['password', 'code']
    };
    return (
        <SchemaForm
            schema={schema}
            initial={{}}
            action={t('Switch off')}
            onSend={async (body) => {
                await call('DELETE', '/api/auth/totp', { body });
                await invalidate('/api/auth');
                onDone();
            }}
        />
    );
}

/** The screen of a user who must set a second factor up before anything else. */
export function ForcedTotp({ onDone }: { readonly onDone: () => void }) {
    return (
        <main class="login">
            <div class="card">
                <h1>{t('Set a second factor up first')}</h1>
                <TotpSetup onDone={onDone} />
                <Button look="quiet" onPress={logOut}>
                    {t('Log out')}
                </Button>
            </div>
        </main>
    );
}

function Secret({ enrolment: { qr, secret } }: { readonly enrolment: Enrolment }) {
    return (
        <>
            <p>{t('Scan this with your app, or copy the secret. Then enter the code that the app shows.')}</p>
            <img class="qr" src={qr} alt={t('QR code of the secret')} width="200" height="200" />
            <p class="row">
                <code>{secret}</code>
                <CopyButton text={secret} />
            </p>
        </>
    );
}

function RecoveryCodes({
    codes,
    onDone
}: {
    readonly codes: readonly string[];
    readonly onDone: () => void;
}) {
    return (
        <>
            <p>
                {t(
                    'Keep these recovery codes. Each works once, when you do not have your app. They are shown only now.'
                )}
            </p>
            <pre tabIndex={0}>{codes.join('\n')}</pre>
            <footer>
                <CopyButton text={codes.join('\n')} />
                <Button look="primary" onPress={onDone}>
                    {t('I have kept them')}
                </Button>
            </footer>
        </>
    );
}
