/** A new channel, or a change of one: the fields of its type. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { useDocument } from '../../api/document.ts';
import { invalidate } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { toast } from '../../kit/dialogs/toast.tsx';
import { Waiting } from '../../kit/page.tsx';
import { changed, filled, initialValue } from '../../schema/changes.ts';
import { resolve } from '../../schema/document.ts';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** A channel as `GET /api/settings/channels` shows it. */
export interface ChannelView {
    readonly id: number;
    readonly name: string;
    readonly type: 'webhook' | 'email';
    readonly events: readonly string[];
    readonly enabled: boolean;
    readonly url?: string;
    readonly to?: readonly string[];
    readonly version: number;
}

const fields = {
    webhook: ['name', 'url', 'secret', 'events', 'enabled'],
    email: ['name', 'to', 'from', 'host', 'port', 'security', 'username', 'password', 'events', 'enabled']
} as const;
const required = { webhook: ['name', 'url'], email: ['name', 'to', 'from', 'host'] };

/** The dialog. @param channel - null for a new one */
export function ChannelDialog({
    channel,
    onClose
}: {
    readonly channel: ChannelView | null;
    readonly onClose: () => void;
}) {
    const { data: document, error } = useDocument('settings');
    const [type, setType] = useState<'webhook' | 'email'>(channel?.type ?? 'webhook');
    const [secret, setSecret] = useState<string | null>(null);
    const body =
        document?.paths['/api/settings/channels']?.['post']?.requestBody?.content['application/json']?.schema;
    if (document === undefined || body === undefined) {
        return <Waiting error={error} />;
    }
    const schema = schemaOf(resolve(document, body), type);
    const before = channel === null ? {} : { ...channel };
    const send = async (value: Readonly<Record<string, unknown>>): Promise<void> => {
        const { data } =
            channel === null
                ? await call<{ secret?: string }>('POST', '/api/settings/channels', {
                      body: { type, ...filled(value) }
                  })
                : await call<{ secret?: string }>('PUT', `/api/settings/channels/${channel.id}`, {
                      body: changed(schema, before, value),
                      version: channel.version
                  });
        await invalidate('/api/settings/channels');
        if (channel === null && data.secret?.startsWith('whsec_') === true) {
            setSecret(data.secret);
        } else {
            toast(t('Saved'));
            onClose();
        }
    };
    if (secret !== null) {
        return <Secret secret={secret} onClose={onClose} />;
    }
    return (
        <Dialog
            title={channel === null ? t('New channel') : t('Change {name}', { name: channel.name })}
            onClose={onClose}
            isWide
        >
            {channel === null ? <TypeChoice type={type} onChange={setType} /> : null}
            <SchemaForm
                key={type}
                schema={schema}
                initial={initialValue(schema, before)}
                action={t('Save')}
                onCancel={onClose}
                onSend={send}
            />
        </Dialog>
    );
}

function TypeChoice({
    type,
    onChange
}: {
    readonly type: string;
    readonly onChange: (type: 'webhook' | 'email') => void;
}) {
    const choices = [
        ['webhook', t('Webhook'), t('A signed request to an address of yours')],
        ['email', t('E-mail'), t('A message over your mail server')]
    ] as const;
    return (
        <fieldset class="tiles">
            <legend class="offscreen">{t('Type')}</legend>
            {choices.map(([value, title, text]) => (
                <label key={value} class="tile">
                    <input
                        type="radio"
                        name="type"
                        checked={type === value}
                        onChange={() => onChange(value)}
                    />
                    <strong>{title}</strong>
                    <small>{text}</small>
                </label>
            ))}
        </fieldset>
    );
}

function Secret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
    return (
        <Dialog title={t('The secret of the channel')} onClose={onClose}>
            <p>{t('Your receiver checks the signature with it. It is shown only now.')}</p>
            <p class="row">
                <code class="clip">{secret}</code>
                <CopyButton text={secret} />
            </p>
            <footer>
                <Button look="primary" onPress={onClose}>
                    {t('I have kept it')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** The fields of a type; what the panel's texts say before the colon is the type itself. */
function schemaOf(schema: Schema, type: 'webhook' | 'email'): Schema {
    return {
        required: required[type],
        properties: Object.fromEntries(
            fields[type].map((name) => {
                const { description, ...rest } = schema.properties?.[name] ?? {};
                const help = description?.replace(/^(webhook|email): /, '');
                return [name, { ...rest, ...(help === undefined ? {} : { description: help }) }];
            })
        )
    };
}
