/** The version check of a change. */
import type { Call } from './call.ts';
import { fail } from './errors.ts';

/**
 * Compares the version that a client knows, from `If-Match` or from `version` in the body, with the version that there is.
 *
 * @throws VERSION_STALE 41200
 */
export function requireVersion(
    { ifMatch }: Pick<Call, 'ifMatch'>,
    sent: number | undefined,
    version: number
): void {
    const matches = ifMatch === null || ifMatch === '*' || ifMatch === String(version);
    if (!matches || (sent !== undefined && sent !== version)) {
        throw fail.VERSION_STALE({ version });
    }
}
