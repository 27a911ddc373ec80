/** The fields of each type of channel: checks what a client sent, and merges it into what is stored. */
import type { Invalid } from '../../../platform/errors.ts';
import { OutboundFailure } from '../../../platform/outbound/failure.ts';
import { readTarget, readUrl } from '../../../platform/outbound/target.ts';
import { type EmailFields, type EmailSecurity, usualPorts } from '../delivery/email.ts';
import { newSecret, readSecret, type WebhookFields } from '../delivery/webhook.ts';
import type { ChannelUpdate } from '../schema.ts';

/** The checked fields of a channel, with its secret. */
export type ChannelFields =
    | {
          readonly type: 'webhook';
          readonly fields: WebhookFields;
          readonly secret: string;
          /** Whether the secret was generated here, so that its owner has not seen it yet. */
          readonly generated: boolean;
      }
    | { readonly type: 'email'; readonly fields: EmailFields; readonly secret: string | null };

const webhookKeys = ['url', 'secret'] as const;
const emailKeys = ['host', 'port', 'security', 'username', 'password', 'from', 'to'] as const;

/** What is shown of the address of a webhook: its origin. The rest is a credential; an address that is sent back as it was read is kept. */
export const shownUrl = (url: string): string => new URL(url).origin;

/** Merges what was sent into the fields that there are (null on creation). Adds every fault to `faults`, and then returns null. */
export function mergeFields(
    type: 'webhook' | 'email',
    sent: ChannelUpdate,
    before: ChannelFields | null,
    faults: Invalid[]
): ChannelFields | null {
    const count = faults.length;
    const add = (path: string, message: string): void =>
        void faults.push({ path, message: `${path} ${message}` });
    for (const key of type === 'webhook' ? emailKeys : webhookKeys) {
        if (sent[key] !== undefined) {
            add(key, `does not belong to a channel of type ${type}`);
        }
    }
    const merged =
        type === 'webhook'
            ? webhook(sent, before?.type === 'webhook' ? before : null, add)
            : email(sent, before?.type === 'email' ? before : null, add);
    return faults.length > count ? null : merged;
}

type Add = (path: string, message: string) => void;

function webhook(
    sent: ChannelUpdate,
    before: Extract<ChannelFields, { type: 'webhook' }> | null,
    add: Add
): ChannelFields {
    const old = before?.fields.url;
    const url = sent.url === undefined || (old !== undefined && sent.url === shownUrl(old)) ? old : sent.url;
    if (url === undefined) {
        add('url', 'is required');
    } else {
        check('url', () => readUrl(url), add);
    }
    const given = sent.secret === undefined ? before?.secret : readSecret(sent.secret);
    if (given === null) {
        add('secret', 'must be whsec_ and base64 of 24 to 64 bytes');
    }
    return {
        type: 'webhook',
        fields: { url: url ?? '' },
        secret: given ?? newSecret(),
        generated: given === undefined
    };
}

function email(
    sent: ChannelUpdate,
    before: Extract<ChannelFields, { type: 'email' }> | null,
    add: Add
): ChannelFields {
    const old = before?.fields;
    const security: EmailSecurity = sent.security ?? old?.security ?? 'starttls';
    // A port that still has the default follows the kind of connection.
    const port =
        sent.port ??
        (old === undefined || old.port === usualPorts[old.security] ? usualPorts[security] : old.port);
    const fields: EmailFields = {
        host: sent.host ?? old?.host ?? '',
        port,
        security,
        username: sent.username === undefined ? (old?.username ?? null) : sent.username,
        from: sent.from ?? old?.from ?? '',
        to: sent.to ?? old?.to ?? []
    };
    for (const key of ['host', 'from', 'to'] as const) {
        if (fields[key].length === 0) {
            add(key, 'is required');
        }
    }
    if (fields.host !== '') {
        check('host', () => readTarget(fields.host, fields.port), add);
    }
    const kept = fields.username === null ? null : (before?.secret ?? null);
    const moved =
        old !== undefined && (fields.host !== old.host || (security === 'none' && old.security !== 'none'));
    if (sent.password !== undefined && fields.username === null) {
        add('username', 'is required with a password');
    } else if (sent.password === undefined && fields.username !== null && kept === null) {
        add('password', 'is required with a user name');
    } else if (sent.password === undefined && kept !== null && moved) {
        // An actor who may change a channel must not learn its password by having it sent to another server.
        add('password', 'is to be sent again: it would go to another server, or in the clear');
    }
    return { type: 'email', fields, secret: sent.password ?? kept };
}

function check(path: string, read: () => unknown, add: Add): void {
    try {
        read();
    } catch (error) {
        if (!(error instanceof OutboundFailure)) {
            throw error;
        }
        add(path, `is refused: ${error.message}`);
    }
}
