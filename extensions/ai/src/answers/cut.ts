/** Results of calls, cut to what a model can read. */
import type { JSONValue } from '@ai-sdk/provider';

/** Bytes of a result that are kept. */
export const mostResultBytes = 65_536;

/** A result of at most so many bytes: a list is cut at a whole item, anything else becomes the beginning of its text. */
export function cutResult(
    data: unknown,
    most = mostResultBytes
): { readonly data: unknown; readonly truncated: boolean } {
    const text = JSON.stringify(data) ?? 'null';
    if (Buffer.byteLength(text) <= most) {
        return { data, truncated: false };
    }
    if (Array.isArray(data)) {
        let left = most - 2;
        const end = data.findIndex((item) => {
            left -= Buffer.byteLength(JSON.stringify(item) ?? 'null') + 1;
            return left < 0;
        });
        if (end > 0) {
            return { data: data.slice(0, end), truncated: true };
        }
    }
    const whole = typeof data === 'string' ? data : text;
    // The last character may have been cut in its middle.
    const beginning = Buffer.from(whole)
        .subarray(0, most)
        .toString()
        .replace(/\uFFFD+$/, '');
    return { data: beginning, truncated: true };
}

/** Plain data as JSON knows it: what is undefined goes, dates become texts. */
export function toPlainJson(value: unknown): JSONValue {
    return JSON.parse(JSON.stringify(value ?? null)) as JSONValue;
}
