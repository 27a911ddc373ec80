/** Names in statements. */
import type { AccountName } from '../kinds/kind.ts';

/** A name as an identifier; no mode of the server reads backquotes differently. */
export function quote(name: string): string {
    return `\`${name.replaceAll('`', '``')}\``;
}

/** A database as the pattern that GRANT takes: of `_` and `%` only the characters themselves. */
export function quotePattern(database: string): string {
    return quote(database.replace(/[\\_%]/g, '\\$&'));
}

/** An account in a statement. */
export function quoteAccount({ username, host }: AccountName): string {
    return `${quote(username)}@${quote(host ?? 'localhost')}`;
}

/** A password that the panel made. @throws TypeError for any other text: it could leave the quotes */
export function quotePassword(password: string): string {
    if (!/^[A-Za-z0-9_-]+$/.test(password)) {
        throw new TypeError('A password that the panel sets is URL-safe base64');
    }
    return `'${password}'`;
}
