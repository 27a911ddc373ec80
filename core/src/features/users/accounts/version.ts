/** The version that a change was made for, against the one that there is. */
import type { Call } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';

/**
 * `If-Match`, or the `version` that came back in the body.
 *
 * @throws VERSION_STALE 41200
 */
export function requireVersion(call: Call, sent: number | undefined, version: number): void {
    const matches = call.ifMatch === null || call.ifMatch === '*' || call.ifMatch === String(version);
    if (!matches || (sent !== undefined && sent !== version)) {
        throw fail.VERSION_STALE({ version });
    }
}
