/** What comes with a request. */
import type { Bytes } from '../route.ts';
import { panelFailure } from './envelope.ts';

/** One value, or all of them where a name comes more than once. */
export function queryOf({ searchParams }: URL): Readonly<Record<string, string | readonly string[]>> {
    return Object.fromEntries(
        [...new Set(searchParams.keys())].map((name) => {
            const all = searchParams.getAll(name);
            return [name, all.length === 1 ? (all[0] ?? '') : all];
        })
    );
}

/** A JSON object. @throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST */
export async function bodyOf(
    request: Request,
    maxBytes: number
): Promise<{ readonly text: string; readonly value: unknown }> {
    const bytes = await request.arrayBuffer();
    if (bytes.byteLength > maxBytes) {
        throw panelFailure.tooLarge(null);
    }
    if (bytes.byteLength === 0) {
        return { text: '', value: undefined };
    }
    if (
        !/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(request.headers.get('content-type') ?? '')
    ) {
        throw panelFailure.mediaType('application/json');
    }
    const text = new TextDecoder().decode(bytes);
    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch (error) {
        throw panelFailure.badRequest(`The body is not JSON: ${(error as Error).message}`);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        throw panelFailure.badRequest('The body must be a JSON object');
    }
    return { text, value };
}

/** A body that fails when it is longer than it may be. */
export function limited(
    { headers, body }: Request,
    maxBytes: number
): { readonly stream: Bytes; error(): unknown } {
    if (Number(headers.get('content-length')) > maxBytes) {
        throw panelFailure.tooLarge(null);
    }
    let seen = 0;
    let failure: unknown = null;
    const counter = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
            seen += chunk.length;
            if (seen > maxBytes) {
                failure = panelFailure.tooLarge(maxBytes);
                throw failure;
            }
            controller.enqueue(chunk);
        }
    });
    return {
        stream: (body ?? new Blob([]).stream()).pipeThrough(counter as never) as never as Bytes,
        error: () => failure
    };
}
