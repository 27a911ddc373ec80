/** Tells images by their bytes. What an index calls an image is not asked. */

/** Types of icons. SVG is none: it can hold scripts. */
export type IconType = 'image/png' | 'image/jpeg' | 'image/webp';

/** Most bytes of an icon. */
export const mostIconBytes = 262_144;

/** The type of an image by its first bytes; null for anything else. */
export function sniffIcon(bytes: Buffer): IconType | null {
    if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))) {
        return 'image/png';
    }
    if (bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex'))) {
        return 'image/jpeg';
    }
    const isWebp =
        bytes.length >= 16 &&
        bytes.toString('latin1', 0, 4) === 'RIFF' &&
        bytes.toString('latin1', 8, 12) === 'WEBP' &&
        /^VP8[ LX]$/.test(bytes.toString('latin1', 12, 16));
    return isWebp ? 'image/webp' : null;
}
