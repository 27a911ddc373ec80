/** Downloads as the panel answers them: HEAD, conditions and single ranges. */
import type { PlainDownload } from '../boundary/protocol.ts';

const inlineTypes = /^(image\/(?!svg)|audio\/|video\/|application\/pdf$)/;

/** Answers with a file that a route found; it is closed when the answer is over. */
export async function downloadResponse(file: PlainDownload, request: Request): Promise<Response> {
    const tag = file.version === undefined ? null : `"${file.version.replace(/[^\x21\x23-\x7e]/g, '_')}"`;
    const modified = file.modifiedAt?.toUTCString() ?? null;
    const headers: Record<string, string> = {
        'content-type': file.type,
        'content-disposition': disposition(file),
        'accept-ranges': file.size === null ? 'none' : 'bytes',
        ...(tag === null ? {} : { etag: tag }),
        ...(modified === null ? {} : { 'last-modified': modified })
    };
    const [asked, ifRange, ifNoneMatch] = ['range', 'if-range', 'if-none-match'].map((name) =>
        request.headers.get(name)
    );
    const known =
        ifNoneMatch == null
            ? modified !== null && request.headers.get('if-modified-since') === modified
            : tag !== null && ifNoneMatch.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);
    const range =
        asked != null && file.size !== null && (ifRange == null || ifRange === tag || ifRange === modified)
            ? rangeOf(asked, file.size)
            : 'whole';
    if (known || range === 'none') {
        await file.close();
        return new Response(null, {
            status: known ? 304 : 416,
            headers: known ? headers : { ...headers, 'content-range': `bytes */${file.size}` }
        });
    }
    const [start, end] = range === 'whole' ? [0, file.size] : range;
    const partial =
        range === 'whole' ? {} : { 'content-range': `bytes ${start}-${(end ?? 0) - 1}/${file.size}` };
    const all = {
        ...headers,
        ...partial,
        ...(end === null ? {} : { 'content-length': String(end - start) })
    };
    const status = range === 'whole' ? 200 : 206;
    if (request.method === 'HEAD') {
        await file.close();
        return new Response(null, { status, headers: all });
    }
    return new Response(
        ReadableStream.from(bytes(file, start, range === 'whole' ? null : end)) as ReadableStream,
        { status, headers: all }
    );
}

async function* bytes(file: PlainDownload, start: number, end: number | null): AsyncGenerator<Uint8Array> {
    try {
        yield* (await file.open({ start, end })).body;
    } finally {
        await file.close();
    }
}

function disposition(file: PlainDownload): string {
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
    const [, first = '', last = ''] = found ?? [];
    if (first === '' && last === '') {
        return 'whole';
    }
    const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
    const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
    if (first !== '' && last !== '' && Number(last) < start) {
        return 'whole';
    }
    return start >= size || (first === '' && Number(last) === 0) ? 'none' : [start, end];
}
