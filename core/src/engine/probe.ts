/** Asks an upstream for its health, as the engine would connect to it. */
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

import type { ProbeAnswer, ProbeOptions } from '@portico/sdk';

import { parseUpstream } from './render/profile/upstream.ts';

const longestBody = 4096;

/** An address that gave no answer, or that is none. */
export class ProbeFailed extends Error {}

/**
 * Sends one request, without credentials, and follows no redirect. The certificate of an `https` address is not checked: nothing secret is
 * sent.
 *
 * @throws ProbeFailed when there is no answer in time
 */
export async function probeUpstream(
    address: string,
    { path = '/', method = 'GET', timeoutSeconds = 5, signal }: ProbeOptions
): Promise<ProbeAnswer> {
    const upstream = parseUpstream(address);
    if (upstream === null || upstream.scheme === 'h2c') {
        throw new ProbeFailed(`${address} is no address that can be asked`);
    }
    const began = performance.now();
    const limit = AbortSignal.timeout(timeoutSeconds * 1000);
    const options = {
        method,
        path,
        headers: { 'user-agent': 'Portico', accept: '*/*' },
        agent: false,
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal])
    } as const;
    try {
        const url = new URL(`${upstream.scheme}://${upstream.unix ? 'localhost' : upstream.dial}`);
        const target = upstream.unix
            ? { socketPath: upstream.dial.slice('unix/'.length) }
            : { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: url.port };
        const asked =
            upstream.scheme === 'https'
                ? requestHttps({ ...options, ...target, rejectUnauthorized: false })
                : requestHttp({ ...options, ...target });
        const answer = await answerOf(asked);
        const ms = Math.round(performance.now() - began);
        return { status: answer.statusCode ?? 0, ms, body: await bodyOf(answer) };
    } catch (error) {
        throw new ProbeFailed(
            limit.aborted ? `no answer in ${timeoutSeconds} s` : (error as Error).message || 'no answer',
            { cause: error }
        );
    }
}

function answerOf(asked: ClientRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
        asked.once('response', resolve).once('error', reject).end();
    });
}

/** The first bytes of a body; the rest is not waited for. */
async function bodyOf(answer: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes >= longestBody) {
            break;
        }
    }
    return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, longestBody));
}
