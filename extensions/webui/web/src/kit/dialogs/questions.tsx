/** Questions that code asks the user and waits for: *are you sure*, and the password or code again. */
import { useState } from 'preact/hooks';

import { useMe } from '../../api/queries.ts';
import { stepUp } from '../../api/session/login.ts';
import { t } from '../../words/t.ts';
import { Button } from '../button.tsx';
import { TextField } from '../forms/text-field.tsx';
import { Store, useStore } from '../store.ts';
import { Dialog } from './dialog.tsx';

interface Question {
    readonly kind: 'confirm' | 'step-up';
    readonly text: string;
    readonly action: string;
    readonly answer: (isYes: boolean) => void;
}

const question = new Store<Question | null>(null);

/** Asks before something that cannot be undone. */
export const confirm = (text: string, action = t('Yes')): Promise<boolean> => ask('confirm', text, action);

/** Asks for the password or the code, and makes the session fresh with it. */
export const askToStepUp = (): Promise<boolean> =>
    ask('step-up', t('This action needs your password or your code again.'), t('Go on'));

function ask(kind: Question['kind'], text: string, action: string): Promise<boolean> {
    return new Promise((resolve) => {
        question.set({
            kind,
            text,
            action,
            answer(isYes) {
                question.set(null);
                resolve(isYes);
            }
        });
    });
}

/** The place where questions are shown. */
export function Questions() {
    const asked = useStore(question);
    if (asked === null) {
        return null;
    }
    return asked.kind === 'confirm' ? <Confirmation {...asked} /> : <StepUp {...asked} />;
}

function Confirmation({ text, action, answer }: Question) {
    return (
        <Dialog title={t('Are you sure?')} onClose={() => answer(false)}>
            <p>{text}</p>
            <footer>
                <Button onPress={() => answer(false)}>{t('Cancel')}</Button>
                <Button look="danger" onPress={() => answer(true)}>
                    {action}
                </Button>
            </footer>
        </Dialog>
    );
}

function StepUp({ text, action, answer }: Question) {
    const [proof, setProof] = useState('');
    const [fault, setFault] = useState('');
    const hasTotp = useMe()?.totpEnabled === true;
    const send = async (): Promise<void> => {
        try {
            await stepUp(hasTotp && /^\d{6}$/.test(proof) ? { totp: proof } : { password: proof });
            answer(true);
        } catch (error) {
            setFault(error instanceof Error ? error.message : String(error));
        }
    };
    return (
        <Dialog title={t('Is it you?')} onClose={() => answer(false)}>
            <form
                onSubmit={(event) => {
                    event.preventDefault();
                    void send();
                }}
            >
                <p>{text}</p>
                <TextField
                    label={hasTotp ? t('Password or code') : t('Password')}
                    type="password"
                    autocomplete="current-password"
                    value={proof}
                    error={fault}
                    onChange={setProof}
                />
                <footer>
                    <Button onPress={() => answer(false)}>{t('Cancel')}</Button>
                    <Button look="primary" type="submit">
                        {action}
                    </Button>
                </footer>
            </form>
        </Dialog>
    );
}
