/** `ctx.api.read`: the beginning of what a route answers, as text. */
import type { ApiAnswer, ApiText, ReadLimits } from '@portico/sdk';

import { invalid } from '../../../../platform/errors.ts';
import { Excerpt } from '../../../../server/http/request/input/excerpt.ts';
import { admitCall, type Calling, isAnswer, pageOf, type PlainCall, refusal, send } from './request.ts';

const mostBytes = 16 * 1024 * 1024;
const mostSeconds = 300;

/** Reads the beginning of a download, a stream, or any answer of a route that only reads. @throws VALIDATION_FAILED 40001 for limits out of range */
export async function readRoute(
    by: Calling,
    call: PlainCall,
    { maxBytes, maxSeconds }: ReadLimits,
    signal: AbortSignal
): Promise<ApiText> {
    requireWithin('maxBytes', maxBytes, mostBytes);
    requireWithin('maxSeconds', maxSeconds, mostSeconds);
    const admitted = admitCall(by, call, ['json', 'stream', 'download', 'http']);
    if (isAnswer(admitted)) {
        return refused(admitted);
    }
    const { kind, effect, id } = admitted.entry.info;
    const { route } = admitted.entry;
    if (effect !== 'read' || (route.kind === 'http' && !route.methods.includes('GET')) || kind === 'socket') {
        return refused(refusal(40400, 'NOT_FOUND', `There is no route ${id} that only reads`));
    }
    // Timers that are ended here: those of `AbortSignal.timeout` would stay for their whole time.
    const [time, late] = [new AbortController(), new AbortController()];
    const timers = [
        setTimeout(() => time.abort(), maxSeconds * 1000),
        // What is cut off by time answers soon after; a route that has not answered at all by then is not waited for.
        setTimeout(() => late.abort(), maxSeconds * 1000 + graceMs)
    ];
    const excerpt = new Excerpt(maxBytes, AbortSignal.any([time.signal, signal]));
    try {
        const patience = AbortSignal.any([signal, late.signal]);
        const response = await send(by, admitted, call, { signal: patience, mode: { excerpt } });
        if (isAnswer(response)) {
            return refused(response);
        }
        const bytes = response.rawPayload.subarray(0, maxBytes);
        const truncated = excerpt.truncated || bytes.length < response.rawPayload.length;
        const text = new TextDecoder().decode(bytes, { stream: truncated });
        return {
            ...textOf(response.statusCode, response.headers['content-type'] ?? null, text, truncated),
            ...pageOf(response)
        };
    } catch (error) {
        if (signal.aborted || !time.signal.aborted) {
            throw error;
        }
        return refused(
            refusal(50300, 'NOT_READY', `The route ${id} did not answer in ${maxSeconds} s`),
            true
        );
    } finally {
        timers.forEach((timer) => clearTimeout(timer));
    }
}

const graceMs = 500;

/** A failure in its envelope. */
function refused({ status, code, message, data }: ApiAnswer, truncated = false): ApiText {
    const text = JSON.stringify({ code, message, data });
    return { ...textOf(status, 'application/json', text, truncated), etag: null, next: null };
}

function textOf(
    status: number,
    contentType: string | null,
    text: string,
    truncated: boolean
): Omit<ApiText, 'etag' | 'next'> {
    const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? null;
    return { status, code: status < 400 ? 0 : codeIn(text, status), type, text, truncated };
}

/** The code in a failure's envelope; of a failure without one, that of its status. */
function codeIn(text: string, status: number): number {
    try {
        const { code } = JSON.parse(text) as { readonly code?: unknown };
        return typeof code === 'number' ? code : status * 100;
    } catch {
        return status * 100;
    }
}

function requireWithin(name: string, value: number, most: number): void {
    if (!Number.isInteger(value) || value < 1 || value > most) {
        throw invalid({ path: name, message: `${name} must be a whole number from 1 to ${most}` });
    }
}
