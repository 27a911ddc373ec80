/** The panel's settings, in groups by the first part of their key. What the environment sets cannot be changed here, and says so. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { useDocument } from '../../api/document.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Text } from '../../kit/display/text.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { resolve } from '../../schema/document.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { inWords, type Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

interface Setting {
    readonly key: string;
    readonly value: unknown;
    readonly default: unknown;
    readonly source: 'default' | 'stored' | 'environment';
    readonly unit: string | null;
    readonly description: string;
    readonly restart: boolean;
}

/** Shows the screen *Settings*, one group below the other. */
export default function Settings() {
    const { data, error } = useRead<readonly Setting[]>('/api/settings');
    const groups = Map.groupBy(data ?? [], ({ key }) => key.split('.')[0] ?? '');
    return (
        <Page title={t('Settings')}>
            {data === undefined ? <Waiting error={error} /> : null}
            {[...groups].map(([group, settings]) => (
                <section key={group} class="card">
                    <h2>{t(inWords(group))}</h2>
                    <dl class="settings">
                        {settings.map((each) => (
                            <Row key={each.key} setting={each} />
                        ))}
                    </dl>
                </section>
            ))}
        </Page>
    );
}

/** What a setting is called: its key in words, without its group. */
const titleOf = (key: string): string => t(inWords(key.split('.').slice(1).join(' ')));

function Row({ setting }: { readonly setting: Setting }) {
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const { key, value, source, unit, description, restart } = setting;
    const reset = async (): Promise<void> => {
        await save(key, null).catch(toastFailure);
    };
    return (
        <div>
            <dt>
                <strong>{titleOf(key)}</strong>
                <small>
                    <Text text={t(description)} />
                </small>
            </dt>
            <dd>
                <Value name={key} value={value} schema={unit === null ? {} : { 'x-unit': unit }} />
                <Badge text={t(source)} tone={source === 'stored' ? 'good' : 'neutral'} />
                {restart ? <small>{t('after a restart')}</small> : null}
            </dd>
            <dd class="actions">
                {source === 'environment' || !may('settings:write') ? null : (
                    <>
                        <Button onPress={() => setOpen(true)}>{t('Change')}</Button>
                        {source === 'stored' ? (
                            <Button look="quiet" onPress={reset}>
                                {t('Back to the default')}
                            </Button>
                        ) : null}
                    </>
                )}
            </dd>
            {isOpen ? <Change setting={setting} onClose={() => setOpen(false)} /> : null}
        </div>
    );
}

function Change({ setting, onClose }: { readonly setting: Setting; readonly onClose: () => void }) {
    const { data: document, error } = useDocument('settings');
    const body = document?.paths['/api/settings']?.['put']?.requestBody?.content['application/json']?.schema;
    if (document === undefined || body === undefined) {
        return <Waiting error={error} />;
    }
    const { key, value } = setting;
    const title = titleOf(key);
    const property: Schema = { ...resolve(document, body).properties?.[key], title };
    return (
        <Dialog title={title} onClose={onClose}>
            <SchemaForm
                schema={{ properties: { [key]: property }, required: [key] }}
                initial={value === null ? {} : { [key]: value }}
                action={t('Save')}
                onCancel={onClose}
                onSend={async (sent) => {
                    await save(key, sent[key] ?? null);
                    onClose();
                }}
            />
        </Dialog>
    );
}

async function save(key: string, value: unknown): Promise<void> {
    await call('PUT', '/api/settings', { body: { [key]: value } });
    toast(t('Saved'));
    await invalidate('/api/settings');
}
