/** A test of a provider: a TXT record is written, looked up and removed. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { TextField } from '../../kit/forms/text-field.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { base, type Provider, type TestResult } from './dns-view.ts';

/** Shows the dialog that tests a DNS provider. */
export function TestDialog({
    provider,
    onClose
}: {
    readonly provider: Provider;
    readonly onClose: () => void;
}) {
    const [domain, setDomain] = useState('');
    const [result, setResult] = useState<TestResult | null>(null);
    const test = async (): Promise<void> => {
        setResult(null);
        await call<TestResult>('POST', `${base}/${provider.id}/test`, {
            body: domain === '' ? {} : { domain }
        }).then(({ data }) => setResult(data), toastFailure);
    };
    return (
        <Dialog title={t('Test {name}', { name: provider.name })} onClose={onClose}>
            <TextField
                label={t('Name to try')}
                value={domain}
                autocomplete="off"
                isRequired={false}
                help={t('May be left out where the provider names its zone.')}
                onChange={setDomain}
            />
            {result === null ? null : (
                <div role="status">
                    <p class="mono">{result.record}</p>
                    <ul class="bare lined">
                        {result.steps.map(({ step, ok, message, milliseconds }) => (
                            <li key={step}>
                                <div class="fill">
                                    <strong>{t(step)}</strong>
                                    <p class="dim">{message}</p>
                                </div>
                                <span class="number dim">{quantity(milliseconds, 'millisecond')}</span>
                                <Badge text={ok ? t('good') : t('bad')} tone={ok ? 'good' : 'bad'} />
                            </li>
                        ))}
                    </ul>
                </div>
            )}
            <footer>
                <Button onPress={onClose}>{t('Close')}</Button>
                <Button look="primary" onPress={test}>
                    {t('Test')}
                </Button>
            </footer>
        </Dialog>
    );
}
