/** A new provider, or a change of one: the fields are those of its type. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';
import { base, initialOf, type Provider, type ProviderType, schemaOf, typed } from './dns-view.ts';

/** The dialog. @param provider - null for a new one */
export function ProviderDialog({
    provider,
    types,
    onClose
}: {
    readonly provider: Provider | null;
    readonly types: readonly ProviderType[];
    readonly onClose: () => void;
}) {
    const [name, setName] = useState(provider?.type ?? types[0]?.type ?? '');
    const type = types.find((each) => each.type === name);
    const send = async ({ credentials, ...rest }: Readonly<Record<string, unknown>>): Promise<void> => {
        const body = { ...rest, type: name, credentials: typed(credentials) };
        await (provider === null
            ? call('POST', base, { body })
            : call('PUT', `${base}/${provider.id}`, { body, version: provider.version }));
        toast(t('Saved'));
        await invalidate(base);
        onClose();
    };
    return (
        <Dialog
            title={provider === null ? t('New provider') : t('Change {name}', { name: provider.name })}
            onClose={onClose}
            isWide
        >
            <div class="field">
                <label for="provider-type">{t('Type')}</label>
                <select
                    id="provider-type"
                    value={name}
                    onChange={(event) => setName(event.currentTarget.value)}
                >
                    {types.map((each) => (
                        <option key={each.type} value={each.type}>
                            {each.label}
                        </option>
                    ))}
                </select>
                {types.length > 1 ? null : <small>{t('The command lego brings many more types.')}</small>}
            </div>
            {type === undefined ? null : (
                <SchemaForm
                    key={name}
                    schema={schemaOf(type, provider?.type === name ? provider.credentials : null)}
                    initial={provider?.type === name ? initialOf(type, provider) : { name: provider?.name }}
                    action={t('Save')}
                    onCancel={onClose}
                    onSend={send}
                />
            )}
        </Dialog>
    );
}
