/** Passwords that the panel makes. */
import { randomBytes } from 'node:crypto';

/** A new password: 192 random bits as URL-safe base64, which no statement, file or address has to quote. */
export function makePassword(): string {
    return randomBytes(24).toString('base64url');
}
