/** Fetches files of catalogues: bounded in size and time, over https alone, where each redirect is judged as the first address was. */
import { BlockList, isIP } from 'node:net';

import { isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';

const mostRedirects = 5;
const timeoutMs = 30_000;

const ownNetworks = new BlockList();
for (const [network, prefix] of [
    ['127.0.0.0', 8],
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['169.254.0.0', 16],
    ['100.64.0.0', 10]
] as const) {
    ownNetworks.addSubnet(network, prefix, 'ipv4');
}
ownNetworks.addSubnet('::1', 128, 'ipv6');
ownNetworks.addSubnet('fc00::', 7, 'ipv6');
ownNetworks.addSubnet('fe80::', 10, 'ipv6');

/**
 * Judges an address that a source or a redirect names: https; or http to an address of one's own networks, which no grant opens but one
 * that names it. Without a user, a query or a fragment.
 *
 * @throws SOURCE_UNREACHABLE 50250
 */
export async function judgeUrl(ctx: Ctx, text: string): Promise<URL> {
    const url = URL.parse(text);
    if (url === null || url.username !== '' || url.password !== '') {
        throw fail.SOURCE_UNREACHABLE({ why: 'it is no address without a user' });
    }
    if (url.protocol === 'https:') {
        return url;
    }
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const family = isIP(host);
    const isOwn = family !== 0 && ownNetworks.check(host, family === 6 ? 'ipv6' : 'ipv4');
    if (url.protocol !== 'http:' || !isOwn) {
        throw fail.SOURCE_UNREACHABLE({
            why: 'it is not https; http is only for granted addresses of own networks'
        });
    }
    await ctx.resolve(host).catch((error: unknown) => {
        throw fail.SOURCE_UNREACHABLE({ why: `${host} is not granted` }, { cause: error });
    });
    return url;
}

/**
 * The bytes of a file.
 *
 * @throws SOURCE_UNREACHABLE 50250 when there is no answer, another one than 200, or more than `most` bytes
 */
export async function fetchFile(
    ctx: Ctx,
    address: string,
    most: number,
    signal: AbortSignal
): Promise<Buffer> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let url = await judgeUrl(ctx, address);
    for (let hop = 0; ; hop += 1) {
        const answer = await ask(ctx, url, limited);
        const location = answer.headers.get('location');
        if (answer.status >= 300 && answer.status < 400 && location !== null) {
            await answer.body?.cancel();
            if (hop === mostRedirects) {
                throw fail.SOURCE_UNREACHABLE({ why: 'it redirects too often' });
            }
            url = await judgeUrl(ctx, URL.parse(location, url.href)?.href ?? '');
            continue;
        }
        if (answer.status !== 200) {
            await answer.body?.cancel();
            throw fail.SOURCE_UNREACHABLE({ why: `${url.pathname} answered ${answer.status}` });
        }
        return readBody(answer, most, url);
    }
}

async function ask(ctx: Ctx, url: URL, signal: AbortSignal): Promise<Response> {
    try {
        return await ctx.fetch(url, { redirect: 'manual', signal });
    } catch (error) {
        throw unreachable(error);
    }
}

async function readBody({ body }: Response, most: number, url: URL): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    try {
        for await (const chunk of body ?? []) {
            bytes += chunk.length;
            if (bytes > most) {
                throw fail.SOURCE_UNREACHABLE({ why: `${url.pathname} has more than ${most} bytes` });
            }
            chunks.push(chunk);
        }
    } catch (error) {
        throw unreachable(error);
    }
    return Buffer.concat(chunks);
}

function unreachable(error: unknown): Error {
    if (isFailure(error)) {
        return error;
    }
    const { message, cause } = error as Error & { cause?: { message?: string } };
    return fail.SOURCE_UNREACHABLE({ why: cause?.message ?? message }, { cause: error });
}
