/** Proofs of webhooks: in the forms of GitHub, Gitea and Standard Webhooks, and plain tokens where the receiver takes them. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Headers of a delivery; names in lower case. */
export type WebhookHeaders = Readonly<Record<string, string>>;

/** How a delivery is judged. */
export interface WebhookOptions {
    /** Headers, in lower case, that may bring the secret itself, such as `x-gitlab-token`. Default: none, because a proxy may log them. */
    readonly tokens?: readonly string[];
    /** Milliseconds since 1970. Default: the clock. */
    readonly now?: number;
}

const prefix = 'whsec_';
const secretBytes = 32;
/** How far the clocks of the sender and of this machine may be apart. */
const toleranceMs = 5 * 60_000;

/** A new secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. GitHub and Gitea take it as a text. */
export function newWebhookSecret(): string {
    return prefix + randomBytes(secretBytes).toString('base64');
}

/**
 * Whether a delivery proves that its sender knows a secret. Every form is compared in constant time; the first form that is there decides.
 *
 * @remarks Standard Webhooks sign the time, and may be 5 minutes old. The receiver refuses a `webhook-id` that it has seen.
 * @param body - the bytes as they came
 * @param secret - as `newWebhookSecret` makes it
 */
export function isWebhookProven(
    headers: WebhookHeaders,
    body: Uint8Array,
    secret: string,
    { tokens = [], now = Date.now() }: WebhookOptions = {}
): boolean {
    const github = headers['x-hub-signature-256'];
    if (github !== undefined) {
        return isEqual(github, `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    }
    const gitea = headers['x-gitea-signature'];
    if (gitea !== undefined) {
        return isEqual(gitea, createHmac('sha256', secret).update(body).digest('hex'));
    }
    const signatures = headers['webhook-signature'];
    if (signatures !== undefined) {
        return isSigned(headers, signatures, body, { secret, now });
    }
    const token = tokens.map((name) => headers[name]).find((value) => value !== undefined);
    return token !== undefined && isEqual(token, secret);
}

/** Standard Webhooks: the id and the time are signed with the body; one of several signatures is enough. */
function isSigned(
    headers: WebhookHeaders,
    signatures: string,
    body: Uint8Array,
    { secret, now }: { readonly secret: string; readonly now: number }
): boolean {
    const { 'webhook-id': id = '', 'webhook-timestamp': stamp = '' } = headers;
    if (id === '' || !/^\d{1,12}$/.test(stamp) || Math.abs(now - Number(stamp) * 1_000) > toleranceMs) {
        return false;
    }
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    const wanted = createHmac('sha256', key).update(`${id}.${stamp}.`).update(body).digest('base64');
    return signatures.split(' ').some((signature) => isEqual(signature, `v1,${wanted}`));
}

function isEqual(given: string, wanted: string): boolean {
    // Digests have one length, so that a wrong length is not told by the time either.
    const digest = (text: string): Buffer => createHmac('sha256', prefix).update(text).digest();
    return timingSafeEqual(digest(given), digest(wanted));
}
