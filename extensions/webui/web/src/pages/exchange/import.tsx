/** In: first a plan of what would change, then the change. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Waiting } from '../../kit/page.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import { Plan, type PlanView } from './plan.tsx';

type Mode = 'merge' | 'replace';

/** Shows the card that plans an import, and applies it. */
export function Import() {
    const [document, setDocument] = useState<unknown>(null);
    const [passphrase, setPassphrase] = useState('');
    const [mode, setMode] = useState<Mode>('merge');
    const [plan, setPlan] = useState<PlanView | null>(null);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const body = { document, mode, ...(passphrase === '' ? {} : { passphrase }) };
    const read = async (file: File | undefined): Promise<void> => {
        setPlan(null);
        setDocument(await parse(file));
    };
    const look = async (): Promise<void> => {
        setFailure(null);
        setPlan(null);
        try {
            const answer = await call<PlanView>('POST', '/api/import-export/import', {
                body: { ...body, dryRun: true }
            });
            setPlan(answer.data);
        } catch (error) {
            setFailure(error instanceof ApiFailure ? error : null);
        }
    };
    return (
        <section class="card">
            <h2>{t('Import')}</h2>
            <label class="field">
                <span>{t('Document')}</span>
                <input
                    type="file"
                    accept="application/json,.json"
                    onChange={(event) => void read(event.currentTarget.files?.[0])}
                />
            </label>
            <TextField
                label={t('Passphrase')}
                type="password"
                autocomplete="off"
                isRequired={false}
                help={t('Only where the document was sealed with one.')}
                value={passphrase}
                onChange={setPassphrase}
            />
            <ModeChoice
                mode={mode}
                onChange={(next) => {
                    setMode(next);
                    setPlan(null);
                }}
            />
            {failure === null ? null : <Waiting error={failure} />}
            {plan === null ? null : <Plan plan={plan} />}
            <footer class="row">
                <Button
                    look={plan === null ? 'primary' : 'plain'}
                    isDisabled={document === null}
                    onPress={look}
                >
                    {t('See the plan')}
                </Button>
                {plan === null ? null : (
                    <Button look={mode === 'replace' ? 'danger' : 'primary'} onPress={() => run(mode, body)}>
                        <Icon name="upload" />
                        {t('Import')}
                    </Button>
                )}
            </footer>
        </section>
    );
}

/** The document in a file; null, and a notice, where there is none. */
async function parse(file: File | undefined): Promise<unknown> {
    try {
        return file === undefined ? null : JSON.parse(await file.text());
    } catch {
        toastFailure(new Error(t('This file is no export of a panel')));
        return null;
    }
}

async function run(mode: Mode, body: unknown): Promise<void> {
    const question =
        mode === 'replace'
            ? t('Replace all that the plan names? What is not in the document is removed.')
            : t('Import what the plan names?');
    if (await confirm(question, t('Import'))) {
        await call<{ id: number }>('POST', '/api/import-export/import', { body }).then(
            ({ data }) => showTask(data.id),
            toastFailure
        );
    }
}

function ModeChoice({ mode, onChange }: { readonly mode: Mode; readonly onChange: (mode: Mode) => void }) {
    const choices = [
        ['merge', t('Add and change'), t('What is here and not in the document stays')],
        ['replace', t('Replace'), t('What is here and not in the document is removed')]
    ] as const;
    return (
        <fieldset class="tiles">
            <legend class="offscreen">{t('How')}</legend>
            {choices.map(([value, title, text]) => (
                <label key={value} class="tile">
                    <input
                        type="radio"
                        name="mode"
                        checked={mode === value}
                        onChange={() => onChange(value)}
                    />
                    <strong>{title}</strong>
                    <small>{text}</small>
                </label>
            ))}
        </fieldset>
    );
}
