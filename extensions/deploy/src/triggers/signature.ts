/** Signatures of deliveries: the forms of GitHub, Gitea and Standard Webhooks, and the plain token of GitLab. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Headers of a delivery, in lower case. */
export type Headers = Readonly<Record<string, string>>;

const prefix = 'whsec_';
const secretBytes = 32;
/** How far the clocks of the git server and of this machine may be apart. */
const toleranceMs = 5 * 60_000;

/** A new secret, in the form of Standard Webhooks; GitHub and Gitea take it as a text. */
export function newSecret(): string {
    return prefix + randomBytes(secretBytes).toString('base64');
}

/** Whether a delivery is signed with a secret. Every form is compared in constant time. @param plainToken - whether GitLab may send the secret itself */
export function isSigned(headers: Headers, body: Buffer, secret: string, plainToken: boolean): boolean {
    const github = headers['x-hub-signature-256'];
    if (github !== undefined) {
        return equal(github, `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    }
    const gitea = headers['x-gitea-signature'];
    if (gitea !== undefined) {
        return equal(gitea, createHmac('sha256', secret).update(body).digest('hex'));
    }
    const standard = headers['webhook-signature'];
    if (standard !== undefined) {
        return isStandard(headers, standard, body, secret);
    }
    const token = headers['x-gitlab-token'];
    return plainToken && token !== undefined && equal(token, secret);
}

/** Standard Webhooks: the id and the time are signed with the body; one of several signatures is enough. */
function isStandard(headers: Headers, signatures: string, body: Buffer, secret: string): boolean {
    const { 'webhook-id': id = '', 'webhook-timestamp': stamp = '' } = headers;
    if (
        id === '' ||
        !/^\d{1,12}$/.test(stamp) ||
        Math.abs(Date.now() - Number(stamp) * 1_000) > toleranceMs
    ) {
        return false;
    }
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    const wanted = createHmac('sha256', key).update(`${id}.${stamp}.`).update(body).digest('base64');
    return signatures.split(' ').some((signature) => equal(signature, `v1,${wanted}`));
}

function equal(given: string, wanted: string): boolean {
    const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
    return one.length === other.length && timingSafeEqual(one, other);
}
