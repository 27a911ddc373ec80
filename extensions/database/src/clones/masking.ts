/** What stands in place of a value: made from it with a secret key, so that the same value always becomes the same one and none can be turned back. */
import { hash } from 'node:crypto';

/** How a column is masked. */
export type MaskRule = 'null' | 'fixed' | 'hash' | 'email' | 'name' | 'phone' | 'shuffle';

/** What a column can hold, as far as masking asks. */
export type Shape =
    | {
          readonly family: 'text';
          /** Characters; null: as many as there are. */ readonly limit: number | null;
      }
    | { readonly family: 'integer'; readonly bits: number; readonly unsigned: boolean }
    | { readonly family: 'uuid' }
    | { readonly family: 'other' };

/** Turns a value, as the dump writes it, into the one that stands in its place. */
export type Mask = (value: string) => string | null;

const domain = '@example.com';
/** Letters and digits that no collation takes for each other, 5 bits each. */
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
/** So many of them that no two values of a column become the same: 65 bits. */
const uniqueCharacters = 13;
const longestHash = 26;
const emailCharacters = 16;
const phoneDigits = 12;
const firstNames =
    'Alex Anna Ben Carla David Elena Felix Grace Hugo Ines Jonas Karin Leo Maria Nora Oscar Paula Robin Sara Tom Vera'.split(
        ' '
    );
const lastNames =
    'Adler Baker Costa Dubois Evans Fischer Garcia Hansen Ivanov Jensen Keller Lopez Moreau Novak Olsen Peters Rossi Silva Turner Vogel Weber'.split(
        ' '
    );
/** Characters that a telephone number has between its digits. */
const telephone = /^[\d\s+\-()./]*\d[\d\s+\-()./]*$/;

/** A hash that only the holder of the key can make, as hexadecimal digits. One call of the library: a mask is made for every value of a column. */
function keyed(key: Buffer, text: string): string {
    const secret = key.toString('hex');
    return hash('sha256', `${secret}${text}\0${secret}`, 'hex');
}

/** Why a rule cannot mask a column, or the mask. */
export type MaskOrReason = { readonly mask: Mask } | { readonly reason: string };

/** The mask of a column. `isUnique`: no two rows may have the same value. */
export function maskFor(
    rule: Exclude<MaskRule, 'shuffle'>,
    {
        shape,
        isUnique,
        value,
        key
    }: { shape: Shape; isUnique: boolean; value: string | undefined; key: Buffer }
): MaskOrReason {
    const digest = (text: string): Buffer => Buffer.from(keyed(key, `${rule}\0${text}`), 'hex');
    if (rule === 'null') {
        return { mask: () => null };
    }
    if (rule === 'fixed') {
        return value === undefined
            ? { reason: 'The rule fixed needs a value' }
            : isUnique
              ? { reason: 'No two rows may have the same value here' }
              : { mask: () => value };
    }
    if (rule === 'hash' && shape.family === 'integer') {
        return { mask: (text) => maskInteger(text, shape, key) };
    }
    if (rule === 'hash' && shape.family === 'uuid') {
        return { mask: (text) => uuidOf(digest(text.toLowerCase())) };
    }
    if (shape.family !== 'text') {
        return { reason: `The rule ${rule} cannot mask a column of this type` };
    }
    return maskText(rule, { limit: shape.limit ?? Infinity, isUnique, digest, key });
}

function maskText(
    rule: 'hash' | 'email' | 'name' | 'phone',
    {
        limit,
        isUnique,
        digest,
        key
    }: { limit: number; isUnique: boolean; digest: (text: string) => Buffer; key: Buffer }
): MaskOrReason {
    const least = {
        hash: isUnique ? uniqueCharacters : 1,
        email: (isUnique ? uniqueCharacters : 4) + domain.length,
        name: isUnique ? uniqueCharacters : 1,
        phone: isUnique ? phoneDigits + 4 : 1
    }[rule];
    if (limit < least) {
        return { reason: `The column is too short for the rule ${rule}: it needs ${least} characters` };
    }
    if (rule === 'hash') {
        return { mask: (text) => letters(digest(text)).slice(0, Math.min(limit, longestHash)) };
    }
    if (rule === 'email') {
        const length = Math.min(emailCharacters, limit - domain.length);
        return { mask: (text) => letters(digest(text)).slice(0, length) + domain };
    }
    if (rule === 'phone') {
        return { mask: (text) => maskPhone(text, digest(text), key).slice(0, limit) };
    }
    return {
        mask(text) {
            const bytes = digest(text);
            const name = `${pick(firstNames, bytes[0])} ${pick(lastNames, bytes[1])}`;
            const mark = ` ${letters(bytes).slice(0, uniqueCharacters)}`;
            return isUnique
                ? (name.slice(0, Math.max(0, limit - mark.length)) + mark).trim()
                : name.slice(0, limit);
        }
    };
}

const pick = (names: readonly string[], byte = 0): string => names[byte % names.length] ?? '';

function letters(bytes: Buffer): string {
    let text = '';
    for (let bits = 0; text.length < longestHash; bits += 5) {
        const word = bytes.readUInt16BE(Math.floor(bits / 8));
        text += alphabet[(word >> (11 - (bits % 8))) & 31] ?? '';
    }
    return text;
}

function uuidOf(bytes: Buffer): string {
    const hex = bytes.toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Keeps sign and range: two numbers never become the same one. */
function maskInteger(
    text: string,
    { bits, unsigned }: { bits: number; unsigned: boolean },
    key: Buffer
): string {
    const value = BigInt(text);
    const width = BigInt(unsigned ? bits : bits - 1);
    const sides: Sides = [1n << (width / 2n), 1n << (width - width / 2n)];
    return String(value < 0n ? -permute(-value - 1n, sides, key) - 1n : permute(value, sides, key));
}

/** Keeps what stands between the digits, and how many there are. What is no number becomes one. */
function maskPhone(text: string, digest: Buffer, key: Buffer): string {
    if (!telephone.test(text)) {
        return `+999${String(digest.readBigUInt64BE() % 10n ** BigInt(phoneDigits)).padStart(phoneDigits, '0')}`;
    }
    const digits = text.replace(/\D/g, '');
    const half = BigInt(digits.length >> 1);
    const sides: Sides = [10n ** half, 10n ** (BigInt(digits.length) - half)];
    const masked = String(permute(BigInt(digits), sides, key)).padStart(digits.length, '0');
    let at = 0;
    return text.replace(/\d/g, () => masked[at++] ?? '');
}

/** The sizes of the two parts of a number; their product is how many numbers there are. */
type Sides = readonly [bigint, bigint];

/** Another number below the product of the sides: a Feistel network, so no two numbers become the same one. */
function permute(value: bigint, [left, right]: Sides, key: Buffer): bigint {
    let [one, other] = [value / right, value % right];
    for (let round = 0; round < 6; round += 1) {
        const mixed = (part: bigint): bigint =>
            BigInt(`0x${keyed(key, `${round}/${left}/${right}/${part}`)}`);
        if (round % 2 === 0) {
            one = (one + mixed(other)) % left;
        } else {
            other = (other + mixed(one)) % right;
        }
    }
    return one * right + other;
}
