/**
 * Converts names of files to text and back without a loss: a name may hold any bytes, a text only characters. A byte that is not part of
 * a UTF-8 character becomes the private character U+EF00 + byte (U+EF80 to U+EFFF). A name that holds one of these private characters
 * gets three of them, one for each of its bytes. The thread of `thread/` loads this file, so it imports nothing but Node's own modules.
 */
import type { PathLike } from 'node:fs';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const first = 0xef80;
const last = 0xefff;
const escaped = /[\uef80-\uefff]/;

/** The text of a name, or of the target of a link. */
export function nameOf(bytes: Uint8Array): string {
    try {
        const text = decoder.decode(bytes);
        if (!escaped.test(text)) {
            return text;
        }
    } catch {
        // The name is not UTF-8: the loop below converts it piece by piece.
    }
    let text = '';
    for (let at = 0; at < bytes.length;) {
        const length = lengthOf(bytes[at] ?? 0);
        const character = length === 0 ? null : characterOf(bytes.subarray(at, at + length));
        text += character ?? String.fromCharCode(0xef00 + (bytes[at] ?? 0));
        at += character === null ? 1 : length;
    }
    return text;
}

/** The bytes of a name; null for a text that `nameOf` never returns, since each name has exactly one text. */
export function bytesOf(name: string): Buffer | null {
    const bytes = escaped.test(name)
        ? Buffer.concat(
              [...name].map((character) => {
                  const code = character.codePointAt(0) ?? 0;
                  return code >= first && code <= last
                      ? Buffer.from([code - 0xef00])
                      : Buffer.from(character);
              })
          )
        : Buffer.from(name);
    return nameOf(bytes) === name ? bytes : null;
}

/** The path of an entry, in the bytes of its name, below the path of its folder. */
export function pathOf(at: string, name: string): PathLike {
    const bytes = bytesOf(name);
    return bytes === null ? `${at}/${name}` : Buffer.concat([Buffer.from(`${at}/`), bytes]);
}

/** Whether a path is the folder itself or lies below it. Both are absolute and without links. */
export function within(path: string, folder: string): boolean {
    return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** The number of bytes of a UTF-8 character, by its first byte; 0 when no character begins with that byte. */
function lengthOf(byte: number): number {
    return byte < 0x80
        ? 1
        : byte >= 0xc2 && byte < 0xe0
          ? 2
          : byte >= 0xe0 && byte < 0xf0
            ? 3
            : byte >= 0xf0 && byte < 0xf5
              ? 4
              : 0;
}

function characterOf(bytes: Uint8Array): string | null {
    try {
        const character = decoder.decode(bytes);
        return escaped.test(character) ? null : character;
    } catch {
        return null;
    }
}
