/** Runs that send a request. */
import type { Ctx } from '../../settings.ts';
import type { RequestWork } from '../../tasks/input/work-input.ts';
import type { Output } from '../output/output.ts';
import { emptyResult, type RunResult } from '../results/result.ts';

/** How much of an answer is read. */
const mostBytes = 1024 * 1024;

/** What a run with a request needs. */
export interface RequestRun {
    readonly ctx: Ctx;
    readonly output: Output;
    /** Ends when the run is stopped, or takes too long. */
    readonly signal: AbortSignal;
}

/** Sends a request whose headers have all their values, and judges the answer. @throws the signal's reason */
export async function sendRequest(
    { url, method, headers, body, expectStatus, expectText }: RequestWork,
    { ctx, output, signal }: RequestRun
): Promise<RunResult> {
    let answer: Response;
    try {
        answer = await ctx.fetch(url, {
            method,
            headers: headers as Record<string, string>,
            signal,
            ...(body === null || method === 'GET' || method === 'HEAD' ? {} : { body })
        });
    } catch (error) {
        signal.throwIfAborted();
        return unreached(error);
    }
    const { status } = answer;
    output.add(`${status}\n\n`);
    const text = await readText(answer, output);
    const failed = (reason: string, message: string): RunResult => ({
        ...emptyResult,
        state: 'failed',
        status,
        reason,
        message
    });
    if (!expectStatus.some((wanted) => String(status).match(`^${wanted.replaceAll('x', '\\d')}$`))) {
        return failed('HTTP_STATUS', `It answered ${status}; wanted: ${expectStatus.join(', ')}`);
    }
    return expectText !== null && !text.includes(expectText)
        ? failed('TEXT_MISSING', 'The answer lacks the wanted text')
        : { ...emptyResult, state: 'succeeded', status };
}

/** Why there is no answer: what the panel refused, or what the system said. */
function unreached(error: unknown): RunResult {
    let cause = error;
    while (cause instanceof Error && cause.cause instanceof Error) {
        ({ cause } = cause); // `fetch` says only that it failed
    }
    const { reason, code, message } = cause as {
        readonly reason?: string;
        readonly code?: unknown;
        readonly message?: string;
    };
    return {
        ...emptyResult,
        state: 'failed',
        reason: reason ?? (typeof code === 'string' ? code : 'NO_ANSWER'),
        message: message ?? String(cause)
    };
}

/** Reads the beginning of an answer, and lets go of the rest. */
async function readText(answer: Response, output: Output): Promise<string> {
    const decoder = new TextDecoder();
    let [text, bytes] = ['', 0];
    for await (const chunk of answer.body ?? []) {
        const part = decoder.decode(chunk, { stream: true });
        output.add(part);
        text += part;
        bytes += chunk.byteLength;
        if (bytes >= mostBytes) {
            break;
        }
    }
    return text;
}
