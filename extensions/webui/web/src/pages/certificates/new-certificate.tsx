/** A new certificate: ordered from an authority, or uploaded. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { filled } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';

type Source = 'acme' | 'upload';

const order = (): Schema => ({
    properties: {
        domains: {
            type: 'array',
            items: { type: 'string' },
            title: t('Names that it covers'),
            description: t('`*.example.com` covers every name one level below')
        },
        dnsProviderId: {
            type: ['integer', 'null'],
            title: t('DNS provider that proves the names'),
            description: t('Empty: the default one'),
            'x-ui': { ref: 'dnsProviders.list' }
        },
        name: { type: 'string', title: t('Name in this panel') },
        autoRenew: { type: 'boolean', title: t('Renew it before it ends'), default: true },
        acme: {
            type: ['object', 'null'],
            title: t('Authority'),
            'x-ui': { advanced: true },
            properties: {
                directory: { type: 'string', title: t('Address of its directory') },
                email: { type: 'string', title: t('E-mail') }
            }
        }
    },
    required: ['domains']
});

const upload = (): Schema => ({
    properties: {
        name: { type: 'string', title: t('Name in this panel') },
        certificate: pem(t('Certificate with its chain'), 'CERTIFICATE'),
        key: pem(t('Private key'), 'PRIVATE KEY')
    },
    required: ['certificate', 'key']
});

/** The fields of an upload that replaces what is there. */
export const replacement = (): Schema => {
    const { certificate = {}, key = {} } = upload().properties ?? {};
    return { properties: { certificate, key }, required: ['certificate', 'key'] };
};

/** Shows the dialog that issues or uploads a certificate. */
export function NewCertificate({ onClose }: { readonly onClose: () => void }) {
    const [source, setSource] = useState<Source>('acme');
    const send = async (value: Readonly<Record<string, unknown>>): Promise<void> => {
        const body = { source, ...filled(value) };
        const { status, data } = await call<{ id: number }>('POST', '/api/certificates', { body });
        if (status === 202) {
            showTask(data.id);
        } else {
            toast(t('Saved'));
        }
        await invalidate('/api/certificates');
        onClose();
    };
    return (
        <Dialog title={t('New certificate')} onClose={onClose} isWide>
            <fieldset class="tiles">
                <legend class="offscreen">{t('From')}</legend>
                <label class="tile">
                    <input
                        type="radio"
                        name="source"
                        checked={source === 'acme'}
                        onChange={() => setSource('acme')}
                    />
                    <strong>{t('Order it')}</strong>
                    <small>{t('From a public authority, proved by a DNS record')}</small>
                </label>
                <label class="tile">
                    <input
                        type="radio"
                        name="source"
                        checked={source === 'upload'}
                        onChange={() => setSource('upload')}
                    />
                    <strong>{t('Upload it')}</strong>
                    <small>{t('You have certificate and key')}</small>
                </label>
            </fieldset>
            <SchemaForm
                key={source}
                schema={source === 'acme' ? order() : upload()}
                initial={{}}
                action={source === 'acme' ? t('Order it') : t('Upload it')}
                onCancel={onClose}
                onSend={send}
            />
        </Dialog>
    );
}

function pem(title: string, label: string): Schema {
    return {
        type: 'string',
        title,
        contentMediaType: 'application/x-pem-file',
        examples: [`-----BEGIN ${label}-----`]
    };
}
