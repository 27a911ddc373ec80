/** How a caller proves that it knows the secret of a trigger. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Headers of a call, in lower case. */
export type Headers = Readonly<Record<string, string>>;

const prefix = 'whsec_';
const secretBytes = 32;
/** How far the clocks of the caller and of this machine may be apart. */
const toleranceMs = 5 * 60_000;

/** A new secret, in the form of Standard Webhooks. */
export function newSecret(): string {
    return prefix + randomBytes(secretBytes).toString('base64');
}

/** Whether a call proves a secret. Every form is compared in constant time. @param now - milliseconds since 1970 */
export function isProven(headers: Headers, body: Buffer, secret: string, now: number): boolean {
    const plain = headers['x-trigger-token'] ?? headers['x-gitlab-token'];
    if (plain !== undefined) {
        return equal(plain, secret);
    }
    const github = headers['x-hub-signature-256'];
    if (github !== undefined) {
        return equal(github, `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    }
    const signatures = headers['webhook-signature'];
    return signatures !== undefined && isSigned(headers, signatures, body, secret, now);
}

/** Standard Webhooks: the id and the time are signed with the body; one of several signatures is enough. */
function isSigned(headers: Headers, signatures: string, body: Buffer, secret: string, now: number): boolean {
    const { 'webhook-id': id = '', 'webhook-timestamp': stamp = '' } = headers;
    if (id === '' || !/^\d{1,12}$/.test(stamp) || Math.abs(now - Number(stamp) * 1_000) > toleranceMs) {
        return false;
    }
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    const wanted = createHmac('sha256', key).update(`${id}.${stamp}.`).update(body).digest('base64');
    return signatures.split(' ').some((signature) => equal(signature, `v1,${wanted}`));
}

function equal(given: string, wanted: string): boolean {
    // Digests have one length, so that a wrong length is not told by the time either.
    const [one, other] = [given, wanted].map((each) => createHmac('sha256', prefix).update(each).digest());
    return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
