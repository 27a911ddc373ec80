/** Out: which sections, and whether the secrets come along under a passphrase. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { saveText } from '../../api/download.ts';
import { Button } from '../../kit/button.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { Icon } from '../../kit/icon.tsx';
import { t } from '../../words/t.ts';
import { sectionTitles } from './sections.ts';

/** Shows the card that exports chosen sections. */
export function Export() {
    const titles = sectionTitles();
    const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(Object.keys(titles)));
    const [passphrase, setPassphrase] = useState('');
    const [notes, setNotes] = useState<readonly string[]>([]);
    const toggle = (name: string): void => {
        const next = new Set(chosen);
        if (!next.delete(name)) {
            next.add(name);
        }
        setChosen(next);
    };
    const run = async (): Promise<void> => {
        try {
            const { data } = await call<{ createdAt: string; notes?: readonly string[] }>(
                'POST',
                '/api/import-export/export',
                { body: { sections: [...chosen], ...(passphrase === '' ? {} : { passphrase }) } }
            );
            setNotes(data.notes ?? []);
            saveText(`portico-${data.createdAt.slice(0, 10)}.json`, JSON.stringify(data, null, 2));
        } catch (error) {
            toastFailure(error);
        }
    };
    return (
        <section class="card">
            <h2>{t('Export')}</h2>
            <fieldset class="choices">
                <legend>{t('What it holds')}</legend>
                {Object.entries(titles).map(([name, title]) => (
                    <label key={name} class="inline">
                        <input type="checkbox" checked={chosen.has(name)} onChange={() => toggle(name)} />
                        {title}
                    </label>
                ))}
            </fieldset>
            <TextField
                label={t('Passphrase')}
                type="password"
                autocomplete="new-password"
                isRequired={false}
                help={t('With it the secrets come along, sealed. Without it they are left out.')}
                value={passphrase}
                onChange={setPassphrase}
            />
            {notes.length === 0 ? null : (
                <div class="banner" role="status">
                    <ul class="bare">
                        {notes.map((note) => (
                            <li key={note}>{note}</li>
                        ))}
                    </ul>
                </div>
            )}
            <footer class="row">
                <Button look="primary" isDisabled={chosen.size === 0} onPress={run}>
                    <Icon name="download" />
                    {t('Save the document')}
                </Button>
            </footer>
        </section>
    );
}
