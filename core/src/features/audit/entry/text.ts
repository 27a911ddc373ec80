/** Makes text from outside safe to store and to show: bounded, well-formed, without characters that steer a terminal or reorder a line. */

const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** At most `length` characters; control, line-separating and direction-changing characters become their `\uXXXX` form. */
export function clean(text: string, length: number): string {
    const bounded = text.length > length ? `${text.slice(0, length - 1)}…` : text;
    return bounded
        .toWellFormed()
        .replace(unsafe, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** {@link clean} for text that may be missing. */
export function cleanOrNull(text: string | null, length: number): string | null {
    return text === null ? null : clean(text, length);
}
