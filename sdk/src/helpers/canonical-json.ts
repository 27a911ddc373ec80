/** JSON as RFC 8785 writes it: one text for one value, so that a hash of the text is a hash of the value. */
import { createHash } from 'node:crypto';

/**
 * Writes the canonical text of plain data: keys in the order of their UTF-16 code units, numbers and strings as ECMAScript writes them.
 * What JSON leaves out (keys without a value, functions) is left out; a lone undefined becomes `null`. Strings must be well-formed Unicode.
 */
export function canonicalize(value: unknown): string {
    // Most data is in order already, and the engine's own writer is several times as fast.
    return (isOrdered(value) ? JSON.stringify(value) : write(value)) ?? 'null';
}

/** SHA-256 of the canonical text, hexadecimal. */
export function hashOf(value: unknown): string {
    return createHash('sha256').update(canonicalize(value)).digest('hex');
}

function isOrdered(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) {
        return true;
    }
    if (Array.isArray(value)) {
        return value.every(isOrdered);
    }
    let before = '';
    for (const key of Object.keys(value)) {
        if (key < before || !isOrdered((value as Record<string, unknown>)[key])) {
            return false;
        }
        before = key;
    }
    return !('toJSON' in value);
}

/** @returns undefined where JSON leaves the value out */
function write(value: unknown): string | undefined {
    if (typeof value !== 'object' || value === null) {
        return JSON.stringify(value);
    }
    if (Array.isArray(value)) {
        return `[${Array.from(value, (item) => write(item) ?? 'null').join(',')}]`;
    }
    if ('toJSON' in value && typeof value.toJSON === 'function') {
        return write(value.toJSON());
    }
    const parts: string[] = [];
    for (const key of Object.keys(value).sort()) {
        const text = write((value as Record<string, unknown>)[key]);
        if (text !== undefined) {
            parts.push(`${JSON.stringify(key)}:${text}`);
        }
    }
    return `{${parts.join(',')}}`;
}
