/** One request to another system. */
import { messageOf } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { encodeOtlp, otlpHeaders } from './protocols/otlp.ts';
import { encodeRemoteWrite, remoteWriteHeaders } from './protocols/remote-write.ts';
import type { Batch } from './protocols/series.ts';
import type { NewExport } from './schema.ts';

/** Where a batch goes. */
export interface Target {
    readonly type: NewExport['type'];
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
}

/** How a request ended. */
export interface Sent {
    readonly ok: boolean;
    /** Null without an answer. */
    readonly status: number | null;
    readonly message: string;
    /** The batch will never be taken. */
    readonly isRefused: boolean;
    /** Seconds after which the other side wants to be asked again; null where it does not say. */
    readonly retrySeconds: number | null;
}

const sendMs = 30_000;
const readBytes = 1_024;
const shownCharacters = 300;
const tooMany = 429;

/** The body of a batch in the format of the target. */
export function encode(type: NewExport['type'], batch: Batch): Buffer {
    return type === 'otlp' ? encodeOtlp(batch) : encodeRemoteWrite(batch);
}

/** Sends a body once. Redirects are not followed. */
export async function send(
    ctx: Ctx,
    { type, url, headers }: Target,
    body: Uint8Array,
    signal: AbortSignal
): Promise<Sent> {
    const timeout = AbortSignal.timeout(sendMs);
    try {
        const answer = await ctx.fetch(url, {
            method: 'POST',
            redirect: 'manual',
            headers: {
                'user-agent': 'Portico',
                ...headers,
                ...(type === 'otlp' ? otlpHeaders : remoteWriteHeaders)
            },
            body,
            signal: AbortSignal.any([signal, timeout])
        });
        const { status, ok } = answer;
        const said = hideSecrets(await readStart(answer), headers);
        return {
            ok,
            status,
            message: ok ? 'It was taken' : `It answered ${status}${said === '' ? '' : `: ${said}`}`,
            isRefused: status >= 400 && status < 500 && status !== tooMany,
            retrySeconds: Number(/^\d{1,5}$/.exec(answer.headers.get('retry-after') ?? '')?.[0] ?? 0) || null
        };
    } catch (error) {
        signal.throwIfAborted();
        return {
            ok: false,
            status: null,
            message: timeout.aborted
                ? `It did not answer in ${sendMs / 1000} seconds`
                : hideSecrets(reasonOf(error), headers),
            isRefused: false,
            retrySeconds: null
        };
    }
}

async function readStart(answer: Response): Promise<string> {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of answer.body ?? []) {
        parts.push(part);
        bytes += part.length;
        if (bytes >= readBytes) {
            break;
        }
    }
    return Buffer.concat(parts)
        .subarray(0, readBytes)
        .toString()
        .replace(/\p{Cc}+/gu, ' ')
        .trim()
        .slice(0, shownCharacters);
}

/** What is wrong, from the innermost cause: `fetch failed` says nothing. */
function reasonOf(error: unknown): string {
    let inner = error;
    while (inner instanceof Error && inner.cause instanceof Error) {
        inner = inner.cause;
    }
    return messageOf(inner);
}

/** The other side may repeat what it was sent. */
function hideSecrets(text: string, headers: Readonly<Record<string, string>>): string {
    return Object.values(headers)
        .flatMap((value) => [value, ...value.split(' ')])
        .filter((value) => value.length >= 6)
        .reduce((hidden, value) => hidden.replaceAll(value, '***'), text);
}
