/** What each type of channel needs, held against what came in; the rest of the file knows no type's fields. */
import type { Invalid } from '../../../platform/errors.ts';
import { OutboundFailure } from '../../../platform/outbound/failure.ts';
import { readTarget, readUrl } from '../../../platform/outbound/target.ts';
import { type EmailFields, type EmailSecurity, usualPorts } from '../delivery/email.ts';
import { newSecret, readSecret, type WebhookFields } from '../delivery/webhook.ts';
import type { ChannelUpdate } from '../schema.ts';

/** Fields of a channel with its secret, checked. */
export type Settled =
    | {
          readonly type: 'webhook';
          readonly fields: WebhookFields;
          readonly secret: string;
          /** The secret was made here, and its owner has not seen it. */ readonly made: boolean;
      }
    | { readonly type: 'email'; readonly fields: EmailFields; readonly secret: string | null };

const webhookKeys = ['url', 'secret'] as const;
const emailKeys = ['host', 'port', 'security', 'username', 'password', 'from', 'to'] as const;

/** Merges what was sent into what there is (null on creation); `faults` gets all that is wrong, and then the result is null. */
export function settle(
    type: 'webhook' | 'email',
    sent: ChannelUpdate,
    before: Settled | null,
    faults: Invalid[]
): Settled | null {
    const count = faults.length;
    const add = (path: string, message: string): void =>
        void faults.push({ path, message: `${path} ${message}` });
    for (const key of type === 'webhook' ? emailKeys : webhookKeys) {
        if (sent[key] !== undefined) {
            add(key, `does not belong to a channel of type ${type}`);
        }
    }
    const settled =
        type === 'webhook'
            ? webhook(sent, before?.type === 'webhook' ? before : null, add)
            : email(sent, before?.type === 'email' ? before : null, add);
    return faults.length > count ? null : settled;
}

type Add = (path: string, message: string) => void;

function webhook(
    sent: ChannelUpdate,
    before: Extract<Settled, { type: 'webhook' }> | null,
    add: Add
): Settled {
    const url = sent.url ?? before?.fields.url;
    if (url === undefined) {
        add('url', 'is required');
    } else {
        understand('url', () => readUrl(url), add);
    }
    const given = sent.secret === undefined ? before?.secret : readSecret(sent.secret);
    if (given === null) {
        add('secret', 'must be whsec_ and base64 of 24 to 64 bytes');
    }
    return {
        type: 'webhook',
        fields: { url: url ?? '' },
        secret: given ?? newSecret(),
        made: given === undefined
    };
}

function email(sent: ChannelUpdate, before: Extract<Settled, { type: 'email' }> | null, add: Add): Settled {
    const old = before?.fields;
    const security: EmailSecurity = sent.security ?? old?.security ?? 'starttls';
    // A port that was never chosen follows the kind of connection.
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
        understand('host', () => readTarget(fields.host, fields.port), add);
    }
    const kept = fields.username === null ? null : (before?.secret ?? null);
    const moved =
        old !== undefined && (fields.host !== old.host || (security === 'none' && old.security !== 'none'));
    if (sent.password !== undefined && fields.username === null) {
        add('username', 'is required with a password');
    } else if (sent.password === undefined && fields.username !== null && kept === null) {
        add('password', 'is required with a user name');
    } else if (sent.password === undefined && kept !== null && moved) {
        // Whoever may change a channel may not therefore learn its password by having it sent elsewhere.
        add('password', 'is to be sent again: it would go to another server, or in the clear');
    }
    return { type: 'email', fields, secret: sent.password ?? kept };
}

function understand(path: string, read: () => unknown, add: Add): void {
    try {
        read();
    } catch (error) {
        if (!(error instanceof OutboundFailure)) {
            throw error;
        }
        add(path, `is refused: ${error.message}`);
    }
}
