/** The secret that the tokens are signed with: made at the first start, or given and then strong. */
import type { Keyring } from '../../../platform/keys/keyring.ts';

const leastBytes = 32;
const leastDifferent = 8;
const leastBits = 96;
const leastUnknown = 8;
const known = [
    'secret',
    'changeme',
    'change-me',
    'change_me',
    'password',
    'passw0rd',
    'default',
    'example',
    'your-256-bit',
    'your-secret',
    'yoursecret',
    'jwtsecret',
    'jwt_secret',
    'jwt-secret',
    'portico',
    'supersecret',
    'super-secret',
    'mysecret',
    'my-secret',
    'keyboard cat',
    'keyboardcat',
    'admin',
    'letmein',
    'qwerty',
    'test',
    'insecure',
    'secure',
    'please',
    'this',
    'key',
    'token',
    'dev',
    'development',
    'production',
    'value',
    'not',
    'for',
    'use',
    'in',
    'is',
    'a',
    'the',
    'my',
    'your',
    'very',
    'long',
    'strong',
    'must',
    'be',
    'replace',
    'bit',
    'bits',
    'at',
    'least',
    'characters',
    'random',
    'string',
    'super',
    'me',
    'here',
    'put'
].sort((a, b) => b.length - a.length);
const orders = [
    'abcdefghijklmnopqrstuvwxyz',
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
    '0123456789',
    'qwertyuiopasdfghjklzxcvbnm'
];

/** The bytes of `PORTICO_JWT_SECRET`, or of the key file. @throws Error that says what is wrong, without the value */
export function tokenSecret(given: string | null, keyring: Pick<Keyring, 'secret'>): Buffer {
    if (given === null) {
        return keyring.secret('tokens', leastBytes);
    }
    const fault = faultOfSecret(given);
    if (fault !== null) {
        throw new Error(
            `PORTICO_JWT_SECRET cannot be used: ${fault}. Leave it out, and one is made; or set one that \`openssl rand -base64 48\` prints`
        );
    }
    return Buffer.from(given, 'utf8');
}

/** What makes a secret guessable; null when nothing does. */
export function faultOfSecret(secret: string): string | null {
    if (Buffer.byteLength(secret) < leastBytes) {
        return `it is shorter than ${leastBytes} bytes`;
    }
    if (isRepeated(secret)) {
        return 'it repeats a short piece';
    }
    const counts = new Map<string, number>();
    for (const character of secret) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    const bits = [...counts.values()].reduce(
        (sum, count) => sum - count * Math.log2(count / secret.length),
        0
    );
    if (counts.size < leastDifferent || bits < leastBits) {
        return 'it has too few different characters';
    }
    return unknownPart(secret) < leastUnknown ? 'it is made of well-known words or runs' : null;
}

/** How many characters are left without words of examples, digits at their side, and runs of the alphabet. */
function unknownPart(secret: string): number {
    let rest = secret.toLowerCase();
    for (const order of orders) {
        for (let length = order.length; length >= 4; length -= 1) {
            for (let at = 0; at + length <= order.length; at += 1) {
                rest = rest.replaceAll(order.slice(at, at + length).toLowerCase(), ' ');
            }
        }
    }
    const pieces = rest.split(/[^a-z0-9+/=]+/);
    return pieces.reduce((sum, piece) => sum + (isOfWords(piece) ? 0 : piece.length), 0);
}

function isOfWords(piece: string): boolean {
    let rest = piece.replaceAll(/\d{1,4}(?=$)|^\d{1,4}/g, '');
    while (rest !== '') {
        const word = known.find((candidate) => rest.startsWith(candidate));
        if (word === undefined) {
            return false;
        }
        rest = rest.slice(word.length);
    }
    return true;
}

function isRepeated(text: string): boolean {
    const again = (text + text).indexOf(text, 1);
    if (again < text.length) {
        return true;
    }
    for (let length = 1; length <= text.length / 2; length += 1) {
        if (
            text
                .slice(0, length)
                .repeat(Math.ceil(text.length / length))
                .startsWith(text)
        ) {
            return true;
        }
    }
    return false;
}
