/** Downloads: HEAD, conditions and single ranges (RFC 9110 §13, §14), and a file name that no header can be broken with. */
import { Readable } from 'node:stream';

import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import type { Download } from '@portico/sdk';

import type { HttpCall } from '../request/http-call.ts';
import { readAddress } from '../request/input/input.ts';
import type { Route } from '../route.ts';

type DownloadRoute = Extract<Route, { kind: 'download' }>;

const inlineTypes = /^(image\/(?!svg)|audio\/|video\/|application\/pdf$)/;

/** Answers one request of a download route, with ranges (RFC 9110, section 14). */
export async function answerDownload(
    route: DownloadRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit
): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    const file = await route.handler(call);
    const {
        range: asked,
        'if-range': ifRange,
        'if-none-match': ifNoneMatch,
        'if-modified-since': ifModifiedSince
    } = request.raw.req.headers;
    const tag = file.version === undefined ? null : `"${file.version.replace(/[^\x21\x23-\x7e]/g, '_')}"`;
    const modified = file.modifiedAt?.toUTCString() ?? null;
    const headers: Record<string, string> = {
        'content-type': file.type,
        'content-disposition': disposition(file),
        'content-security-policy': "default-src 'none'; sandbox",
        'accept-ranges': file.size === null ? 'none' : 'bytes',
        ...(tag === null ? {} : { etag: tag }),
        ...(modified === null ? {} : { 'last-modified': modified })
    };
    const known =
        ifNoneMatch === undefined
            ? modified !== null && ifModifiedSince === modified
            : tag !== null && ifNoneMatch.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);
    if (known) {
        await file.close?.();
        return withHeaders(h.response().code(304), headers);
    }
    const range =
        asked !== undefined &&
        file.size !== null &&
        (ifRange === undefined || ifRange === tag || ifRange === modified)
            ? rangeOf(asked, file.size)
            : 'whole';
    if (range === 'none') {
        await file.close?.();
        return withHeaders(h.response().code(416), { ...headers, 'content-range': `bytes */${file.size}` });
    }
    const [start, end] = range === 'whole' ? [0, file.size] : range;
    const length = end === null ? null : end - start;
    const partial =
        range !== 'whole' ? { 'content-range': `bytes ${start}-${(end ?? 0) - 1}/${file.size}` } : {};
    const sized = length === null ? {} : { 'content-length': String(length) };
    if (request.raw.req.method === 'HEAD') {
        await file.close?.();
        return withHeaders(h.response().code(range === 'whole' ? 200 : 206), {
            ...headers,
            ...partial,
            ...sized
        });
    }
    const body = Readable.from(
        file.open({ start, end: range === 'whole' ? null : end }) as AsyncIterable<Uint8Array>,
        { objectMode: false }
    );
    body.once('close', () => void file.close?.());
    call.signal.addEventListener('abort', () => body.destroy(), { once: true });
    const response = h.response(body).code(range === 'whole' ? 200 : 206);
    if (length !== null) {
        response.bytes(length);
    }
    return withHeaders(response, { ...headers, ...partial });
}

function withHeaders<T extends { headers: Record<string, unknown> }>(
    response: T,
    headers: Readonly<Record<string, string>>
): T {
    Object.assign(response.headers, headers);
    return response;
}

function disposition(file: Download): string {
    const kind = file.inline === true && inlineTypes.test(file.type) ? 'inline' : 'attachment';
    if (file.name === undefined) {
        return kind;
    }
    const plain = file.name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
    const encoded = encodeURIComponent(file.name.toWellFormed()).replace(
        /['()*]/g,
        (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
    );
    return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** One range as [start, end); several are answered whole, as the RFC allows. */
function rangeOf(header: string, size: number): [number, number] | 'whole' | 'none' {
    const found = /^bytes=(\d*)-(\d*)$/.exec(header.trim());
    if (found === null || (found[1] === '' && found[2] === '')) {
        return 'whole';
    }
    const [, first = '', last = ''] = found;
    const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
    const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
    if (first !== '' && last !== '' && Number(last) < start) {
        return 'whole';
    }
    return start >= size || (first === '' && Number(last) === 0) ? 'none' : [start, end];
}
