/** Passwords as the server stores them, so that none is ever in a statement or a log of the server. */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const iterations = 4096;

/** The SCRAM-SHA-256 verifier of a password (RFC 5803), which `CREATE ROLE … PASSWORD` takes in its place. */
export async function verifierOf(password: string, salt: Buffer = randomBytes(16)): Promise<string> {
    const salted = await promisify(pbkdf2)(password, salt, iterations, 32, 'sha256');
    const keyOf = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
    const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64');
    return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyOf('Server Key').toString('base64')}`;
}

/** Tells a verifier from a password, which the server would take in its place. */
export function isVerifier(text: string): boolean {
    return /^SCRAM-SHA-256\$\d{1,9}:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$/.test(text);
}
