/** Webhooks, signed as the Standard Webhooks specification says (version 1.0.0, symmetric), so that receivers can verify them with a library. */
import { createHmac, randomBytes } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import { type Outbound, OutboundFailure } from '../../../platform/outbound/client.ts';
import { excerpt, longestExcerpt, type Sender } from './sender.ts';

/** The fields of a webhook channel. */
export interface WebhookFields {
    readonly url: string;
}

const prefix = 'whsec_';
/** The length of a secret in bytes, as the specification bounds it. */
const secretBytes = { least: 24, most: 64 } as const;
const timeoutMs = 15_000;
/** The longest wait that a receiver may ask for. */
const longestRetryAfterMs = 6 * 3_600_000;

/** A new secret, in the form that libraries of receivers take. */
export function newSecret(): string {
    return prefix + randomBytes(32).toString('base64');
}

/** The canonical form of a secret: `whsec_` and base64 of 24 to 64 bytes; null when the text is no secret. */
export function readSecret(text: string): string | null {
    const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : text;
    const key = Buffer.from(encoded, 'base64');
    const whole =
        /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) &&
        key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
    return whole && key.length >= secretBytes.least && key.length <= secretBytes.most
        ? prefix + key.toString('base64')
        : null;
}

/** The value of `webhook-signature`. `timestamp` in seconds. */
export function sign(secret: string, id: string, timestamp: number, body: string): string {
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/** Builds the sender of webhook channels. `ca`: PEM of authorities to trust in addition to those of the system. */
export function createWebhookSender({
    outbound,
    clock,
    ca
}: {
    readonly outbound: Pick<Outbound, 'open'>;
    readonly clock: Clock;
    readonly ca: readonly string[];
}): Sender<WebhookFields> {
    return async ({ url }, secret, { id, body }, signal) => {
        // The time of the attempt, not of the event: receivers refuse old timestamps as replays, and a retry must pass.
        const timestamp = Math.floor(clock.now() / 1000);
        const headers = {
            'content-type': 'application/json',
            'webhook-id': id,
            'webhook-timestamp': String(timestamp),
            'webhook-signature': sign(secret ?? '', id, timestamp, body)
        };
        const answer = await outbound.open(url, {
            method: 'POST',
            headers,
            body,
            timeoutMs,
            signal,
            maxBytes: Number.MAX_SAFE_INTEGER,
            ...(ca.length === 0 ? {} : { ca })
        });
        const { status } = answer;
        const response = await beginning(answer);
        if (status >= 200 && status <= 299) {
            return { ok: true, status, error: null, response };
        }
        const error =
            status === 410
                ? 'The receiver wants no more messages (410): the channel was disabled'
                : status >= 300 && status <= 399
                  ? `The receiver answers ${status}: redirects are not followed`
                  : `The receiver answers ${status}`;
        const retryAfterMs = retryAfter(answer.headers['retry-after'], clock.now());
        return {
            ok: false,
            status,
            error,
            response,
            gone: status === 410,
            ...(retryAfterMs === null ? {} : { retryAfterMs })
        };
    };
}

/** The beginning of the answer. The message has arrived by now, so an error while reading changes nothing. */
async function beginning(answer: Awaited<ReturnType<Outbound['open']>>): Promise<string | null> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
        for await (const chunk of answer.body) {
            chunks.push(chunk);
            bytes += chunk.length;
            if (bytes >= longestExcerpt) {
                break;
            }
        }
    } catch (error) {
        if (!(error instanceof OutboundFailure)) {
            throw error;
        }
    } finally {
        answer.close();
    }
    return answer.headers['content-encoding'] === undefined
        ? excerpt(Buffer.concat(chunks).toString('utf8'))
        : null;
}

/** Milliseconds of a `Retry-After` of seconds or a date (RFC 9110, section 10.2.3); null without one. */
function retryAfter(header: string | undefined, now: number): number | null {
    const ms =
        header === undefined
            ? Number.NaN
            : /^\d{1,9}$/.test(header)
              ? Number(header) * 1000
              : Date.parse(header) - now;
    return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), longestRetryAfterMs);
}
